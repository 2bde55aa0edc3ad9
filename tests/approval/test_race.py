"""Window, page, command line, expiry and withdrawal at once: each request has exactly one outcome, and runs at most once."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from tests.support.bridge.talk import ask
from tests.support.waiting import until
from wsh.approval.always import Proposal, RuleChoice
from wsh.approval.answer import Answer, AnswerRefused, Pending, take_answer
from wsh.approval.approver import Order, OutputSink, TypedLineOutcome
from wsh.approval.card import Card
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement
from wsh.approval.ledger import Ledger
from wsh.approval.queue import ApprovalQueue, Rejected, Settled, TerminalState
from wsh.approval.request import ApprovalRequest, Outcome, Place, Where


class Quiet(OutputSink):
    def output(self, data: bytes) -> None: ...

    def exited(self, exit_code: int | None) -> None: ...


class RacePlace:
    """Both ends of a queue, in one: it shows to racers, runs nothing, and counts."""

    place: Place = "server"
    place_name = "a race"
    name = "racer"
    session = "race"
    trail = ""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.pending: dict[str, Pending] = {}
        self.ends: dict[str, list[Settled]] = {}
        self.orders: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.surprises: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.judgement = Judgement("ask")

    def base_environment(self) -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin"}

    def default_cwd(self) -> str:
        return "/"

    async def find_sandbox(self) -> str | None:
        return None

    def shell(self) -> Sequence[str]:
        return ["sh"]

    def judge(self, request: ApprovalRequest, evidence: Evidence) -> Judgement:
        return self.judgement

    def request_arrived(self, pending: Pending) -> None:
        self.pending[pending.request.id] = pending

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        self.closed[pending.request.id] += 1

    def propose_rule(self, pending: Pending) -> Proposal | None:
        return None

    def policy_file(self) -> str:
        return "/dev/null"

    def check_rule(self, pattern: str) -> None: ...

    def write_rule(self, choice: RuleChoice, pending: Pending, by: str) -> None: ...

    async def run(self, order: Order, sink: OutputSink) -> tuple[int, int] | None:
        self.orders[order.terminal_id] += 1
        return None

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome:
        return TypedLineOutcome("quiet")

    async def await_line(self, terminal_id: str, line: TypedLineOutcome) -> TypedLineOutcome | None:
        return None

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        return []

    def look_up(self, terminal_id: str) -> TerminalState:
        return "unknown"

    def open_terminal(self, request: ApprovalRequest) -> OutputSink:
        return Quiet()

    def forget_terminal(self, request: ApprovalRequest) -> None: ...

    def take_card(self, card: Card) -> None: ...

    def take_end(self, request: ApprovalRequest, settled: Settled) -> None:
        self.ends.setdefault(request.id, []).append(settled)

    def take_start(self, request: ApprovalRequest) -> None: ...

    def take_line(self, request: ApprovalRequest, line: TypedLineOutcome) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


async def race(queue: ApprovalQueue, world: RacePlace, request: ApprovalRequest) -> None:
    queue.admit(request)
    await until(lambda: request.id in world.pending or request.id in world.ends, "the card, or its end")
    pending = world.pending.get(request.id)

    def give(where: Where, yes: bool) -> None:
        if pending is None:
            return
        try:
            take_answer(pending, Answer(pending.evidence.binding, yes, where, where), world)
            world.counted[request.id] += 1
        except AnswerRefused as refused:
            if refused.code != "settled":
                world.surprises.append(refused.message)

    def withdraw() -> None:
        try:
            queue.withdraw(request.id, world.dice.choice(["cancelled", "timeout", "caller_gone"]))
        except Rejected:
            raise AssertionError("a request was forgotten") from None

    # The window answers from a thread of its own, everybody else on the loop; who comes first is for the dice.
    window = threading.Thread(target=give, args=("window", world.dice.random() < 0.5))
    loop_moves: list[Callable[[], None]] = [
        lambda: give("page", world.dice.random() < 0.5),
        lambda: give("shell", world.dice.random() < 0.5),
    ]
    if world.dice.random() < 0.5:
        loop_moves.append(withdraw)
    world.dice.shuffle(loop_moves)
    window.start()
    for move in loop_moves:
        if world.dice.random() < 0.3:
            await asyncio.sleep(0)
        move()
    window.join()
    await until(lambda: request.id in world.ends, "its end")


@pytest.mark.torture
@pytest.mark.timeout(1800)
async def test_every_race_has_exactly_one_outcome_and_nothing_runs_twice_or_unapproved(torture: bool) -> None:
    races = 10_000 if torture else 400

    world = RacePlace(random.Random(19))
    queue = ApprovalQueue(world, Ledger(10_000), world)
    requests = []
    for turn in range(0, races, 200):
        batch = [
            ask("true", str(turn + at), deadline_ms=world.dice.choice([3, 30, 60_000, 60_000])) for at in range(200)
        ]
        requests += batch
        await asyncio.gather(*(race(queue, world, request) for request in batch))
    await until(lambda: not world.tasks, "nothing is under way")
    outcomes: Counter[str] = Counter()
    for request in requests:
        ends = world.ends[request.id]
        assert len(ends) == 1, (request.id, ends)
        (end,) = ends
        outcomes[end.outcome] += 1
        ran = world.orders[request.terminal_id]
        assert ran == (end.outcome == "approved"), (end, ran)
        assert world.counted[request.id] <= 1
        if end.outcome in ("approved", "declined"):
            assert world.counted[request.id] == 1 and end.where in ("window", "page", "shell")
        assert world.closed[request.id] == (request.id in world.pending)
    assert queue.ledger.pending == 0 and world.surprises == []

    assert sum(outcomes.values()) == races and {"approved", "declined"} <= set(outcomes), outcomes
    print(dict(outcomes))
