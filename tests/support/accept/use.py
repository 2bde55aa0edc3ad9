"""Use an installed `wsh` as a person and an agent would: a session, the page, and MCP over stdio."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "accept", "version": "1"}},
}


def use_wsh(wsh: Sequence[str], environ: Mapping[str, str], folder: Path, *, page: bool = True) -> None:
    """Fails where one of the three does not work. The server is stopped with its sessions at the end.

    `page` is false where the server's loopback is not this process's own.
    """

    def run(*words: str) -> str:
        done = subprocess.run(
            [*wsh, *words], env=environ, cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"wsh {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    try:
        assert run("new", "--name", "first", "bash --norc") == "first\n"
        assert run("run", "first", "echo $((6*7))").strip().endswith("42")
        status = json.loads(run("status", "--json"))
        assert status["running"] and status["sessions"] == 1
        if page:
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(run("link").strip(), timeout=60) as answer:
                assert b"<script" in answer.read()
        names = list_tools(wsh, environ, folder)
        assert {"wsh_run_command", "execute_command", "memory_terminal_interactive"} <= names
        assert run("doctor")
    finally:
        subprocess.run([*wsh, "stop"], env=environ, cwd=folder, capture_output=True, timeout=120, check=False)


def list_tools(wsh: Sequence[str], environ: Mapping[str, str], folder: Path) -> set[str]:
    """The tools that `wsh mcp` offers on stdin and stdout."""
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with subprocess.Popen(
        [*wsh, "mcp"], env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps(message) + "\n" for message in (INITIALIZE, ready, listing)))
        process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            if message.get("id") == 2:
                return {tool["name"] for tool in message["result"]["tools"]}
    raise AssertionError("`wsh mcp` ended without an answer")
