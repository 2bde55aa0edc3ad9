"""One session and many: reading, starting, killing, waiting, idling, and answering while others flood."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import uvloop

from bench.corpus import write_corpus
from bench.row import Row, at_most, at_most_ratio, interleave, median, percentile
from wsh.session.event import Actor, Output
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.terminal import Terminal
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

Result = TypeVar("Result")
AGENT = Actor("agent", "bench")
MANY, FEW = 1000, 100
"""Memory is compared between few and many sessions: what the programs take by themselves is not a session's."""
FLOODS = 8
FLOOD_KEYS = 400
FLOOD_PAUSE_S = 0.005


def run() -> list[Row]:
    return [*_reads(), *_starts(), *_kills(), *_quiet(), *_floods(), *_idle()]


def _with_registry(work: Callable[[SessionRegistry], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        with tempfile.TemporaryDirectory() as home:
            registry = await SessionRegistry.open(find_places({"HOME": home, "XDG_RUNTIME_DIR": home}), load(None, {}))
            try:
                return await work(registry)
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


async def _ready(registry: SessionRegistry, command: str = "sh") -> Session:
    session = await registry.open_session(SessionSpec(command=command, env={"PS1": "$ "}))
    await session.wait(WaitSpec(text="$", generation=0))
    return session


def _reads() -> list[Row]:
    async def work(registry: SessionRegistry) -> list[Row]:
        session = await registry.open_session(SessionSpec(command="sleep 1000"))
        terminal = session.terminal
        chance = random.Random(1)
        rows = []
        for full in (False, True):
            if full:
                for n in range(10_100):
                    terminal.feed(b"\x1b[3%dmline %d\x1b[0m\r\n" % (n % 8, n))
            for styled, limit in ((True, 0.5), (False, 0.5)):
                times = []
                for _ in range(400):
                    for _ in range(24):
                        terminal.feed(
                            b"\x1b[%d;%dH\x1b[%dm%s\x1b[0m"
                            % (chance.randint(1, 24), chance.randint(1, 60), chance.randint(30, 37), b"changed text")
                        )
                    started = time.perf_counter()
                    terminal.screen(styled=styled)
                    times.append((time.perf_counter() - started) * 1000)
                title = f"{'styled' if styled else 'plain'} 80×24 screen, changed{', full scrollback' if full else ''}"
                rows.append(at_most("read", title, median(times), limit, "ms", "p50"))
        return rows

    return _with_registry(work)


def _starts() -> list[Row]:
    """To the first prompt, both by their command line, with a server up. Ours is Python's, whose start tmux does not pay."""
    from bench.command_line import start_wsh_server, wsh_start_time

    with tempfile.TemporaryDirectory() as home:
        environ = os.environ | {"HOME": home, "XDG_RUNTIME_DIR": home, "PS1": "$ "}
        tmux = ["tmux", "-S", f"{home}/socket", "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "sleep 1000"], check=True, env=environ)
        ours: list[float] = []
        theirs: list[float] = []
        starts: list[float] = []
        with start_wsh_server(environ):
            for n in range(15):
                ours.append(wsh_start_time(environ, n))
                theirs.append(_tmux_start_time(tmux, environ, Path(home), n))
                began = time.perf_counter()
                subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
                starts.append((time.perf_counter() - began) * 1000)
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
    title = f"spawn to first prompt, by command line (tmux {median(theirs):.2f} ms)"
    peer = median(theirs) + median(starts)
    row = at_most_ratio("start", title, median(ours), peer, "ms", "tmux and an interpreter's start", 1.2)
    return [row, _connected_start()]


def _connected_start() -> Row:
    """The same by clients that are connected already: our HTTP door on its socket, and tmux's control mode."""
    from bench.command_line import start_wsh_server

    with tempfile.TemporaryDirectory() as home:
        environ = os.environ | {"HOME": home, "XDG_RUNTIME_DIR": home, "PS1": "$ "}
        tmux = ["tmux", "-S", f"{home}/socket", "-f", "/dev/null"]
        marks = Path(home)
        control = subprocess.Popen(
            [*tmux, "-C", "new-session", "sleep 1000"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ
        )
        ours: list[float] = []
        theirs: list[float] = []
        alone: list[float] = []
        left: list[int] = []
        with start_wsh_server(environ):
            client = socket.socket(socket.AF_UNIX)
            client.connect(f"{home}/wsh/default.sock")
            for n in range(30):
                ours.append(_start_by(marks / f"ours-{n}", lambda command: _post_session(client, command)))
                theirs.append(_start_by(marks / f"theirs-{n}", lambda command: _tell_tmux(control, command)))
                alone.append(
                    _start_by(marks / f"alone-{n}", lambda command: left.append(_start_alone(command, environ)))
                )
            client.close()
        for pid in left:
            os.waitpid(pid, 0)
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
        control.communicate()
    title = f"spawn to first prompt, by a connected client (the shell without a terminal: {median(alone):.2f} ms)"
    return at_most_ratio("start", title, median(ours), median(theirs), "ms", "tmux -C", 0.6)


def _start_by(mark: Path, start: Callable[[str], None]) -> float:
    """Milliseconds until the program that `start` is given runs."""
    started = time.perf_counter()
    start(f"touch {mark}; exec cat")
    while not mark.exists():
        time.sleep(0.0002)
    return (time.perf_counter() - started) * 1000


def _post_session(client: socket.socket, command: str) -> None:
    body = json.dumps({"command": command}).encode()
    client.sendall(
        b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += client.recv(65536)
    head, _, rest = answer.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(rest) < length:
        rest += client.recv(65536)
    assert b" 201 " in head.split(b"\r\n")[0], head


def _start_alone(command: str, environ: dict[str, str]) -> int:
    """The same program as a child of ours: what no terminal server can be quicker than."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    return os.posix_spawn("/bin/sh", ["sh", "-c", command], environ, file_actions=quiet)


def _tell_tmux(control: subprocess.Popen[bytes], command: str) -> None:
    assert control.stdin is not None
    control.stdin.write(f"new-session -d '{command}'\n".encode())
    control.stdin.flush()


def _tmux_start_time(tmux: list[str], environ: dict[str, str], home: Path, n: int) -> float:
    mark = home / f"tmux-{n}"
    started = time.perf_counter()
    subprocess.run([*tmux, "new-session", "-d", "-s", f"s{n}", f"touch {mark}; exec cat"], check=True, env=environ)
    while not mark.exists():
        time.sleep(0.0005)
    return (time.perf_counter() - started) * 1000


def _kills() -> list[Row]:
    async def work(registry: SessionRegistry) -> list[Row]:
        times = []
        for _ in range(30):
            session = await _ready(registry, "bash --norc --noprofile -i")
            started = time.perf_counter()
            await registry.kill(session.name)
            times.append((time.perf_counter() - started) * 1000)
        return [at_most("kill", "an interactive bash", median(times), 50, "ms", "p50")]

    return _with_registry(work)


def _quiet() -> list[Row]:
    async def work(registry: SessionRegistry) -> list[Row]:
        session = await _ready(registry)
        errors = []
        for _ in range(40):
            last = 0.0

            def hear(event: object) -> None:
                nonlocal last
                if isinstance(event, Output):
                    last = time.monotonic()

            stop = session.listeners.add(hear)
            generation = await session.input.send(b"echo x\r", AGENT)
            await session.wait(WaitSpec(quiet_ms=100, generation=generation))
            errors.append(abs(time.monotonic() - last - 0.1) * 1000)
            stop()
        return [at_most("wait", "error of quiescence detection", percentile(errors, 0.99), 5, "ms", "p99 of 100 ms")]

    return _with_registry(work)


async def _echo_times(session: Session, count: int, pause_s: float = 0.0) -> list[float]:
    times = []
    for n in range(count):
        heard = asyncio.Event()
        stop = session.output.tap(lambda _offset, data, heard=heard: heard.set())  # type: ignore[misc]
        started = time.perf_counter()
        await session.input.send(b"%d" % (n % 10), AGENT)
        await asyncio.wait_for(heard.wait(), 10)
        times.append((time.perf_counter() - started) * 1000)
        stop()
        await asyncio.sleep(pause_s)
    return times


def _floods() -> list[Row]:
    """A key's echo while eight floods want the processor; the other is one loop that reads and parses them and does nothing else."""
    with tempfile.TemporaryDirectory() as temporary:
        file = write_corpus(Path(temporary), 4 << 20)["coloured"]
        flood = f"while :; do cat {file}; done"

        async def work(registry: SessionRegistry) -> list[float]:
            for _ in range(FLOODS):
                await registry.open_session(SessionSpec(command=flood))
            session = await registry.open_session(SessionSpec(command="cat"))
            await asyncio.sleep(0.5)
            return await _echo_times(session, FLOOD_KEYS, FLOOD_PAUSE_S)

        found = interleave(
            {
                "ours": lambda: percentile(_with_registry(work), 0.99),
                "bare": lambda: percentile(_echo_in_bare_loop(flood), 0.99),
            },
            3,
        )
    ours, bare = median(found["ours"]), median(found["bare"])
    title = f"while {FLOODS} sessions flood coloured text, p99"
    return [at_most_ratio("echo", title, ours, bare, "ms", "a loop that reads and parses", 1.2)]


def _echo_in_bare_loop(flood: str) -> list[float]:
    """Milliseconds of each echo where one loop reads and parses the same floods."""
    pids: list[int] = []
    times: list[float] = []
    terminals: dict[int, Terminal] = {}
    with select.epoll() as poll:
        fd = -1
        for words in [["sh", "-c", flood]] * FLOODS + [["cat"]]:
            pid, fd = pty.fork()
            if pid == 0:
                os.execvp(words[0], words)
            pids.append(pid)
            poll.register(fd, select.EPOLLIN)
            terminals[fd] = Terminal()
        sent, due = None, time.perf_counter() + 0.5
        while len(times) < FLOOD_KEYS:
            for ready, _ in poll.poll(FLOOD_PAUSE_S):
                terminals[ready].feed(os.read(ready, 65536))
                if ready == fd and sent is not None:
                    now = time.perf_counter()
                    times.append((now - sent) * 1000)
                    sent, due = None, now + FLOOD_PAUSE_S
            if sent is None and time.perf_counter() >= due:
                sent = time.perf_counter()
                os.write(fd, b"%d" % (len(times) % 10))
    for pid in pids:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for fd, terminal in terminals.items():
        os.close(fd)
        terminal.close()
    return times


def _idle() -> list[Row]:
    async def work(registry: SessionRegistry) -> tuple[float, float, float]:
        for _ in range(FEW):
            await registry.open_session(SessionSpec(command="sh", env={"PS1": "$ "}))
        await asyncio.sleep(3)
        programs = _pss_mb(os.getpid()) + _pss_mb(registry.keeper.pid)
        for _ in range(MANY - FEW):
            await registry.open_session(SessionSpec(command="sh", env={"PS1": "$ "}))
        keeper = registry.keeper.pid
        await _settled(os.getpid(), keeper)
        before = _cpu_s(os.getpid()) + _cpu_s(keeper)
        started = time.monotonic()
        await asyncio.sleep(10)
        share = (_cpu_s(os.getpid()) + _cpu_s(keeper) - before) / (time.monotonic() - started) * 100
        memory = (_pss_mb(os.getpid()) + _pss_mb(keeper) - programs) / (MANY - FEW)
        session = await registry.open_session(SessionSpec(command="cat"))
        times = await _echo_times(session, 300, 0.002)
        return memory, share, percentile(times, 0.99)

    memory, share, echo = _with_registry(work)
    tmux_memory, tmux_share = _idle_tmux()
    return [
        at_most(
            "idle",
            f"memory of each session of {MANY}, without the programs' own (tmux: {tmux_memory:.3f} MB)",
            memory,
            0.04,
            "MB PSS",
        ),
        at_most("idle", f"processor of {MANY} sessions (tmux: {tmux_share:.2f} %)", share, 0.2, "% of a core"),
        at_most("idle", f"echo beside {MANY} sessions", echo, 5, "ms", "p99"),
    ]


async def _settled(*pids: int) -> None:
    """Until two seconds have passed without work: what follows the start of a session is not its idling."""
    deadline, used = time.monotonic() + 60, -1.0
    while time.monotonic() < deadline and (now := sum(map(_cpu_s, pids))) != used:
        used = now
        await asyncio.sleep(2)


def _idle_tmux() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as home:
        tmux = ["tmux", "-S", f"{home}/socket", "-f", "/dev/null"]
        for n in range(MANY):
            subprocess.run([*tmux, "new-session", "-d", "-s", f"s{n}", "sh"], check=True)
            if n == FEW - 1:
                pid = int(subprocess.run([*tmux, "display", "-p", "#{pid}"], check=True, capture_output=True).stdout)
                program = _pss_mb(pid)
        time.sleep(3)
        before = _cpu_s(pid)
        time.sleep(5)
        share = (_cpu_s(pid) - before) / 5 * 100
        memory = (_pss_mb(pid) - program) / (MANY - FEW)
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
    return memory, share


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss")
