"""Every capability, declared once: its parameters, its result, who may call it, what it raises, and one coroutine that does it.

One file per noun. A door (HTTP, WebSocket, MCP) is a table over these declarations: it says how it spells a call and what of the
result it shows, and decides nothing. The room stands on the rooms that do the work and is known to doors alone.
"""
