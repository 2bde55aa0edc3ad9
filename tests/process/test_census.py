"""The walk over all processes that tells which of them are a child's: whom it reads, and whom it believes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from wsh.process.keeper.loop import Loop
from wsh.process.keeper.tree import mark
from wsh.process.keeper.tree.mark import Census, Count, choose_base

FAMILY = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; print(1, flush=True); sys.stdin.read()'])"


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    """A process with one child. Neither bears a mark."""
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        assert running.stdout.readline() == b"1\n"
        yield running
        running.stdin.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes whose limits were read."""
    read: set[int] = set()
    ordinary = mark.read_marks

    def note(pid: int) -> tuple[int, ...] | None:
        read.add(pid)
        return ordinary(pid)

    monkeypatch.setattr(mark, "read_marks", note)
    return read


def walk(census: Census, *, trace: bool = True) -> Count:
    told: list[Count] = []
    census.ask(told.append, trace=trace)
    while census._step():
        pass
    return told[0]


def test_a_process_that_was_never_ours_is_not_examined_again(leader: subprocess.Popen[bytes], read: set[int]) -> None:
    census = Census(Loop(), choose_base(), {leader.pid: 5})
    first = walk(census)
    assert leader.pid in first.alive[5] and len(first.alive[5]) == 2, "the leader and its child, which has no mark"
    assert {os.getpid(), os.getppid()} <= read
    for trace in (True, False, True):
        read.clear()
        again = walk(census, trace=trace)
        assert not {os.getpid(), os.getppid(), 1} & read
        if trace:
            assert sorted(again.alive[5]) == sorted(first.alive[5]), "descendants are traced each time"


def test_a_number_that_is_used_again_is_examined(leader: subprocess.Popen[bytes], read: set[int]) -> None:
    census = Census(Loop(), choose_base(), {leader.pid: 5})
    first = walk(census)
    [child] = [pid for pid in first.alive[5] if pid != leader.pid]
    assert child not in census._outside and leader.pid not in census._outside
    census._outside[child] = b"1"  # as if it had been that of a process that began with the machine
    assert child in walk(census).alive[5]


def test_a_parent_that_began_later_than_its_child_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    census = Census(Loop(), choose_base(), {})
    walk(census)
    assert os.getpid() in census._outside
    ordinary = mark.read_stat

    def with_young_parent(pid: int) -> list[bytes] | None:
        stat = ordinary(pid)
        return stat if stat is None or pid != os.getppid() else [*stat[:19], b"%d" % (1 << 60), *stat[20:]]

    monkeypatch.setattr(mark, "read_stat", with_young_parent)
    census = Census(Loop(), choose_base(), {})
    walk(census)
    assert os.getpid() not in census._outside
