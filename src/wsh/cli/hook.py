"""`wsh hook`: answers the permission hooks of Claude Code and Codex. Imports nothing of weight: a host waits for it at every command.

Whatever goes wrong, nothing is printed and the status is not 2: then the host asks by itself. Only a server's answer allows or denies.
"""

from __future__ import annotations

import os
import sys

from wsh.cli.declare import Argument, Failure, Option, echo, group, json_option
from wsh.cli.request import call
from wsh.wire.json.text import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENTS = ("claude-code", "codex")
EVENTS = ("PermissionRequest", "PreToolUse")
_LONGEST = 4 << 20

client_option = Option("--client", choices=CLIENTS, default="claude-code", help="The host: claude-code or codex.")


@group(
    "hook",
    client_option,
    Option("--rules-only", kind=bool, help="Answer what rules cover, ask nobody."),
    Option("--wait-s", kind=int, default=240, least=1, help="How long a card waits; then the host asks by itself."),
    Option(
        "--server-s", kind=int, default=10, least=1, help="How long a server may be silent before it counts as broken."
    ),
    runs_alone=True,
)
def hook(client: str, rules_only: bool, wait_s: int, server_s: int) -> int:
    """Answer a permission hook of Claude Code or Codex, which stands on stdin.

    Rules of the policy allow or deny; what they do not cover is asked on a card (`wsh approvals`, the page) until the deadline.
    Without a server, and whenever something is wrong, the host's own prompt decides.
    """
    try:
        asked = _read(sys.stdin.buffer.read(_LONGEST + 1))
        if asked is not None:
            answer = _ask(client, asked, None if rules_only else wait_s, server_s)
            said = make_output(client, asked["event"], answer["decision"], answer["reason"])
            if said is not None:
                echo(write_json(said))
    except Exception as problem:
        echo(f"wsh hook: the host asks by itself: {problem}", err=True)
    return 0


def _read(data: bytes) -> dict[str, str] | None:
    """Event, command, folder and note; None for what is no question about a command."""
    given = read_json(data) if data and len(data) <= _LONGEST else None
    if not isinstance(given, dict) or given.get("hook_event_name") not in EVENTS or given.get("tool_name") != "Bash":
        return None
    tool = given.get("tool_input")
    tool = tool if isinstance(tool, dict) else {}
    command, note = tool.get("command"), tool.get("description")
    if not isinstance(command, str) or not command.strip():
        return None
    note = note if isinstance(note, str) else ""
    if command.startswith("network-access") or note.startswith("network-access"):
        return None  # Codex asks about a connection, not about the command that makes it
    cwd = given.get("cwd")
    return {
        "event": given["hook_event_name"],
        "command": command,
        "cwd": cwd if isinstance(cwd, str) and cwd.startswith("/") else os.getcwd(),
        "note": note[:4096],
    }


def _ask(client: str, asked: dict[str, str], wait_s: int | None, server_s: int) -> dict[str, Any]:
    """The server's answer, by rules alone where there is no `wait_s`."""
    body: dict[str, object] = {"client": client, "command": asked["command"], "cwd": asked["cwd"]}
    if asked["note"]:
        body["note"] = asked["note"]
    found: dict[str, Any] = call("POST", "/hook", json_body=body, start=False, doing="", timeout_s=server_s)
    if found["decision"] == "ask" and wait_s is not None:
        body["wait_ms"] = wait_s * 1000
        found = call("POST", "/hook/ask", json_body=body, start=False, doing="", timeout_s=wait_s + server_s)
    return found


def make_output(client: str, event: str, decision: str, reason: str) -> dict[str, object] | None:
    """What the host is told; None leaves it to the host. Codex knows no "allow" before a tool is used: silence is one."""
    if decision not in ("allow", "deny"):
        return None
    if event == "PermissionRequest":
        told: dict[str, object] = {"behavior": decision}
        if decision == "deny":
            told["message"] = reason
        return {"hookSpecificOutput": {"hookEventName": event, "decision": told}}
    if client == "codex" and decision == "allow":
        return None
    words = {"hookEventName": event, "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": words}


@hook.command(
    "test",
    client_option,
    Option("--event", choices=EVENTS, default="PermissionRequest", help="Which hook."),
    json_option,
    Argument("command", metavar="COMMAND"),
)
def test(client: str, event: str, as_json: bool, command: str) -> None:
    """Say what a host would be told about COMMAND here, by rules alone. Asks nobody and runs nothing."""
    asked = {"event": event, "command": command, "cwd": os.getcwd(), "note": ""}
    found = _ask(client, asked, None, 60)
    output = make_output(client, event, found["decision"], found["reason"])
    if as_json:
        from wsh.cli.output import print_json

        print_json({"decision": found["decision"], "reason": found["reason"], "rule": found["rule"], "output": output})
        return
    echo(f"{found['decision']}  {found['reason']}")
    if found["rule"]:
        echo(f"rule: {found['rule']}")
    echo(f"the host is told: {write_json(output) if output is not None else 'nothing, so it decides by itself'}")


@hook.command(
    "install",
    Option("--client", choices=CLIENTS, required=True, help="claude-code or codex."),
    Option("--scope", choices=("user", "project"), default="user", help="Whose configuration.", show_default=True),
    Option("--write", kind=bool, help="Write it. Without this, only show what would be written."),
    json_option,
)
def install(client: str, scope: str, write: bool, as_json: bool) -> None:
    """Show the hooks that let a host ask wsh, and write them with --write."""
    from wsh.cli.output import print_json
    from wsh.client.hook_install import plan_hooks
    from wsh.client.install import InstallError
    from wsh.wire.setting import load
    from wsh.wire.system.place import find_places

    wait_s = max(1, load(find_places().config_file).get_int("hook.wait_ms") // 1000)
    try:
        change = plan_hooks(client, scope, wait_s)
        if write and not change.unchanged:
            change.write()
    except InstallError as problem:
        raise Failure(str(problem)) from None
    except OSError as problem:
        raise Failure(f"the configuration cannot be written: {problem.strerror}") from None
    written = write and not change.unchanged
    if as_json:
        facts = {"client": client, "file": str(change.path), "entry": change.shown, "unchanged": change.unchanged}
        print_json(facts | {"written": written})
        return
    echo(f"{change.path}:")
    echo(change.shown)
    if change.unchanged:
        echo("This is there already; nothing to do.", err=True)
    elif written:
        echo(f"Written. {change.afterwards}", err=True)
    else:
        echo("Nothing was written; add --write to do it.", err=True)
