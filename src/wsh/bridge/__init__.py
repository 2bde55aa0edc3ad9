"""The NDJSON protocol between contract and desktop, both ends. Knows neither of them.

`frame` has the words, `stream` moves them, `client` is the server's end, `listener` the desktop's, `peer` one connection of it. What a person
is asked and which answer counts is the room `approval`. The written protocol is docs/bridge.md.
"""
