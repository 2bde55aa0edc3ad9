"""What needs environments, roots or programs of its own: run by `make accept`, not by `make test`."""
