"""The routes: one table, from which dispatch, OpenAPI and the docs are made."""
