"""Who calls, and what governs that connection. Filled in by the doors; nothing in this room reads the process's own
environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Caller:
    """`id` owns what the calls make (a connection, an MCP session or a token). `environ` holds the ALLOWED_*, PM_* and
    WSH_* variables of the connection. `cwd` is where it works."""

    id: str
    actor: str = "agent"
    client: str = ""
    cwd: str = "/"
    environ: Mapping[str, str] = field(default_factory=dict)
