"""A server for tests of `wsh attach`, and panes to see it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.pane import Pane
from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import find_places


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the tests that leave it alive; the variables hold for what they start."""
    folder = tmp_path_factory.mktemp("attach")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        with running_server(find_places()) as running:
            yield running


@pytest.fixture
def server(shared: RunningServer) -> Iterator[RunningServer]:
    yield shared
    for info in shared.get("/sessions"):
        shared.request("DELETE", f"/sessions/{info['name']}")


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Callable[..., Pane]]:
    opened: list[Pane] = []

    def open_pane(command: str, rows: int = 24, cols: int = 80) -> Pane:
        folder = tmp_path / f"pane{len(opened)}"
        folder.mkdir()
        opened.append(Pane(folder, command, rows, cols))
        return opened[-1]

    yield open_pane
    for each in opened:
        each.close()
