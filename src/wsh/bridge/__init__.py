"""The NDJSON protocol between contract and desktop, both ends. Knows neither of them.

`frame` has the words, `stream` moves them, `client` is the server's end, `listener` the desktop's. `ledger` decides
who may still decide: a request is answered once, and one that was withdrawn can never run. `evidence` is what a person
is shown and what an approval is bound to. The written protocol is docs/bridge.md.
"""
