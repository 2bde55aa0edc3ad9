"""`--workers N`: the tests in N processes that are forked when all tests are known.

pytest-xdist starts an interpreter for each worker, which imports and collects everything once more: six of them take 46 s of processor time
for what is needed once. Here a worker is a copy of the process that has collected. A file's tests stay together, and a worker stays in a folder
while there is something to do in it, so the browsers, windows and servers that a folder's tests share are started by few workers.

A worker that dies fails the test that it was at; another one takes what it had left.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from _pytest.capture import FDCapture

Unit = list[int]
"""Numbers of tests that one worker runs one after the other."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("--workers")
    if not count or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors while collecting")
    _Pool(session, count).run()
    return True


class Plan:
    """What is still to do, by folder. The folders that come first are begun first."""

    def __init__(self, items: Sequence[pytest.Item], root: Path) -> None:
        files: dict[Path, Unit] = {}
        for number, item in enumerate(items):
            files.setdefault(item.path, []).append(number)
        self._folders: dict[Path, list[Unit]] = {}
        for path, unit in files.items():
            # Two levels: a room's own folder with those in it, which share what it shares.
            folder = Path(*path.relative_to(root).parent.parts[:2]) if path.is_relative_to(root) else path.parent
            self._folders.setdefault(folder, []).append(unit)
        self._places: dict[int, Path] = {}
        """The folder that each worker is in."""

    def take(self, worker: int) -> Unit | None:
        """The next file for a worker: of its folder, else of one that has no worker, else of the one with most files for each worker."""
        folder = self._places.get(worker)
        if folder is None or not self._folders.get(folder):
            left = [path for path, units in self._folders.items() if units]
            if not left:
                return None
            at = [place for other, place in self._places.items() if other != worker]
            free = [path for path in left if path not in at]
            folder = free[0] if free else max(left, key=lambda path: len(self._folders[path]) / at.count(path))
            self._places[worker] = folder
        return self._folders[folder].pop(0)

    def give_back(self, worker: int, unit: Unit) -> None:
        self._folders[self._places[worker]].insert(0, unit)


@dataclass(frozen=True)
class _Node:
    """How pytest's own reporters know that reports of several workers come in turn, and of which."""

    id: str

    @property
    def gateway(self) -> _Node:
        return self

    @property
    def _workerinfocache(self) -> str:
        """Stands above a failure."""
        return f"[{self.id}]"


@dataclass
class _Worker:
    number: int
    pid: int
    line: Connection
    left: Unit = field(default_factory=list)
    """What it has been given and has not begun."""
    current: int | None = None
    reported: bool = True


class _Pool:
    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._config = session.config
        self._plan = Plan(session.items, session.config.rootpath)
        self._workers: dict[Connection, _Worker] = {}
        self._free = list(range(count))
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # reports of several files come in turn

    def run(self) -> None:
        try:
            for number in self._free:
                self._start(number)
            while self._workers:
                for line in wait(list(self._workers)):
                    assert isinstance(line, Connection)
                    self._hear(self._workers[line])
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGTERM)
                os.waitpid(worker.pid, 0)

    def _start(self, number: int) -> None:
        assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing after a fork"
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for line in self._workers:
                line.close()
            _work(self._session, number, theirs)
        theirs.close()
        self._workers[ours] = _Worker(number, pid, ours)

    def _hear(self, worker: _Worker) -> None:
        try:
            told, value = worker.line.recv()
        except (EOFError, ConnectionResetError):
            self._bury(worker)
            return
        match told:
            case "next":
                unit = None if self._session.shouldfail or self._session.shouldstop else self._plan.take(worker.number)
                worker.left += unit or []
                worker.line.send(unit)
            case "begin":
                worker.left.remove(value)
                worker.current, worker.reported = value, False
            case "report":
                report = self._config.hook.pytest_report_from_serializable(config=self._config, data=value)
                self._tell(worker, report)
                worker.reported = worker.reported or report.when == "teardown"

    def _tell(self, worker: _Worker, report: pytest.TestReport) -> None:
        report.node = _Node(f"w{worker.number}")  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)

    def _bury(self, worker: _Worker) -> None:
        """It has ended: for lack of work, or by a death that the test it was at is to blame for."""
        del self._workers[worker.line]
        worker.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if status == 0 and not worker.left:
            return
        if worker.current is None:
            raise RuntimeError(f"worker {worker.number} ended with {status} before its first test")
        item = self._session.items[worker.current]
        when: Literal["call", "teardown"] = "teardown" if worker.reported else "call"
        problem = (
            f"worker {worker.number} ended with {status} in this test, or in what is shared with the tests before it"
        )
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", problem, when)
        self._tell(worker, report)
        if worker.left:
            self._plan.give_back(worker.number, worker.left)
        self._start(worker.number)


def _work(session: pytest.Session, number: int, line: Connection) -> None:
    """The life of a worker; it never returns."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        _begin_anew(session.config, number, line)
        items = session.items
        unit = _ask(line)
        while unit:
            following: Unit | None = None
            for place, index in enumerate(unit):
                is_last = place == len(unit) - 1
                # What the tests share is closed after the last of them, so what comes next has to be known before.
                following = _ask(line) if is_last else unit[place + 1 :]
                line.send(("begin", index))
                after = items[following[0]] if following else None
                session.config.hook.pytest_runtest_protocol(item=items[index], nextitem=after)
            unit = following
        status = 0
    except KeyboardInterrupt:
        pass
    except BaseException:  # pytest's own ways to end are no Exceptions; the parent hears of the status
        traceback.print_exc(file=sys.__stderr__)
    finally:
        atexit._run_exitfuncs()
        sys.__stdout__.flush()  # type: ignore[union-attr]
        sys.__stderr__.flush()  # type: ignore[union-attr]
        os._exit(status)


def _ask(line: Connection) -> Unit | None:
    line.send(("next", None))
    unit: Unit | None = line.recv()
    return unit


def _begin_anew(config: pytest.Config, number: int, line: Connection) -> None:
    """What a process must have of its own: where it writes, its folder for files, and whom it tells of its tests."""
    _capture_into_own_files(config)
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folder = factory.getbasetemp() / f"w{number}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    factory._basetemp = folder
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.unregister(reporter)
        # Whoever wants to tell of a hang asks for its writer.
        config.pluginmanager.register(SimpleNamespace(_tw=reporter._tw), "terminalreporter")
    config.pluginmanager.register(_Teller(config, line), "teller")


def _capture_into_own_files(config: pytest.Config) -> None:
    """What is captured goes into files of this process, under the descriptors that there are: modules that were imported with the tests keep `sys.stderr`."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    for part in () if capture is None else (capture._global_capturing.out, capture._global_capturing.err):
        if isinstance(part, FDCapture):
            with tempfile.TemporaryFile() as own:
                os.dup2(own.fileno(), part.tmpfile.fileno())


class _Teller:
    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config = config
        self._line = line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(("report", told))
