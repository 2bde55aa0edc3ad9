"""How MCP messages come and go: Streamable HTTP, and the line stream of `wsh mcp`."""
