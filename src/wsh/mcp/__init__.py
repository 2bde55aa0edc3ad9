"""The MCP door: translates between the protocol and the rooms behind it, and decides nothing.

`registry` knows the tools, `call` runs them under the rules that bind every tool, `error` is the one way from a
failure to the wire, `server` and `hook` fit all of it to the SDK, `resource` and `prompt` serve what is read,
`endpoint` is what the HTTP server mounts. Importing `server` or `endpoint` imports the SDK, of which `sdk` makes as
little as a server needs: nothing that must start quickly may do it.
"""
