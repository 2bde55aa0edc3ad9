"""An approved line that waits for its turn to be typed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from tests.approval.test_race import RacePlace
from tests.support.bridge.talk import ask
from tests.support.waiting import until
from wsh.approval.approver import TypedLineOutcome
from wsh.approval.ledger import Ledger
from wsh.approval.queue import ApprovalQueue, TerminalState
from wsh.approval.request import ApprovalRequest


class BusyTerminal(RacePlace):
    """Types a line when its turn has come."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.turn = asyncio.Event()
        self.end = asyncio.Event()
        self.waits = False
        self.lines: list[str] = []

    def look_up(self, terminal_id: str) -> TerminalState:
        return "running"

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome:
        self.waits = True
        await self.turn.wait()
        self.lines.append(text)
        typed()
        await self.end.wait()
        return TypedLineOutcome("quiet")


async def approve(world: BusyTerminal, queue: ApprovalQueue) -> ApprovalRequest:
    request = ask(kind="send", terminal_id="t", command="ls")
    queue.admit(request)
    await until(lambda: request.id in world.pending, "the card")
    assert world.pending[request.id].approve()
    return request


async def test_a_line_that_waits_for_its_turn_can_be_taken_back() -> None:
    world = BusyTerminal()
    queue = ApprovalQueue(world, Ledger(), world)
    request = await approve(world, queue)
    await until(lambda: world.waits, "the line to wait")
    queue.withdraw(request.id, "cancelled")
    queue.withdraw(request.id, "cancelled")
    await until(lambda: request.id in world.ends, "its end")
    (end,) = world.ends[request.id]
    assert (end.outcome, end.reason) == ("withdrawn", "cancelled") and world.closed[request.id] == 1
    world.turn.set()
    await until(lambda: not world.tasks, "nothing is under way")
    assert world.lines == []


async def test_a_line_that_was_typed_cannot_be_taken_back() -> None:
    world = BusyTerminal()
    queue = ApprovalQueue(world, Ledger(), world)
    request = await approve(world, queue)
    await until(lambda: world.waits, "the line to wait")
    world.turn.set()
    await until(lambda: world.lines, "the line")
    queue.withdraw(request.id, "cancelled")
    await until(lambda: request.id in world.ends, "its end")
    world.end.set()
    await until(lambda: not world.tasks, "nothing is under way")
    assert [end.outcome for end in world.ends[request.id]] == ["approved"] and world.lines == ["ls"]


async def test_a_connection_that_ends_right_after_the_yes_leaves_nothing_waiting() -> None:
    class Gone(BusyTerminal):
        def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            task = super().spawn(work, name)
            if name == "approval-line":
                task.cancel()
            return task

    world = Gone()
    queue = ApprovalQueue(world, Ledger(), world)
    request = await approve(world, queue)
    await until(lambda: request.id in world.ends, "its end")
    await until(lambda: not world.tasks, "nothing is under way")
    (end,) = world.ends[request.id]
    assert end.outcome == "refused" and not world.waits
