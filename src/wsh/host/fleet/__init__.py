"""The second carrier: many machines on one NATS server.

`credential` says who a node is, `seal` signs what it sends, `subject` names where things go and who may publish there, `connection`
is the one connection to NATS. On it stand `lease` (who is there), `directory` (which nodes and sessions there are), `carrier` (calls and
streams to another node), `receive` (calls and streams from others) and `tell` (what this node tells of itself). `node` holds them together.
`deploy` makes a NATS server's configuration and keys. nats-py is imported only when a fleet is configured. What a call means is known by
`wsh.host` and its neighbours, not here.
"""
