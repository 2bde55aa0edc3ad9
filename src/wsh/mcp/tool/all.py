"""All terminal tools of a server."""

from __future__ import annotations

from wsh.mcp.tool.control import make_control_tools
from wsh.mcp.tool.rooms import TerminalRooms
from wsh.mcp.tool.session import make_session_tools
from wsh.mcp.tool.terminal import make_terminal_io_tools
from wsh.mcp.tool.visual import make_visual_tools
from wsh.wire.tool import ToolSpec


def make_terminal_tools(rooms: TerminalRooms) -> list[ToolSpec]:
    return [
        *make_session_tools(rooms),
        *make_terminal_io_tools(rooms),
        *make_visual_tools(rooms),
        *make_control_tools(rooms),
    ]
