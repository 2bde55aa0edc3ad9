"""The entry for wsh in the configuration of MCP clients: where it goes and what it says.

Knows five clients. Reads what is there, changes one entry, leaves everything else byte for byte where the format
allows it and value for value where not. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Scope = Literal["user", "project"]


class InstallError(Exception):
    """The configuration cannot be changed; the message says why and what to do by hand."""


@dataclass(frozen=True)
class Client:
    name: str
    title: str
    key: str
    """The table that servers are listed in."""
    user: str | None
    project: str | None
    usual: Scope
    afterwards: str
    typed: bool = False
    """Whether entries say `"type": "stdio"`."""
    toml: bool = False


def _desktop_folder() -> str:
    return "~/Library/Application Support/Claude" if sys.platform == "darwin" else "~/.config/Claude"


def _code_folder() -> str:
    return "~/Library/Application Support/Code/User" if sys.platform == "darwin" else "~/.config/Code/User"


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        "Claude Code",
        "mcpServers",
        "~/.claude.json",
        ".mcp.json",
        "project",
        "Start Claude Code in this folder and approve the server.",
        typed=True,
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        "mcpServers",
        f"{_desktop_folder()}/claude_desktop_config.json",
        None,
        "user",
        "Restart Claude Desktop.",
    ),
    Client(
        "vscode",
        "VS Code",
        "servers",
        f"{_code_folder()}/mcp.json",
        ".vscode/mcp.json",
        "project",
        "Run “MCP: List Servers” in VS Code and start wsh.",
        typed=True,
    ),
    Client(
        "cursor",
        "Cursor",
        "mcpServers",
        "~/.cursor/mcp.json",
        ".cursor/mcp.json",
        "user",
        "Cursor picks it up; see Settings, MCP.",
    ),
    Client(
        "codex",
        "Codex",
        "mcp_servers",
        "~/.codex/config.toml",
        ".codex/config.toml",
        "user",
        "Start Codex again; a project's file counts once you trust the project.",
        toml=True,
    ),
)


def find_client(name: str) -> Client:
    for client in CLIENTS:
        if client.name == name:
            return client
    raise InstallError(f"There is no client {name!r}; choose from {', '.join(c.name for c in CLIENTS)}.")


@dataclass(frozen=True)
class FileChange:
    path: Path
    shown: str
    """The entry as it will stand in the file."""
    text: str
    """The whole file afterwards."""
    unchanged: bool

    def write(self) -> None:
        replace_file(self.path, self.text)


@dataclass(frozen=True)
class Change(FileChange):
    client: Client


def replace_file(path: Path, text: str) -> None:
    """Replace a configuration file in one step and keep its mode."""
    target = path.resolve() if path.is_symlink() else path
    target.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o600)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def find_command(toolsets: Sequence[str]) -> tuple[str, list[str]]:
    """Program and arguments that start `wsh mcp` from anywhere."""
    options = ["--toolsets", ",".join(toolsets)] if toolsets else []
    beside = Path(sys.executable).parent / "wsh"
    program = str(beside) if os.access(beside, os.X_OK) else shutil.which("wsh")
    if program:
        return os.path.abspath(program), ["mcp", *options]
    return sys.executable, ["-m", "wsh.cli.main", "mcp", *options]


def plan(client: Client, scope: str | None, toolsets: Sequence[str] = ()) -> Change:
    """What would be written. Raises InstallError if the file cannot be understood."""
    chosen = scope or client.usual
    place = client.user if chosen == "user" else client.project
    if place is None:
        raise InstallError(f"{client.title} has no {chosen} configuration; leave --scope out.")
    path = Path(place).expanduser() if chosen == "user" else Path.cwd() / place
    program, arguments = find_command(toolsets)
    entry: dict[str, object] = {"type": "stdio"} if client.typed else {}
    entry |= {"command": program, "args": arguments}
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as problem:
        raise InstallError(f"{path} cannot be read: {problem}") from None
    make = _plan_toml if client.toml else _plan_json
    return make(client, path, before, entry)


def _plan_json(client: Client, path: Path, before: str, entry: dict[str, object]) -> Change:
    shown = json.dumps({client.key: {"wsh": entry}}, indent=2, ensure_ascii=False)
    try:
        document = json.loads(before) if before.strip() else {}
    except ValueError as problem:
        raise InstallError(
            f"{path} is not plain JSON ({problem}); comments would be lost. Add this by hand:\n{shown}"
        ) from None
    servers = document.get(client.key, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise InstallError(f"{path} does not look like a configuration of {client.title}. Add this by hand:\n{shown}")
    unchanged = servers.get("wsh") == entry
    document[client.key] = servers | {"wsh": entry}
    return Change(path, shown, json.dumps(document, indent=2, ensure_ascii=False) + "\n", unchanged, client)


def _plan_toml(client: Client, path: Path, before: str, entry: dict[str, object]) -> Change:
    # JSON strings and arrays of strings are TOML as well.
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    shown = "\n".join([f"[{client.key}.wsh]", *lines]) + "\n"
    try:
        there = tomllib.loads(before).get(client.key, {}).get("wsh")
    except (tomllib.TOMLDecodeError, AttributeError) as problem:
        raise InstallError(f"{path} is not TOML ({problem}). Add this by hand:\n{shown}") from None
    if there == entry:
        return Change(path, shown, before, True, client)
    head = re.compile(rf"^\[\s*{client.key}\s*\.\s*\"?wsh\"?\s*\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|$))*", re.MULTILINE)
    if there is None:
        gap = "" if not before.strip() else "\n" if before.endswith("\n") else "\n\n"
        text = before + gap + shown
    else:
        text, count = head.subn(lambda _: shown + "\n", before, count=1)
        if count != 1:
            raise InstallError(f"{path} has an entry for wsh in a form that is not ours. Change it by hand:\n{shown}")
    if tomllib.loads(text).get(client.key, {}).get("wsh") != entry:
        raise InstallError(f"{path} has more under {client.key}.wsh. Change it by hand:\n{shown}")
    return Change(path, shown, text, False, client)
