"""What every test gets: `--torture` for the long campaigns, and private XDG folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsh.wire.place import Places, find_places


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long campaigns at full length")


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    """Whether to run at full length rather than as a sample."""
    return bool(request.config.getoption("--torture"))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Folders of their own for this test, also for the processes it starts."""
    for name in ("runtime", "state", "config"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return find_places()
