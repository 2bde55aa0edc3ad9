"""All terminal tools of a server."""

from __future__ import annotations

from wsh.mcp.tool import control, lean, session, terminal, visual
from wsh.operation.context import Rooms
from wsh.wire.tool import ToolSpec

TOOLS = (*lean.TOOLS, *session.TOOLS, *terminal.TOOLS, *visual.TOOLS, *control.TOOLS)


def make_terminal_tools(rooms: Rooms) -> list[ToolSpec]:
    return [tool.bind(rooms) for tool in TOOLS]
