"""What crosses the wire as JSON: the models of parameters and results (pydantic)."""
