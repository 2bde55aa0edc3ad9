"""A desktop end without a window: the library's own listener on a real socket, real programs on real terminals.

It answers each request by a script. Used in-process by tests, and as a program (`python -m tests.support.bridge.scripted`)
where a test must launch, kill and restart it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import pty
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wsh.approval.always import Proposal, RuleChoice, propose
from wsh.approval.answer import AnswerRefused, Pending
from wsh.approval.approver import Order, OutputSink, StartFailed, TypedLineOutcome
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement
from wsh.approval.request import ApprovalRequest, Outcome, Place
from wsh.bridge.endpoint import Endpoint, write_endpoint
from wsh.bridge.frame import PolicyFrame
from wsh.bridge.listener import BridgeListener, ListenerOptions

Script = Callable[[Pending], object]


def approve(pending: Pending) -> object:
    return pending.approve(by="script")


def decline(pending: Pending) -> object:
    return pending.decline("not today", by="script")


def ignore(pending: Pending) -> object:
    return None


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    master: int
    sink: OutputSink


@dataclass
class ScriptedDesktop:
    """Remembers everything that happened, for the test to look at."""

    place: Place = "window"
    place_name: str = "a script"
    script: Script = approve
    judgement: Callable[[ApprovalRequest, Evidence], Judgement] = field(
        default=lambda request, evidence: Judgement("allow")
    )
    policy_text: str | None = None
    cwd: str = "/"
    arrived: list[Pending] = field(default_factory=list)
    closed: list[tuple[str, Outcome, str | None]] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    rules: list[tuple[str, str]] = field(default_factory=list)
    typed: list[tuple[str, str]] = field(default_factory=list)
    running: dict[str, Running] = field(default_factory=dict)
    on_run: Callable[[Order], None] | None = None
    quiet_s: float = 0.3

    def base_environment(self) -> Mapping[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": self.cwd, "LANG": "C.UTF-8"}

    def default_cwd(self) -> str:
        return self.cwd

    async def find_sandbox(self) -> str | None:
        return None

    def shell(self) -> Sequence[str]:
        return ["sh"]

    def judge(self, request: ApprovalRequest, evidence: Evidence) -> Judgement:
        return self.judgement(request, evidence)

    def policy(self) -> PolicyFrame | None:
        if self.policy_text is None:
            return None
        return PolicyFrame(digest=hashlib.sha256(self.policy_text.encode()).hexdigest(), text=self.policy_text)

    def propose_rule(self, pending: Pending) -> Proposal | None:
        return propose(pending.evidence.argv)

    def policy_file(self) -> str:
        return "/etc/scripted.toml"

    def check_rule(self, pattern: str) -> None:
        if not pattern:
            raise AnswerRefused("bad_rule", "That cannot be a rule: it is empty")

    def write_rule(self, choice: RuleChoice, pending: Pending, by: str) -> None:
        self.rules.append((choice.pattern, by))

    def request_arrived(self, pending: Pending) -> None:
        self.arrived.append(pending)
        self.script(pending)

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        self.closed.append((pending.request.id, outcome, reason))

    async def run(self, order: Order, sink: OutputSink) -> None:
        self.orders.append(order)
        if self.on_run is not None:
            self.on_run(order)
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a fork is quick, and tests wait for nothing else
                order.argv,
                executable=order.executable,
                cwd=order.cwd,
                env=dict(order.environment),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        except OSError as problem:
            os.close(master)
            raise StartFailed(str(problem)) from None
        finally:
            os.close(slave)
        os.set_blocking(master, False)
        running = Running(process, master, sink)
        self.running[order.terminal_id] = running
        asyncio.get_running_loop().add_reader(master, self._pump, order.terminal_id)

    def _pump(self, terminal_id: str) -> None:
        running = self.running[terminal_id]
        try:
            data = os.read(running.master, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            running.sink.output(data)
            return
        asyncio.get_running_loop().remove_reader(running.master)
        os.close(running.master)
        del self.running[terminal_id]
        running.sink.exited(running.process.wait())

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome:
        """A desktop whose shells tell nothing: a line is typed, and after a while that is all."""
        self.type_text(terminal_id, text)
        typed()
        await asyncio.sleep(min(wait_s, self.quiet_s))
        return TypedLineOutcome("quiet")

    async def await_line(self, terminal_id: str, line: TypedLineOutcome) -> TypedLineOutcome | None:
        return None

    def type_text(self, terminal_id: str, text: str) -> None:
        self.typed.append((terminal_id, text))
        running = self.running.get(terminal_id)
        if running is None:
            raise StartFailed("the terminal has ended")
        os.write(running.master, (text if text.endswith("\n") else text + "\n").encode())

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        running = self.running.get(terminal_id)
        if running is not None:
            os.killpg(running.process.pid, signal.SIGKILL)
        return []

    def end_all(self) -> None:
        """Leave no program behind."""
        for terminal_id, running in list(self.running.items()):
            asyncio.get_running_loop().remove_reader(running.master)
            os.killpg(running.process.pid, signal.SIGKILL)
            running.process.wait()
            os.close(running.master)
            del self.running[terminal_id]


@asynccontextmanager
async def listening(
    desktop: ScriptedDesktop, options: ListenerOptions | None = None, token: str | None = None
) -> AsyncIterator[tuple[BridgeListener, Endpoint]]:
    listener = BridgeListener(desktop, options or ListenerOptions(port=0), token)
    endpoint = await listener.start()
    try:
        yield listener, endpoint
    finally:
        await listener.aclose()
        desktop.end_all()


SCRIPTS: dict[str, Script] = {"approve": approve, "decline": decline, "ignore": ignore}


class Moody:
    """Answers by dice: at once, late, never, no, or by hanging up on somebody. Notes what counted."""

    def __init__(self, journal: Path, seed: int) -> None:
        self.journal = journal
        self.dice = random.Random(seed)
        self.listener: BridgeListener | None = None

    def note(self, what: str, name: str) -> None:
        with open(self.journal, "a") as file:
            file.write(f"{what} {name}\n")

    def answer(self, pending: Pending) -> object:
        roll = self.dice.random()
        if roll < 0.35:
            self.say_yes(pending)
        elif roll < 0.6:
            asyncio.get_running_loop().call_later(self.dice.random() * 0.4, self.say_yes, pending)
        elif roll < 0.8:
            pending.decline("dice")
        elif roll < 0.815 and self.listener is not None:
            self.dice.choice(list(self.listener._peers)).stream.abort()
        return None

    def say_yes(self, pending: Pending) -> None:
        # noted before the answer: what runs must find its yes in the journal
        self.note("asked", pending.evidence.argv[-1])
        if pending.approve(by="dice"):
            self.note("approved", pending.evidence.argv[-1])


class MoodyDesktop(ScriptedDesktop):
    moody: Moody

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        super().request_closed(pending, outcome, reason)
        if outcome in {"withdrawn", "expired", "declined"}:
            self.moody.note(outcome, pending.evidence.argv[-1])


async def _serve(arguments: argparse.Namespace) -> None:
    desktop = ScriptedDesktop(script=SCRIPTS.get(arguments.script, ignore), cwd=arguments.cwd)
    moody: Moody | None = None
    if arguments.script == "moody":
        moody = Moody(arguments.journal, os.getpid())
        desktop = MoodyDesktop(cwd=arguments.cwd, script=moody.answer)
        desktop.moody = moody
        desktop.on_run = lambda order: moody.note("ran", order.argv[-1])
    token = os.environ.get("PM_INTERACTIVE_TERMINAL_TOKEN") or None
    options = ListenerOptions(
        host=arguments.host, port=arguments.port, heartbeat_s=1.0, page_answers=arguments.page_answers
    )
    async with listening(desktop, options, token) as (listener, endpoint):
        if moody is not None:
            moody.listener = listener
        if arguments.info is not None:
            written = Endpoint(endpoint.host, endpoint.port, endpoint.token, os.getpid())
            write_endpoint(arguments.info, written)
        print(f"listening {endpoint.port}", flush=True)
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await stop.wait()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", choices=[*SCRIPTS, "moody"], default="approve")
    parser.add_argument("--info", type=Path)
    parser.add_argument("--cwd", default="/")
    parser.add_argument("--page-answers", action="store_true", help="take answers from a server's page")
    parser.add_argument("--journal", type=Path, help="where a moody desktop notes what happened")
    asyncio.run(_serve(parser.parse_args(argv)))


if __name__ == "__main__":
    main(sys.argv[1:])
