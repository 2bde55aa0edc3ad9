"""What each command costs beyond the server's own time, against the interpreter's start.

Processor time of the process, so that neither the server's work nor a busy machine is counted. The script that starts them is the one that
installers write (pip from 25, uv, pipx); that of older pips imports `re` first, which the last row shows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.command_line import start_wsh_server
from bench.row import Row, at_most_ratio, interleave, median

ROUNDS = 11
COMMANDS = (
    "list", "status", "screen x", "scrollback x", "send x y", "keys x enter", "run x true", "wait x --quiet-ms 1",
    "new true", "resize x 24 80", "rename x x", "tag x t", "detach x", "kill nosuch", "export x", "play x --json",
    "search zzz", "index status", "link", "token --list", "token", "config", "uninstall", "service status",
    "shell-integration bash", "completion bash", "mcp install --client cursor --scope project",
    "policy show", "policy explain ls", "policy audit", "doctor",
)  # fmt: skip
FLOORS = {
    "completion": ("click.shell_completion", 2),
    "mcp install": ("dataclasses, json, tomllib", 2),
    "policy": ("dataclasses, json, tomllib, tree_sitter, tree_sitter_bash", 4),
    "doctor": ("asyncio, dataclasses, json, ssl, subprocess", 6),
}
"""Commands that cannot do without libraries: they are compared with an interpreter that loads those, by this factor.

The scripts of `completion` are click's. The policy needs the parser of shell lines and 90 modules of rules, which a server has loaded when an agent asks. `doctor` tries
everything that there is, in processes of its own.
"""
_HOOKED = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {"command": "rm -rf /", "description": "tidy up"},
}
_SCRIPT = "import sys\nfrom wsh.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as home:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("WSH_", "XDG_"))}
        environ |= {"HOME": home, "XDG_RUNTIME_DIR": home}
        script = Path(home) / "command"
        script.write_text(_SCRIPT)
        older = Path(home) / "older"
        older.write_text("import re\n" + _SCRIPT)
        start = [sys.executable, "-I", "-c", "pass"]
        wsh = [sys.executable, str(script)]
        with start_wsh_server(environ):
            subprocess.run([*wsh, "new", "--name", "x"], check=True, env=environ, capture_output=True)
            rows = [_measure(command, [*wsh, *command.split()], start, environ) for command in COMMANDS]
            asked = Path(home) / "asked"
            asked.write_text(json.dumps(_HOOKED | {"cwd": home}))
            rows.append(_measure("hook, a rule answers", [*wsh, "hook"], start, environ, str(asked)))
            rows.append(_measure("list, older pip", [sys.executable, str(older), "list"], start, environ))
    return rows


def _measure(
    title: str, ours: Sequence[str], start: Sequence[str], environ: dict[str, str], typed: str = os.devnull
) -> Row:
    name, factor = "the interpreter", 2
    for words, (modules, most) in FLOORS.items():
        if title.startswith(words):
            name, factor = f"one with {modules}", most
            start = [sys.executable, "-c", f"import {modules}"]
    processor_ms(ours, environ, typed)  # modules are compiled once
    sides = {"wsh": lambda: processor_ms(ours, environ, typed), "start": lambda: processor_ms(start, environ)}
    found = interleave(sides, ROUNDS)
    ours_ms, start_ms = median(found["wsh"]), median(found["start"])
    return at_most_ratio("command", f"wsh {title}", ours_ms, start_ms, "ms", name, factor, "processor")


def processor_ms(words: Sequence[str], environ: dict[str, str], typed: str = os.devnull) -> float:
    """Processor time of one run, with the processes that it waited for. `typed` is the file that it reads."""
    files = (typed, os.devnull, os.devnull)
    quiet = [(os.POSIX_SPAWN_OPEN, fd, file, os.O_RDWR, 0) for fd, file in enumerate(files)]
    pid = os.posix_spawn(words[0], list(words), environ, file_actions=quiet)
    _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1000
