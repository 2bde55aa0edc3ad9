"""Whole servers of a fleet under faults: a program's numbered lines are read from another node, and requests are answered from two nodes at once."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.host.fleet.test_server import Machine, make_machine, serving
from tests.support.fleet import DEBIAN_PROGRAM
from tests.support.serving import Reply, RunningServer, start_server
from tests.support.waiting import HANG_S, wait_until
from wsh.host.fleet.deploy import find_program
from wsh.wire.system.place import find_places

pytestmark = pytest.mark.accept

_PRINT = "i=0; while [ ! -e {enough} ]; do i=$((i+1)); echo n$i; sleep 0.02; done; (exit 3)"


class Cable:
    """A TCP connection to NATS that can be cut: everything passes through here."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ends: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()
                    continue
                self._ends |= {near, far}
                for one, other in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=self._carry, args=(one, other), daemon=True))
                    self._threads[-1].start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.discard(one)
        one.close()

    def cut(self) -> None:
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join(HANG_S)
        self._listener.close()


@dataclass
class Work:
    """What goes on while things break. The laptop looks; the node works, is killed, and comes back."""

    laptop: RunningServer
    restart: Callable[[], RunningServer]
    ran: Path
    script: Path
    node: RunningServer
    over: bool = False
    answers: dict[int, list[tuple[str, Reply]]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def ask(self, server: RunningServer, method: str, path: str, body: Any = None) -> Reply | None:
        """None where the server or the fleet is away in this moment."""
        try:
            reply = server.request(method, path, body)
        except (OSError, HTTPException):  # also cut off in the middle of an answer
            return None
        return None if reply.status in (502, 503, 504) else reply

    def read_always(self) -> None:
        """The lines as they come, through the fleet, each from where the last reading ended."""
        path = "/sessions/gpu1%2Fcount/commands"
        while not self.over:
            found = self.ask(self.laptop, "GET", path)
            if found is not None and found.status == 200 and found.json:
                self.read_more(f"{path}/{found.json[-1]['id']}/output")
            time.sleep(0.2)

    def read_more(self, path: str, *, ended: bool = False) -> bool:
        page = self.ask(self.laptop, "GET", f"{path}?offset={len(self.lines)}&limit=5000")
        if page is None or page.status != 200:
            return True
        got = list(page.json["lines"])
        # The newest line of a program that still prints may not be whole yet.
        self.lines += got if ended else got[:-1]
        return bool(got)

    def approve_always(self) -> None:
        number = 0
        with ThreadPoolExecutor(2) as pool:
            while not self.over:
                number += 1
                body = {
                    "action": "execute",
                    "invocation": {"mode": "interactive", "intent": "execute_command"},
                    "execution": {"command": f"sh {self.script} {number}"},
                    "runtime": {"timeout_ms": 100},
                }
                if self.ask(self.node, "POST", "/terminal", body) is not None:
                    self.answer_twice(pool, number)
                time.sleep(0.1)

    def answer_twice(self, pool: ThreadPoolExecutor, number: int) -> None:
        """One place approves, the other declines, both at once."""
        node = self.node
        listed = self.ask(node, "GET", "/approvals")
        if listed is None:
            return
        requests = [r for r in listed.json["requests"] if r["command"].endswith(f" {number}") and r["answerable"]]
        if not requests:
            return
        (one,) = requests
        words = ("approve", "decline") if number % 2 else ("decline", "approve")
        places = ((self.laptop, f"gpu1%2F{one['id']}", words[0]), (node, one["id"], words[1]))
        sent = [
            (
                word,
                pool.submit(self.ask, server, "POST", f"/approvals/{id}", {"digest": one["digest"], "decision": word}),
            )
            for server, id, word in places
        ]
        self.answers[number] = [(word, reply) for word, job in sent if (reply := job.result()) is not None]

    def has_more(self, lines: int) -> bool:
        return len(self.lines) > lines or bool(self.failures)

    def watched(self, work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as problem:
                self.failures.append(problem)

        return run


@contextmanager
def _restarting(machine: Machine, words: tuple[str, ...]) -> Iterator[Callable[[], RunningServer]]:
    places = find_places(machine.environ)

    def restart() -> RunningServer:
        if machine.server is not None:
            machine.server.process.kill()
            machine.server.process.wait()
        machine.server = start_server(places, *words, environ=machine.environ)
        return machine.server

    with serving(machine, *words, killed=True):
        first = machine.server
        try:
            yield restart
        finally:
            if machine.server is not first and machine.server is not None:
                machine.server.stop()


def _find_nats(port: int) -> psutil.Process:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if "nats-server" in process.name() and any(c.laddr.port == port for c in process.net_connections("tcp")):
                return process
    raise AssertionError("no NATS server")


@pytest.mark.torture
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("program", [find_program(), DEBIAN_PROGRAM], ids=["newest", "debian"])
def test_numbered_lines_and_answers_survive_faults(tmp_path: Path, program: str, torture: bool) -> None:
    """Under torture a thousand, or as many as WSH_FAULTS says."""
    faults = int(os.environ.get("WSH_FAULTS", "1000")) if torture else 8
    chance = random.Random(24)
    enough, ran, script = tmp_path / "enough", tmp_path / "ran", tmp_path / "run.sh"
    ran.touch()
    script.write_text(f'echo "$1" >> {ran}\n')
    laptop, gpu = (make_machine(tmp_path / name, WSH_APPROVALS_SERVER="true") for name in ("a", "b"))
    with ExitStack() as closing:
        closing.enter_context(serving(laptop))
        told = laptop.ask("fleet", "up", "--bind", "127.0.0.1:0", "--node", "laptop", "--nats", program)
        closing.callback(laptop.wsh, "fleet", "down")
        port = int(told["url"].rpartition(":")[2])
        cable = Cable(port)
        closing.callback(cable.close)
        made = laptop.ask("fleet", "invite", "gpu1")
        words = ("--join", f"tls://127.0.0.1:{cable.port}", "--credentials", made["file"])
        restart = closing.enter_context(_restarting(gpu, words))
        wait_until(lambda: laptop.get_node("gpu1")["online"], "gpu1 to join")
        body = {"name": "gpu1/count", "command": "bash --norc --noprofile", "cols": 120}
        assert laptop.running.request("POST", "/sessions", body).status == 201
        typed = _PRINT.format(enough=enough).encode() + b"\r"
        assert laptop.running.request("POST", "/sessions/gpu1%2Fcount/input", typed).status == 204
        work = Work(laptop.running, restart, ran, script, gpu.running)
        threads = [threading.Thread(target=work.watched(each)) for each in (work.read_always, work.approve_always)]
        for thread in threads:
            thread.start()
        counted: Counter[str] = Counter()
        try:
            for fault in range(faults):
                kind = chance.choice(("nats", "node", "cut", "cut"))
                counted[kind] += 1
                match kind:
                    case "nats":
                        _find_nats(port).send_signal(signal.SIGKILL)
                        wait_until(
                            lambda: laptop.ask("fleet", "up", "--nats", program)["url"] == told["url"],
                            "NATS to be back",
                        )
                    case "node":
                        work.node = restart()
                    case _:
                        cable.cut()
                if fault % 4 == 3:
                    wait_until(lambda: laptop.get_node("gpu1")["online"], "gpu1 to be back")
                    before = len(work.lines)
                    wait_until(partial(work.has_more, before), "more lines")
                else:
                    time.sleep(chance.uniform(0, 0.2))
        finally:
            work.over = True
            for thread in threads:
                thread.join(HANG_S * 2)
            enough.touch()
        assert not work.failures, work.failures
        _check_lines(work)
        _check_answers(work)
        print(f"{faults} faults {dict(counted)}: {len(work.lines)} lines, {len(work.answers)} requests answered twice")
        assert laptop.running.request("DELETE", "/sessions/gpu1%2Fcount").status == 204


def _check_lines(work: Work) -> None:
    path = "/sessions/gpu1%2Fcount/commands"
    ended: list[Any] = []

    def has_ended() -> bool:
        found = work.ask(work.laptop, "GET", path)
        ended[:] = found.json[-1:] if found is not None and found.status == 200 else []
        return bool(ended) and ended[0]["exit_code"] is not None

    wait_until(has_ended, "the program's end")
    assert ended[0]["exit_code"] == 3
    while work.read_more(f"{path}/{ended[0]['id']}/output", ended=True):
        pass
    assert work.lines == [f"n{number + 1}" for number in range(len(work.lines))]


def _check_answers(work: Work) -> None:
    ran = Counter(map(int, work.ran.read_text().split()))
    assert not [number for number, times in ran.items() if times > 1], "ran twice"
    counted = {number: [word for word, reply in got if reply.status == 200] for number, got in work.answers.items()}
    assert [number for number, words in counted.items() if words], "no answer counted"
    assert not [number for number, words in counted.items() if len(words) > 1], "answered twice"
    assert not [number for number, words in counted.items() if words == ["decline"] and ran[number]], (
        "declined, and ran"
    )
