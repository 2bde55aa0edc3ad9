"""Who is calling: proved by the HTTP door, with the surroundings of the connection.

Ownership of what calls make, and the scope in which request ids mean something, hang on it: an MCP session (legacy
HTTP), a stdio connection, or a token (modern HTTP, which has no connection).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from wsh.mcp.registry import parse_toolsets
from wsh.wire.caller import GOVERNING, Caller
from wsh.wire.json.handshake import FAMILIES
from wsh.wire.tool import Family

MAX_CONNECTION_BYTES = 1024 * 1024


@dataclass(frozen=True)
class McpClient:
    """Who calls, and what hangs on the connection alone."""

    caller: Caller
    toolsets: tuple[Family, ...] = FAMILIES
    exclusive: bool = True
    """Whether request ids are this caller's alone; one token may be used by several clients at once."""


def pick_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that govern a connection."""
    return {key: value for key, value in environ.items() if key.startswith(GOVERNING)}


@dataclass(frozen=True)
class ConnectionSurroundings:
    """Where a connection comes from: that of `wsh mcp`, or the server's own."""

    id: str
    cwd: str
    environ: Mapping[str, str] = field(default_factory=dict)
    toolsets: tuple[Family, ...] = FAMILIES

    @classmethod
    def of_server(cls, toolsets: tuple[Family, ...]) -> ConnectionSurroundings:
        return cls("server", os.getcwd(), pick_environ(os.environ), toolsets)

    @classmethod
    def parse(cls, raw: object, server: ConnectionSurroundings) -> ConnectionSurroundings:
        """From the first line of a stdio connection. ValueError says what is wrong with it."""
        if not isinstance(raw, dict):
            raise ValueError("the greeting is not an object")
        id, cwd, environ = raw.get("id"), raw.get("cwd"), raw.get("environ")
        if not isinstance(id, str) or not 8 <= len(id) <= 128:
            raise ValueError("the greeting has no id")
        if not isinstance(cwd, str) or not cwd.startswith("/"):
            raise ValueError("the greeting has no absolute cwd")
        if not isinstance(environ, dict) or not all(
            isinstance(k, str) and isinstance(v, str) and k.startswith(GOVERNING) for k, v in environ.items()
        ):
            raise ValueError("the greeting's environ may hold ALLOWED_*, PM_* and WSH_* texts only")
        toolsets = server.toolsets
        if raw.get("toolsets"):
            asked = parse_toolsets(raw["toolsets"])
            # The lean tools do nothing that the terminal tools do not.
            offered = {*server.toolsets, "lean"} if "terminal" in server.toolsets else {*server.toolsets}
            toolsets = tuple(family for family in asked if family in offered)
            if not toolsets:
                raise ValueError(f"this server offers only the toolsets {', '.join(server.toolsets)}")
        return cls(id, cwd, environ, toolsets)
