"""One screen, window and server for all tests here: they take a while to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.desktop.window import QUEUE, Desk, desk, virtual_screen
from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import Places, find_places


@pytest.fixture(scope="package")
def display() -> Iterator[str]:
    with virtual_screen() as name:
        yield name


@pytest.fixture(scope="package")
def desk_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Folders shared by the tests here: a window and a server take a while to start."""
    root = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            patch.setenv(variable, str(root / name))
        places = find_places()
        places.config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.config_file.write_text(f"[approvals]\nmax_pending = {QUEUE}\n")
        yield places


@pytest.fixture(scope="package")
def window(desk_places: Places, display: str) -> Iterator[Desk]:
    with desk(desk_places, display) as opened:
        yield opened


@pytest.fixture(scope="package")
def server(desk_places: Places, window: Desk) -> Iterator[RunningServer]:
    with running_server(desk_places, check_left=False) as running:
        yield running


@pytest.fixture
def clean_policy(desk_places: Places) -> Iterator[Path]:
    """For a test that writes rules: none before, none after."""
    desk_places.policy_file.unlink(missing_ok=True)
    yield desk_places.policy_file
    desk_places.policy_file.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _in_front(request: pytest.FixtureRequest) -> None:
    """Every test of the window begins with an empty queue on the page of requests."""
    if "window" not in request.fixturenames:
        return
    window: Desk = request.getfixturevalue("window")
    window.wait_for_pending(0)
    window.press("ctrl+1")
