"""From a caller's JSON to one canonical request: aliases, ids, models, checks, and what the policy is asked."""
