"""What the contract costs: a headless `true` through dispatch, validation, policy and audit, beside `execute_command`."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from typing import Any

import uvloop

from bench.row import Row, at_most, at_most_ratio, median
from wsh.app.headless import HeadlessRunner
from wsh.contract.assemble import make_contract
from wsh.contract.execute_command import ExecuteCommand
from wsh.operation.context import ignore_progress
from wsh.policy.audit import Audit
from wsh.policy.file.store import PolicyStore
from wsh.process import KeeperClient, KeeperOptions
from wsh.session.command.output import render_printed
from wsh.wire.caller import Caller
from wsh.wire.caller import Caller as WireCaller
from wsh.wire.setting import load
from wsh.wire.system.place import ensure_private, find_places

ROUNDS = 300
TRUE = {
    "action": "execute",
    "invocation": {"mode": "headless", "intent": "execute_command"},
    "execution": {"command": "true"},
}


CALLER = WireCaller("agent", "bench", "unix", cwd="/", environ={"ALLOWED_COMMANDS": "true"})


def run() -> list[Row]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as home:
        places = find_places({"HOME": home, "XDG_RUNTIME_DIR": home})
        ensure_private(places.config)
        places.policy_file.write_text('[headless]\nallow = ["true"]\n')
        places.policy_file.chmod(0o600)
        settings = load(None, {})
        keeper = await KeeperClient.open(places, KeeperOptions(linger_s=1.0))
        headless = HeadlessRunner(keeper, os.environ)
        audit = Audit(places.audit_log)
        contract = make_contract(
            settings,
            places,
            runner=headless,
            policy=PolicyStore(places.policy_file),
            trail=audit,
            environ=os.environ,
            render=render_printed,
        )
        execute = ExecuteCommand(headless, audit)
        caller = Caller("agent", "bench", "token", connection="bench", cwd="/")

        async def by_contract() -> None:
            answer = await contract.handle(TRUE, caller)
            assert answer.ok, answer.payload

        async def by_execute_command() -> None:
            await execute.run("true", None, CALLER, 10_000, ignore_progress)

        async def by_list() -> None:
            await contract.handle({"action": "list"}, caller)

        try:
            times: dict[Any, list[float]] = {by_contract: [], by_execute_command: [], by_list: []}
            for number in range(ROUNDS):
                for side, taken in times.items():
                    began = time.perf_counter()
                    await side()
                    if number >= 20:
                        taken.append((time.perf_counter() - began) * 1000)
        finally:
            await contract.aclose()
            await keeper.stop(grace_ms=0)
            await keeper.aclose()
    ours, theirs = median(times[by_contract]), median(times[by_execute_command])
    return [
        at_most_ratio("contract", "headless true, p50", ours, theirs, "ms", "execute_command", 2),
        at_most("contract", "list, p50", median(times[by_list]), 1.0, "ms"),
    ]
