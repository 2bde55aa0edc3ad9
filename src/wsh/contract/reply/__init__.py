"""From a result or a failure to the one answer of a request."""
