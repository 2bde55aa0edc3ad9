"""The unified terminal contract: normalise, validate, route, fall back.

One request shape, four actions, one table of failures. A request passes `alias` (legacy shapes become canonical),
`validate` (fields and their coupling), `route` (which path, which gate) and then `headless` or `interactive`; whatever
happens, `response` makes the one answer. Knows neither keeper nor session: what
runs a headless command comes in through `runner`, a person's desktop through `adapters`.
"""
