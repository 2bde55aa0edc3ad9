"""How cost grows with work: each curve with the exponent that fits it, plotted in docs/growth.

Small sizes as it stands; WSH_GROWTH=full takes large ones, and half an hour (10,000 sessions need `kernel.pty.max` and descriptors raised,
which root does for the time; else they are fewer). WSH_GROWTH_CURVES names curves, if not all are wanted. An exponent of 1 is proportional to the work; anything above 1.15, which is more than n log n over these sizes, is a miss.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
import uvloop
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until

from bench.bench_http import run_flood
from bench.corpus import write_corpus
from bench.growth_history import Curve, measure_history
from bench.plot import Point, draw, fit_exponent
from bench.private import private_places
from bench.row import Row, median
from bench.workspace_tree import make_tree
from wsh.policy import PolicyRequest, decide, default_policy
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.visual.stage import Stage
from wsh.visual.viewer.viewers import Viewers
from wsh.wire.setting import load
from wsh.wire.system.place import Places, find_places
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import ToolContext
from wsh.workspace.tool import call_tool

FULL = os.environ.get("WSH_GROWTH") == "full"
CHOSEN = os.environ.get("WSH_GROWTH_CURVES", "").split()
"""Names in `CURVES`; all of them if there are none."""
FOLDER = Path(__file__).parent.parent / "docs" / "growth"
PAGE = FOLDER.with_suffix(".md")
STEEPEST = 1.15
_PAGE_HEAD = """# Growth

How cost grows with work, on logarithmic axes. An exponent of 1 is proportional to the work, 0 is constant; what is above 1.15 is a miss. `python -m bench growth`
draws the curves at small sizes, `WSH_GROWTH=full python -m bench growth` at those of large installations. Times on a busy machine scatter; exponents much less.

"""
AGENT = Actor("agent", "growth")
Result = TypeVar("Result")

LIMITS = {"WSH_SERVER_MAX_SESSIONS": "20000"}
_PTYS = Path("/proc/sys/kernel/pty/max")
_DESCRIPTORS_EACH = 2
"""Of each session in the keeper; the server has one."""
VIEWERS = (1, 4, 16, 64, 256)
RESTORED = (1, 10, 100, 1000) if FULL else (1, 8, 32)
WAITS = (1, 10, 100, 1000, 5000) if FULL else (1, 10, 100, 1000)
LENGTHS = (64, 1024, 8192, 65_000)
INDEXED_MB = (1, 10, 50, 200, 500) if FULL else ()
JOURNALS = (1, 4, 16, 64) if FULL else (1, 4, 16)
SUBSCRIPTIONS = (1, 4, 16, 64)


@contextmanager
def _room_for(wanted: int) -> Iterator[int]:
    """How many sessions there can be: as many as wanted where we may raise the limits of the machine, else what they allow."""
    ptys = _PTYS.read_text()
    try:
        most = wanted * _DESCRIPTORS_EACH + 1000
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < most:
            with suppress(ValueError, OSError):  # an ordinary user, or root in a container
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if int(ptys) < wanted + 1000:
            with suppress(OSError):
                _PTYS.write_text(str(wanted + 1000))
        descriptors = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // _DESCRIPTORS_EACH
        yield min(wanted, descriptors, int(_PTYS.read_text()) - 100)
    finally:
        if _PTYS.read_text() != ptys:
            _PTYS.write_text(ptys)


def run() -> list[Row]:
    """Each curve is drawn when it is there, so that one which fails later takes none of them along."""
    FOLDER.mkdir(exist_ok=True)
    told = _read_page()
    rows: list[Row] = []
    for name, measure in CURVES.items():
        if CHOSEN and name not in CHOSEN:
            continue
        print(f"  {name} …", file=sys.stderr, flush=True)
        for title, x_name, y_name, points in measure():
            exponent = fit_exponent(points)
            file = f"{title.replace(',', '').replace(' ', '-')}.svg"
            (FOLDER / file).write_text(draw(title, x_name, y_name, points), encoding="utf-8")
            shown = ", ".join(f"{x:,.6g}: {y:.3g}" for x, y in points)
            told[title] = f"Exponent {exponent:.2f}. {y_name} by {x_name}: {shown}.\n\n![{title}](growth/{file})\n"
            score = (exponent, "exponent", exponent, f"≤ {STEEPEST}", exponent <= STEEPEST)
            rows.append(Row("growth", f"{title} ({y_name} by {x_name}: {shown})", *score))
        _write_page(told)
    return rows


def _read_page() -> dict[str, str]:
    """What the page tells of each curve now."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:] if PAGE.exists() else []
    return {title: text for title, _, text in (part.partition("\n\n") for part in parts)}


