"""The MCP door: translates, never decides."""
