"""What a server says of itself when an MCP client greets it, and which sets of tools there are.

`wsh mcp` gives this answer itself where it has just started the server, which takes a second until it could: a test compares the two.
Imports nothing of weight.
"""

from __future__ import annotations

from wsh.wire.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wsh.wire.tool import Family

FAMILIES: tuple[Family, ...] = ("terminal", "contract", "exec", "workspace")
"""The published tools, which are offered where nothing is said."""
TOOLSETS: tuple[Family, ...] = ("lean", *FAMILIES)
"""What can be asked for. `lean` says with six tools what the terminal tools say, for few tokens."""

NAME, TITLE = "wsh", "wsh terminals"
DESCRIPTION = "Real terminals for agents, shared with the people beside them."
INSTRUCTIONS = (
    "wsh gives you real terminals. A session is a shell or program on a pty that goes on between your calls.\n"
    "Loop: wsh_create_session once, then wsh_run_command (types, waits, returns the screen) for each step; for keys, "
    "full-screen programs and prompts use wsh_send_input, wsh_await_quiesce and wsh_get_screen. People may watch and "
    "type in the same session: when a call fails with SESSION_TAKEN, a person has the keyboard; read the screen and "
    "wait. Kill sessions that you no longer need.\n"
    "The prompt wsh:core explains the loop; wsh:drive-process, wsh:tui, wsh:multi-session and others go deeper."
)
LEAN_INSTRUCTIONS = (
    "wsh gives you a real terminal that goes on between your calls, shared with the people beside you. `run` runs a command and "
    "returns its output and exit code; `type` answers prompts and drives full-screen programs; `look` reads what was left out."
)
_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Those that have a handshake, and are answered with themselves."""


def find_instructions(toolsets: Collection[str]) -> str | None:
    """Words about the tools that a client has."""
    if "terminal" in toolsets:
        return INSTRUCTIONS
    return LEAN_INSTRUCTIONS if "lean" in toolsets else None


def make_answer(params: Mapping[str, object], toolsets: Collection[str]) -> dict[str, object] | None:
    """The result of `initialize`; None where only the server can tell, as for revisions and parameters that are not the usual ones."""
    client, capabilities = params.get("clientInfo"), params.get("capabilities")
    if params.get("protocolVersion") not in _REVISIONS or not isinstance(client, dict):
        return None
    if not isinstance(client.get("name"), str) or not isinstance(client.get("version"), str):
        return None
    if not isinstance(capabilities, dict) or not all(isinstance(value, dict) for value in capabilities.values()):
        return None
    offered = {
        "completions": {},
        "prompts": {"listChanged": False},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": False},
    }
    instructions = find_instructions(toolsets)
    return {
        "capabilities": offered,
        **({} if instructions is None else {"instructions": instructions}),
        "protocolVersion": params["protocolVersion"],
        "serverInfo": {"description": DESCRIPTION, "name": NAME, "title": TITLE, "version": VERSION},
    }
