"""What every test gets: the suite's own options and order, a home of its own and private XDG folders."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.session.shells import make_home
from tests.support.suite import (  # noqa: F401 - hooks
    find_forgotten,
    forget_caller,
    pytest_addoption,
    pytest_collection,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_itemcollected,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from wsh.wire.system.place import Places, find_places

# A tool of the tests brings it along, users do not have it, and jsonschema would spend two seconds on importing it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

forget_caller(os.environ)

pytest_plugins = ("tests.support.parallel",)


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """`async def` tests and fixtures run on the loop that the server uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start files of whoever runs the tests are none of theirs; what npm needs to find packages is."""
    home = Path(make_home(tmp_path_factory.mktemp("user")))
    for name in (".npm", ".npmrc"):
        if (Path.home() / name).exists():
            (home / name).symlink_to(Path.home() / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        # `python3` may be a script that looks for its versions at home.
        (home / "bin").mkdir()
        (home / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
        patch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder() -> Iterator[None]:
    """Temporary files are our own, too: programs find no others there, and whoever forgets one is told."""
    folder = tempfile.mkdtemp(prefix="wsh-test-")
    os.chmod(folder, 0o1777)  # as open as the one that it stands for
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield
    left = find_forgotten(Path(folder))
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"tests left these in the folder for temporary files: {left}"


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    """Whether to run at full length rather than as a sample."""
    return bool(request.config.getoption("--torture"))


@pytest.fixture
def no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts a server again that was killed, so clients need not wait for that before they do it."""
    monkeypatch.setenv("WSH_CLIENT_RESTART_WAIT_S", "0")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Folders of their own for this test, also for the processes it starts."""
    for name in ("runtime", "state", "config"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return find_places()
