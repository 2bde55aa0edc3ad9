"""Many callers, a moody desktop, and somebody who keeps killing it: each request is answered once, and truthfully."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapters.test_adapter import desktop_program, ended_afterwards, gone
from tests.support.contract.world import INTERACTIVE, opened
from wsh.bridge.endpoint import find_endpoint
from wsh.contract.interactive import InteractiveOptions
from wsh.contract.reply.taxonomy import BY_CODE
from wsh.wire.caller import Caller

ANSWERS = {
    "ok",
    "cancelled",
    "lost",
    "PM_TERM_DECLINED",
    "PM_TERM_TIMEOUT",
    "PM_TERM_DISCONNECTED",
    "PM_TERM_GUI_UNAVAILABLE",
}


@pytest.mark.torture
async def test_each_request_is_answered_once_and_nothing_runs_unapproved_or_after_it_was_withdrawn(
    tmp_path: Path, torture: bool
) -> None:
    callers, each, kills = (20, 50, 12) if torture else (12, 15, 3)
    journal = tmp_path / "journal"
    journal.touch()
    program = desktop_program(tmp_path, options=f"--script moody --journal {journal}")
    dice = random.Random(7)
    answers: dict[str, str] = {}
    ended_at: dict[str, int] = {}

    async def one(world: Any, caller: Caller, name: str) -> None:
        request = {
            "action": "execute",
            "invocation": INTERACTIVE,
            "execution": {"command": "true", "args": [name]},
            "runtime": {"timeout_ms": dice.randint(60, 500), "spawn_timeout_ms": 20_000},
        }
        call = asyncio.create_task(world.ask(request, caller))
        if dice.random() < 0.2:
            await asyncio.sleep(dice.random() * 0.25)
            call.cancel()
        assert name not in answers
        try:
            answer = await call
            while answer["result"].get("approval") == "pending" if answer["success"] else False:
                follow = {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 200}}
                answer = await world.ask(follow, caller)
            answers[name] = answer["error"]["code"] if answer["error"] else "ok"
            if answer["error"]:
                if answer["error"]["details"].get("request_state") == "started":
                    answers[name] = "lost"  # it ran, and the desktop that knows how it ended is gone
                entry = BY_CODE[answer["error"]["code"]]
                assert answer["fallback"]["strategy"] == entry.strategy
        except asyncio.CancelledError:
            answers[name] = "cancelled"
        ended_at[name] = journal.stat().st_size

    async def calls(world: Any, number: int) -> None:
        caller = Caller(
            "agent",
            f"caller-{number}",
            "token",
            connection=f"stdio:caller-{number}",
            cwd=str(tmp_path),
            environ=world.caller.environ,
        )
        for turn in range(each):
            await one(world, caller, f"{number}-{turn}")

    async def killer(world: Any) -> None:
        for _ in range(kills):
            await asyncio.sleep(0.8 + dice.random())
            endpoint = find_endpoint(world.info)
            if endpoint is not None and endpoint.pid is not None and not gone(endpoint.pid):
                os.kill(endpoint.pid, signal.SIGKILL)

    began = time.monotonic()
    environ = {"PM_INTERACTIVE_TERMINAL_BINARY": program}
    async with (
        opened(
            tmp_path, path=os.environ["PATH"], environ=environ, interactive=InteractiveOptions(max_approval_ms=400)
        ) as world,
        ended_afterwards(world),
    ):
        killing = asyncio.create_task(killer(world))
        await asyncio.gather(*(calls(world, number) for number in range(callers)))
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)

    check(answers, ended_at, journal, callers * each)
    print(f"{len(answers)} requests in {time.monotonic() - began:.1f} s: {dict(Counter(answers.values()))}")


def check(answers: dict[str, str], ended_at: dict[str, int], journal: Path, expected: int) -> None:
    assert len(answers) == expected
    assert set(answers.values()) <= ANSWERS, Counter(answers.values())
    offset = 0
    asked: set[str] = set()
    over: set[str] = set()
    ran: dict[str, int] = {}
    for line in journal.read_text().splitlines(keepends=True):
        what, name = line.split()
        if what == "asked":
            asked.add(name)
        elif what in {"withdrawn", "expired", "declined"}:
            over.add(name)
        elif what == "ran":
            assert name not in ran, f"{name} ran twice"
            assert name in asked, f"{name} ran without a yes"
            assert name not in over, f"{name} ran after it was over"
            ran[name] = offset
        offset += len(line)
    for name, answer in answers.items():
        if answer in {"ok", "lost"}:
            assert name in ran, f"{name} was answered as run and did not run"
        elif answer in {"PM_TERM_DECLINED", "PM_TERM_TIMEOUT", "PM_TERM_GUI_UNAVAILABLE"}:
            assert name not in ran, f"{name} was answered {answer} and ran"
        elif name in ran and answer == "cancelled":
            assert ran[name] < ended_at[name], f"{name} ran after its call was over"