def _write_page(told: dict[str, str]) -> None:
    curves = "\n".join(f"## {title}\n\n{text.rstrip()}\n" for title, text in told.items())
    PAGE.write_text(_PAGE_HEAD + curves, encoding="utf-8")


def _with_registry(work: Callable[[SessionRegistry], Awaitable[Result]]) -> Result:
    gc.collect()
    gc.freeze()  # as a server does when all its rooms are open: else each full collection looks at all modules

    async def main() -> Result:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            registry = await SessionRegistry.open(
                find_places({"HOME": home, "XDG_RUNTIME_DIR": home}), load(None, LIMITS)
            )
            try:
                return await work(registry)
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _sessions() -> list[Curve]:
    memory: list[Point] = []
    spawns: list[Point] = []
    echoes: list[Point] = []

    async def work(registry: SessionRegistry) -> None:
        for count in counts:
            started = time.perf_counter()
            more = count - len(registry.list_sessions())
            for _ in range(more):
                await registry.open_session(SessionSpec(command="cat"))
            spawns.append((count, (time.perf_counter() - started) * 1000 / max(1, more)))
            session = registry.list_sessions()[0]
            times = []
            for _ in range(30):
                heard = asyncio.Event()
                stop = session.output.tap(lambda _offset, _data, heard=heard: heard.set())  # type: ignore[misc]
                began = time.perf_counter()
                await session.input.send(b"x", AGENT)
                await asyncio.wait_for(heard.wait(), 30)
                times.append((time.perf_counter() - began) * 1000)
                stop()
            echoes.append((count, median(times)))
            memory.append((count, _pss_mb(os.getpid()) + _pss_mb(registry.keeper.pid)))

    with _counts() as counts:
        _with_registry(work)
    return [
        ("memory of all sessions", "sessions", "MB", memory),
        ("spawn of one more session", "sessions", "ms", spawns),
        ("echo of a key beside sessions", "sessions", "ms", echoes),
    ]


@contextmanager
def _counts() -> Iterator[list[int]]:
    with _room_for(10_000 if FULL else 300) as most:
        yield [*(count for count in (1, 10, 100, 1000) if count < most), most]


