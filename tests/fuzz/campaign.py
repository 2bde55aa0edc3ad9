"""Runs cases in children. A child that dies, hangs or raises is a finding: its case is shortened and stored."""

from __future__ import annotations

import mmap
import os
import resource
import select
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fuzz.case import Case, run
from tests.fuzz.generate import Generator, corpora

_NOTE = struct.Struct("<QqQ")  # number of the case, step, bytes fed by this child
_HANG_S = 20.0
_SHORTEN_S = 60.0


@dataclass
class Tally:
    cases: int = 0
    fed: int = 0
    deaths: dict[str, int] = field(default_factory=dict)
    stored: list[Path] = field(default_factory=list)


def _child(work: Callable[[], None], said: int) -> None:
    """Runs in the child only; never returns."""
    code = 0
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        work()
    except BaseException as problem:
        os.write(said, type(problem).__name__.encode()[:100])
        code = 3
    finally:
        os._exit(code)


def attempt(work: Callable[[], None], hang_s: float = _HANG_S) -> str:
    """How a child fares that does `work`. Only processor time counts as hanging, so that a busy machine does not."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        limit = max(1, int(hang_s))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        _child(work, write)
    os.close(write)
    said = b""
    while piece := os.read(read, 200):
        said += piece
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    return _fate(status, said)


def _fate(status: int, said: bytes) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "hang" if number in (signal.SIGXCPU, signal.SIGKILL) else f"signal {number}"
    return said.decode() or ("lived" if status == 0 else f"status {os.waitstatus_to_exitcode(status)}")


def judge(case: Case, hang_s: float = _HANG_S) -> str:
    return attempt(lambda: run(case), hang_s)


def shorten(case: Case, fate: str, limit_s: float = _SHORTEN_S) -> Case:
    """A smaller case with the same fate: fewer steps, then fewer bytes."""
    end = time.monotonic() + limit_s

    def same(other: Case) -> bool:
        return time.monotonic() < end and judge(other, 3 if fate == "hang" else _HANG_S) == fate

    count = max(1, len(case.steps) // 2)
    while count:
        at = 0
        while at < len(case.steps):
            smaller = case.without(at, at + count)
            if same(smaller):
                case = smaller
            else:
                at += count
        count //= 2
    for index in range(len(case.steps)):
        count = max(1, len(case.steps[index].data) // 2)
        while count and case.steps[index].do == "feed":
            at = 0
            while at < len(case.steps[index].data):
                data = case.steps[index].data
                smaller = case.with_data(index, data[:at] + data[at + count :])
                if same(smaller):
                    case = smaller
                else:
                    at += count
            count //= 2
    return case


def campaign(
    first: int, *, seconds: float, limit_bytes: int, store: Path | None, tell: Callable[[str], None], keep: int = 40
) -> Tally:
    """Cases from number `first` on, until the time is up or so many bytes were fed."""
    tally = Tally()
    corpus = corpora()
    note = mmap.mmap(-1, 4096)
    number, end = first, time.monotonic() + seconds
    while time.monotonic() < end and tally.fed < limit_bytes:
        _NOTE.pack_into(note, 0, number, -1, 0)

        fate = _supervise(partial(_run_many, number, end, corpus, note), note)
        at, step, fed = _NOTE.unpack_from(note)
        tally.cases += at - number + (fate != "lived")
        tally.fed += fed
        number = at
        if fate == "lived":
            tell(f"{tally.cases:,} cases, {tally.fed / 1e6:,.0f} MB")
            continue
        case = Generator(number, corpus).case()
        number += 1
        do = case.steps[step].do if 0 <= step < len(case.steps) else "close"
        kind = f"{fate} in {do}"
        tally.deaths[kind] = tally.deaths.get(kind, 0) + 1
        tell(f"case {number - 1}: {kind}")
        if store is not None and tally.deaths[kind] <= 5 and len(tally.stored) < keep:
            path = _store(case, fate, kind, number - 1, store)
            if path is not None:
                tally.stored.append(path)
                tell(f"  stored as {path.name}, {path.stat().st_size} bytes")
    return tally


def _run_many(first: int, end: float, corpus: list[bytes], note: mmap.mmap) -> None:
    """In the child: one case after the other, each noted before it is tried."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    fed = 0
    for number in range(first, first + 20_000):
        if time.monotonic() > end or fed > 64 << 20:
            return
        case = Generator(number, corpus).case()
        run(case, partial(_tell, note, number, fed))
        fed += case.size
        _tell(note, number + 1, fed, -1)


def _tell(note: mmap.mmap, number: int, fed: int, step: int) -> None:
    _NOTE.pack_into(note, 0, number, step, fed)


def _supervise(work: Callable[[], None], note: mmap.mmap) -> str:
    """Like `attempt`, for a child that runs many cases: it hangs when the note stands still."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _child(work, write)
    os.close(write)
    said, before, used = b"", b"", 0.0
    try:
        while True:
            ready, _, _ = select.select([read], [], [], 1.0)
            if ready:
                piece = os.read(read, 200)
                if not piece:
                    break
                said += piece
                continue
            now, cpu = note[: _NOTE.size], _cpu_s(pid)
            if now != before:
                before, used = now, cpu
            elif cpu - used > _HANG_S:
                os.kill(pid, signal.SIGKILL)
    finally:
        os.close(read)
    return _fate(os.waitpid(pid, 0)[1], said)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _store(case: Case, fate: str, kind: str, number: int, folder: Path) -> Path | None:
    if judge(case) != fate:
        return None  # it needed what the cases before had left in memory
    small = shorten(case, fate)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind.replace(' ', '-')}-{number}.json"
    path.write_text(small.dump())
    return path
