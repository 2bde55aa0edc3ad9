"""One server for the many tests that only need a server, and sessions that are gone after their test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import find_places

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("http")
    patch = pytest.MonkeyPatch()
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700)
        patch.setenv(variable, str(folder / name))
    places = find_places()
    try:
        # The variables hold for the server alone: tests that start one of their own set theirs.
        with running_server(places) as running:
            patch.undo()
            yield running
            for info in running.get("/sessions"):
                running.request("DELETE", f"/sessions/{info['name']}")
            running.request("POST", "/server/stop")
            running.process.wait(60)
            said = running.output.read_text()
            assert "Traceback" not in said, said
    finally:
        patch.undo()


@pytest.fixture
def open_session(server: RunningServer) -> Iterator[Callable[..., str]]:
    """Opens a session (a plain bash unless told otherwise) that is killed after the test; returns its name."""
    names: list[str] = []

    def open_one(command: str = "bash --norc --noprofile", **more: Any) -> str:
        name = str(more.pop("name", f"t{next(_numbers)}"))
        env = {"PS1": "$ ", "HISTFILE": "/dev/null", **more.pop("env", {})}
        reply = server.request("POST", "/sessions", {"name": name, "command": command, "env": env, **more})
        assert reply.status == 201, reply
        names.append(name)
        return name

    yield open_one
    for name in names:
        server.request("DELETE", f"/sessions/{name}")
