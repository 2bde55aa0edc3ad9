"""The hooks of wsh in the configuration of Claude Code and Codex: where they go and what they say.

Both keep them in JSON, by event, in groups with a matcher. Ours replace earlier ones of ours; everything else stays as it is.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsh.client.install import FileChange, InstallError, find_command

_FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json"}
_AFTERWARDS = {
    "claude-code": "Start Claude Code again; /hooks shows them.",
    "codex": "Start Codex again and trust the hooks when it asks; /hooks shows them.",
}
_GRACE_S = 30
_RULES_S = 30


@dataclass(frozen=True)
class HookChange(FileChange):
    afterwards: str


def plan_hooks(client: str, scope: str, wait_s: int) -> HookChange:
    """What would be written. Raises InstallError if the file cannot be understood."""
    path = (Path.home() if scope == "user" else Path.cwd()) / _FILES[client]
    entries = _make_entries(client, wait_s)
    shown = json.dumps({"hooks": entries}, indent=2, ensure_ascii=False)
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as problem:
        raise InstallError(f"{path} cannot be read: {problem}") from None
    try:
        document = json.loads(before) if before.strip() else {}
        groups = document.setdefault("hooks", {})
        merged = {event: [*_without_ours(groups.get(event, [])), *ours] for event, ours in entries.items()}
        unchanged = all(groups.get(event) == merged[event] for event in entries)
        groups |= merged
    except (ValueError, AttributeError, TypeError) as problem:
        raise InstallError(f"{path} is not what it should be ({problem}). Add this by hand:\n{shown}") from None
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return HookChange(path, shown, text, unchanged, _AFTERWARDS[client])


def _make_entries(client: str, wait_s: int) -> dict[str, list[Any]]:
    program, arguments = find_command(())
    words = [program, *arguments[:-1], "hook", "--client", client]
    ask = {"type": "command", "command": shlex.join([*words, "--wait-s", str(wait_s)]), "timeout": wait_s + _GRACE_S}
    rules = {"type": "command", "command": shlex.join([*words, "--rules-only"]), "timeout": _RULES_S}
    return {
        "PermissionRequest": [{"matcher": "Bash", "hooks": [ask]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [rules]}],
    }


def _without_ours(groups: list[Any]) -> list[Any]:
    kept = []
    for group in groups:
        others = [one for one in group.get("hooks", []) if not _is_ours(str(one.get("command", "")))]
        if others or not group.get("hooks"):
            kept.append({**group, "hooks": others} if group.get("hooks") else group)
    return kept


def _is_ours(command: str) -> bool:
    return " hook --client " in command and "wsh" in command
