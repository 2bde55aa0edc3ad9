"""What the tests' own support finds: processes of a test and no others, and what a test forgot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.serving import find_processes
from tests.support.suite import find_forgotten
from wsh.wire.system.place import find_places


@contextmanager
def waiting(*words: str, **environ: str) -> Iterator[int]:
    """A process that says when it is there."""
    command = [sys.executable, "-I", "-S", "-c", "print('there', flush=True); input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process.pid
        process.communicate("\n")


@pytest.mark.parametrize("depth", [0, 4])
def test_the_processes_of_a_test_are_found_however_long_the_name_of_its_runtime_folder(
    tmp_path: Path, depth: int
) -> None:
    folder = tmp_path.joinpath(*["twenty-characters-or"] * depth, "runtime")
    folder.mkdir(parents=True)
    places = find_places({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(folder)})
    assert (places.runtime.parent == folder) == (depth == 0)
    with (
        waiting(XDG_RUNTIME_DIR=str(folder)) as server,
        waiting(str(places.keeper_socket)) as keeper,
        waiting(str(places.runtime.parent.parent / "another"), XDG_RUNTIME_DIR=str(tmp_path)),
    ):
        assert {process.pid for process in find_processes(places)} == {server, keeper}


def test_what_was_forgotten_is_named_and_an_empty_runtime_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "wsh-0-0123456789ab").mkdir()
    (tmp_path / "wsh-0-0123456789ab" / "default.start.lock").touch()
    assert find_forgotten(tmp_path) == []
    (tmp_path / "wsh-0-0123456789ab" / "default.sock").touch()
    (tmp_path / "wsh-left").mkdir()
    (tmp_path / "tmp1234").touch()
    (tmp_path / ".org.chromium.x").touch()
    assert find_forgotten(tmp_path) == ["tmp1234", "wsh-0-0123456789ab/default.sock", "wsh-left"]
