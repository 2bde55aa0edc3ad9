"""Folders that cannot be had and output that cannot be written: one line that says so, never a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import find_processes
from tests.support.warm import run_warm
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    done = run_warm([*WSH, *words], text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def put_file_at(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.is_dir():
        folder.rmdir()
    folder.write_text("")


@pytest.mark.parametrize("which", ["runtime", "state", "config"])
def test_a_file_where_a_folder_should_be_is_named_and_nothing_is_started(places: Places, which: str) -> None:
    folder: Path = getattr(places, which)
    put_file_at(folder)
    for words in (("server",), ("new",), ("new", "--json")):
        done = run(*words)
        assert done.returncode in {2, 6} and "wsh" in done.stderr
    assert str(folder) in run("server").stderr
    found = run("doctor")
    assert found.returncode == 1 and f"WRONG {folder}" in found.stdout
    assert find_processes(places) == []


def test_a_parent_that_is_a_file_is_named_too(places: Places) -> None:
    parent = places.state.parent
    put_file_at(parent)
    assert str(parent) in run("server").stderr
    assert str(places.state) in run("doctor").stdout


def test_output_that_cannot_be_written_is_said_in_a_line(places: Places) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*WSH, "config"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "No space left" in done.stderr
