"""The files of a small workspace with known content, and tools called as a door calls them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsh.workspace.child import LocalRunner, python_module
from wsh.workspace.error import ToolError
from wsh.workspace.index.build import build, read_request
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import ToolContext
from wsh.workspace.tool import call_tool

FILES = {
    "app/server.py": '''"""Serves things."""

import socket

DEFAULT_PORT = 8080


class HttpServer:
    """Listens on a port and answers requests."""

    def __init__(self, port: int) -> None:
        self.port = port

    def accept_connection(self) -> str:
        return "accepted"

    def closeAll(self) -> None:
        """Close every connection gracefully."""


def parse_arguments(argv: list[str]) -> dict[str, str]:
    result = {}
    for item in argv:
        key, _, value = item.partition("=")
        result[key] = value
    return result
''',
    "app/client.js": """// Talks to the server.
export class HttpClient {
  fetchPage(url) {
    return request(url);
  }
}

export const retryLimit = 5;

export const makeClient = (options) => {
  return new HttpClient(options);
};
""",
    "lib/store.go": """package store

// Store keeps values by key.
type Store struct {
	values map[string]string
}

func (s *Store) Lookup(key string) (string, bool) {
	value, ok := s.values[key]
	return value, ok
}
""",
    "docs/guide.md": """# Guide

How to begin.

## Installation

Run the installer and wait for the zebra to appear.

## Troubleshooting

When the server refuses connections, look at the quokka log.

```
# not a heading
```
""",
    "notes.txt": "Plain notes about the wombat.\nSecond line.\n",
}


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return root


class HereRunner:
    """Builds in a thread of this process, for tests to which it is nothing where a build runs: most of a small one is the start of an interpreter.

    It cannot be killed; tests that cancel a build or let it time out take a `LocalRunner`.
    """

    async def run(
        self, argv: list[str], stdin: bytes, on_line: Callable[[bytes], None], *, nice: int = 0
    ) -> tuple[int, bytes]:
        if argv != python_module("wsh.workspace.index.build_child") or nice:
            return await LocalRunner().run(argv, stdin, on_line, nice=nice)
        loop = asyncio.get_running_loop()

        def say(message: dict[str, object]) -> None:
            loop.call_soon_threadsafe(on_line, json.dumps(message).encode())

        def work() -> int:
            try:
                # One worker is this thread; others would be forks of the whole process.
                request = read_request(json.dumps({**json.loads(stdin), "workers": 1}).encode())
                say({"result": build(request, lambda *progress: say({"progress": progress}))})
            except ToolError as problem:
                say({"error": problem.to_payload()})
                return 1
            return 0

        return await asyncio.to_thread(work), b""


class Tools:
    """Calls tools as a door would, each test on one event loop."""

    def __init__(self, service: WorkspaceService, cwd: Path, runner: asyncio.Runner) -> None:
        self.service = service
        self.cwd = cwd
        self.runner = runner
        self.progress: list[tuple[str, str]] = []

    def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.runner.run(self.call(tool, arguments))

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        context = ToolContext(str(self.cwd), lambda message, phase: self.progress.append((message, phase)))
        return await call_tool(self.service, name, arguments, context)

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        with pytest.raises(ToolError) as caught:
            self(tool, **arguments)
        return caught.value.to_payload()

    def names(self, **arguments: Any) -> list[str | None]:
        return [hit["name"] for hit in self("search", **arguments)["hits"]]

    def paths(self, **arguments: Any) -> list[str | None]:
        return [hit["path"] for hit in self("search", **arguments)["hits"]]


MakeTools = Callable[..., Tools]