def _lists() -> list[Curve]:
    """As a client asks for it: with what each program waits for, which the keeper looks at."""
    points: list[Point] = []
    with _counts() as counts, private_places() as places:
        with running_server(places, environ={**os.environ, **LIMITS}) as server:
            before = 0
            for count in counts:
                for _ in range(count - before):
                    assert server.request("POST", "/sessions", {"command": "cat"}).status == 201
                before = count
                times = []
                for _ in range(max(5, min(50, 2000 // count))):
                    started = time.perf_counter()
                    assert len(server.get("/sessions")) == count
                    times.append((time.perf_counter() - started) * 1000)
                points.append((count, median(times)))
    return [("list of all sessions", "sessions", "ms", points)]


def _pss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


class _Reader:
    """A viewer that takes everything at once."""

    def is_busy(self) -> bool:
        return False

    def send(self, data: bytes) -> None:
        pass

    def tell(self, message: dict[str, object]) -> None:
        pass

    def dismiss(self, reason: str) -> None:
        pass


def _viewers() -> list[Curve]:
    points: list[Point] = []

    async def work(registry: SessionRegistry) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            file = write_corpus(Path(temporary), 16 << 20)["coloured"]
            for count in VIEWERS:
                session = await registry.open_session(SessionSpec(command=f"sleep 0.3; cat {file}"))
                looking = Viewers(session, Stage(session))
                seen = [looking.attach(_Reader(), 24, 80) for _ in range(count)]
                began = time.process_time()
                await session.wait(WaitSpec(exit=True, max_wait_ms=120_000))
                points.append((count, (time.process_time() - began) * 1000))
                for viewer in seen:
                    looking.detach(viewer)
                await registry.destroy(session)

    _with_registry(work)
    return [("a flood of 16 MB with viewers", "viewers", "ms of processor", points)]


def _waits() -> list[Curve]:
    points: list[Point] = []

    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="cat"))
        for count in WAITS:
            before = session.generation
            waits = [
                asyncio.ensure_future(
                    session.wait(WaitSpec(text=f"word{count}", generation=before, max_wait_ms=60_000))
                )
                for _ in range(count)
            ]
            await asyncio.sleep(0.1)
            began = time.process_time()
            await session.input.send(b"word%d\r" % count, AGENT)
            await asyncio.gather(*waits)
            points.append((count, (time.process_time() - began) * 1000))

    _with_registry(work)
    return [("waits that one line ends", "waits", "ms of processor", points)]


def _policy() -> list[Curve]:
    policy = default_policy()
    points: list[Point] = []
    for length in LENGTHS:
        request = PolicyRequest(command="ls " + "word " * (length // 5))
        times = []
        for _ in range(5):
            began = time.process_time()
            decide(request, policy)
            times.append((time.process_time() - began) * 1000)
        points.append((length, min(times)))
    return [("policy decision by length", "bytes", "ms", points)]


def _restores() -> list[Curve]:
    points: list[Point] = []
    for count in RESTORED:
        with private_places() as places:
            points.append((count, _restore(places, count)))
    return [("restore after kill -9", "sessions of 100 KB each", "s", points)]


def _journals() -> list[Curve]:
    points: list[Point] = []
    for megabytes in JOURNALS:
        with private_places() as places:
            points.append((megabytes, _restore(places, 1, lines=megabytes * 145_000)))
    return [("restore of one session", "MB of journal", "s", points)]


def _subscriptions() -> list[Curve]:
    """What a flood costs the server by the number of those who follow it."""
    points: list[Point] = []
    with private_places() as places, running_server(places) as server:
        for count in SUBSCRIPTIONS:
            began = _processor_ms(server)
            run_flood(server, f"flood{count}", count)
            points.append((count, _processor_ms(server) - began))
    return [("a flood of 60 MB with subscriptions", "subscriptions", "ms of processor", points)]


def _processor_ms(server: RunningServer) -> float:
    used = psutil.Process(server.process.pid).cpu_times()
    return (used.user + used.system) * 1000


def _restore(places: Places, count: int, lines: int = 20_000) -> float:
    first = start_server(places)
    for number in range(count):
        asked = {"name": f"s{number}", "command": f"seq {lines}; echo fil''led; exec cat", "rows": 24, "cols": 80}
        assert first.request("POST", "/sessions", asked).status == 201
    for number in range(count):
        path = f"/sessions/s{number}/screen?format=plain"
        wait_until(lambda path=path: "filled" in str(first.get(path)["lines"]), "its output")  # type: ignore[misc]
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(60)
    began = time.perf_counter()
    with running_server(places, check_left=False) as server:
        for number in range(count):
            server.get(f"/sessions/s{number}/screen?format=plain")
        return time.perf_counter() - began


def _copy_text(source: Path, tree: Path, wanted_mb: float) -> float:
    """Copy files of `source` until there is that much text, over and over where it has less. Megabytes that were copied."""
    files = [(file, file.stat().st_size) for file in sorted(source.rglob("*")) if file.is_file()]
    copied = 0
    for number in itertools.count():
        for file, size in files:
            target = tree / str(number) / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            copied += size
            if copied >= wanted_mb * 1e6:
                return copied / 1e6
    raise AssertionError("the source has no files")


def _index() -> list[Curve]:
    if not INDEXED_MB:
        return []  # minutes
    builds: list[Point] = []
    updates: list[Point] = []
    searches: list[Point] = []
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        source = base / "source"
        make_tree(source)
        for wanted in INDEXED_MB:
            tree = base / f"tree{wanted}"
            megabytes = round(_copy_text(source, tree, wanted))
            places = Places(base / f"r{wanted}", base / f"s{wanted}", base / f"c{wanted}")

            changed = next(tree.rglob("*.py"))

            async def measure(
                places: Places = places, tree: Path = tree, changed: Path = changed
            ) -> tuple[float, float, float]:
                service = WorkspaceService(places, load(None, {}))
                context = ToolContext(str(tree))
                try:
                    began = time.perf_counter()
                    await call_tool(service, "index_build", {"full": True}, context)
                    built = time.perf_counter() - began
                    await asyncio.to_thread(changed.write_text, "changed = True\n")
                    began = time.perf_counter()
                    await call_tool(service, "index_build", {}, context)
                    updated = time.perf_counter() - began
                    took = []
                    for query in ("parse arguments", "connection pool", "event loop", "read file", "warn once"):
                        began = time.perf_counter()
                        await call_tool(service, "search", {"query": query}, context)
                        took.append((time.perf_counter() - began) * 1000)
                    return built, updated, median(took)
                finally:
                    await service.aclose()

            built, updated, took = asyncio.run(measure())
            builds.append((megabytes, built))
            updates.append((megabytes, updated))
            searches.append((megabytes, took))
            shutil.rmtree(tree)
    return [
        ("build of the index", "MB of text", "s", builds),
        ("update of the index after one change", "MB of text", "s", updates),
        ("search for words", "MB of text", "ms", searches),
    ]


CURVES: dict[str, Callable[[], list[Curve]]] = {
    "sessions": _sessions,
    "lists": _lists,
    "viewers": _viewers,
    "waits": _waits,
    "policy": _policy,
    "restores": _restores,
    "journals": _journals,
    "subscriptions": _subscriptions,
    "index": _index,
    "history": measure_history,
}
