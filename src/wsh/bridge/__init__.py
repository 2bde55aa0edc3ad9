"""The NDJSON protocol between contract and desktop, both ends. Knows neither of them."""
