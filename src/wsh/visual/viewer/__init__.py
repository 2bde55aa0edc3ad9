"""People who look at a session: who they are, at which size, what they are sent and what their keys do."""
