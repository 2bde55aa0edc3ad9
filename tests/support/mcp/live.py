"""A real server for a whole test module, and the ways to talk to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mcp.host import HttpHost, StdioHost
from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import find_places

KINDS = ("stdio", "http", "http-modern", "stdio-modern")


def set_folders(folder: Path, patch: pytest.MonkeyPatch) -> None:
    for name in ("runtime", "state", "config"):
        (folder / name).mkdir(mode=0o700)
    patch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    patch.setenv("SHELL", "/bin/bash")
    patch.setenv("PS1", "$ ")


@contextmanager
def live_server(folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[RunningServer]:
    """With private folders in the environment of this process and of everything it starts."""
    with pytest.MonkeyPatch.context() as patch:
        set_folders(folder, patch)
        with running_server(find_places(), environ=environ) as server:
            yield server
        said = server.output.read_text()
        assert "Traceback" not in said, said[-6000:]


@contextmanager
def open_host(server: RunningServer, kind: str) -> Iterator[HttpHost | StdioHost]:
    if kind.startswith("stdio"):
        with StdioHost(cwd=os.environ["XDG_STATE_HOME"], modern=kind.endswith("modern")) as stdio:
            if not stdio.modern:
                stdio.initialize()
            yield stdio
    else:
        with HttpHost(f"{server.url}/mcp", server.token, modern=kind.endswith("modern")) as http:
            if not http.modern:
                http.initialize()
            yield http
