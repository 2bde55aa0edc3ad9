"""All terminal tools of a server."""

from __future__ import annotations

from wsh.mcp.tool import control, session, visual
from wsh.mcp.tool.rooms import TerminalRooms
from wsh.mcp.tool.terminal import make_terminal_io_tools
from wsh.operation.context import Rooms
from wsh.wire.tool import ToolSpec

TOOLS = (*session.TOOLS, *visual.TOOLS, *control.TOOLS)


def make_terminal_tools(rooms: Rooms) -> list[ToolSpec]:
    tools = [tool.bind(rooms) for tool in TOOLS]
    at = len(session.TOOLS)
    return [*tools[:at], *make_terminal_io_tools(TerminalRooms(rooms)), *tools[at:]]
