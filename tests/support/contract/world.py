"""A whole contract for tests: the real policy engine, the keeper's runner, real sockets and real desktops."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsh.app.headless import HeadlessRunner
from wsh.contract.adapters.pool import AdapterPool, PoolOptions
from wsh.contract.dispatch import Contract, ContractAnswer
from wsh.contract.gate import Gate
from wsh.contract.headless import HeadlessOptions, HeadlessRoute
from wsh.contract.identity import IdentityRegistry
from wsh.contract.interactive import InteractiveOptions, InteractiveRoute
from wsh.contract.policy_source import PolicySource
from wsh.contract.request.alias import CANONICAL_TOOL, Tool
from wsh.contract.runner import CommandRunner, OnOutput, StartedCommand
from wsh.policy import Mode, Policy
from wsh.policy.policy import allow_rules
from wsh.process import KeeperClient, KeeperOptions
from wsh.session.command.output import render_printed
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places

ALLOWED = ("ls", "cat", "echo *", "true", "false", "sleep *", "sh *", "printf *", "env *", "seq *", "pwd", "head *")
HEADLESS: dict[str, Any] = {"mode": "headless", "intent": "execute_command"}
INTERACTIVE: dict[str, Any] = {"mode": "interactive", "intent": "execute_command"}


class NothingRuns:
    """For tests in which nothing may be started."""

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_output: OnOutput
    ) -> StartedCommand:
        raise AssertionError(f"{argv} was started")


@dataclass
class FixedPolicy:
    policy: Policy

    def current(self) -> Policy:
        return self.policy


@dataclass
class Trail:
    entries: list[dict[str, Any]] = field(default_factory=list)

    def append(self, entry: Mapping[str, Any]) -> object:
        self.entries.append(dict(entry))
        return None

    def of(self, trace_id: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["trace_id"] == trace_id]


@dataclass
class World:
    contract: Contract
    trail: Trail
    pool: AdapterPool
    info: Path
    caller: Caller
    policy: FixedPolicy

    async def ask(self, request: object, caller: Caller | None = None, tool: Tool = CANONICAL_TOOL) -> dict[str, Any]:
        return (await self.answer(request, caller, tool)).payload

    async def answer(
        self, request: object, caller: Caller | None = None, tool: Tool = CANONICAL_TOOL
    ) -> ContractAnswer:
        return await self.contract.handle(request, caller or self.caller, tool)

    async def headless(self, command: str, *args: str, **runtime: Any) -> dict[str, Any]:
        execution: dict[str, Any] = {"command": command} | ({"args": list(args)} if args else {})
        return await self.ask({"action": "execute", "invocation": HEADLESS, "execution": execution, "runtime": runtime})

    async def interactive(self, command: str, *args: str, **runtime: Any) -> dict[str, Any]:
        execution: dict[str, Any] = {"command": command} | ({"args": list(args)} if args else {})
        return await self.ask(
            {"action": "execute", "invocation": INTERACTIVE, "execution": execution, "runtime": runtime}
        )

    async def follow(self, action: str, answer: Mapping[str, Any], **target: Any) -> dict[str, Any]:
        return await self.ask({"action": action, "target": {"session_id": answer["identity"]["session_id"]} | target})


def make_policy(headless: Sequence[str] = ALLOWED, interactive: Sequence[str] = (), **more: Any) -> Policy:
    rules = allow_rules(list(headless), Mode.HEADLESS) + allow_rules(list(interactive), Mode.INTERACTIVE)
    return Policy(rules=rules, **more)


@asynccontextmanager
async def opened(
    folder: Path,
    *,
    runner: CommandRunner | None = None,
    policy: Policy | None = None,
    environ: Mapping[str, str] | None = None,
    bundled_path: str | None = None,
    listed_binaries: tuple[str, ...] = (),
    path: str = "/nowhere",
    headless: HeadlessOptions | None = None,
    interactive: InteractiveOptions | None = None,
) -> AsyncIterator[World]:
    """A contract whose desktop, if any, announces itself in `folder`."""
    info = folder / "desktop" / "interactive-terminal.json"
    base = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    fixed, trail, registry = FixedPolicy(policy or make_policy()), Trail(), IdentityRegistry()
    book = PolicySource(fixed)
    gate = Gate(book, trail, home="/home/nobody")
    pool = AdapterPool(
        PoolOptions(
            info,
            base_environ=base,
            bundled_path=bundled_path,
            listed_binaries=listed_binaries,
            on_policy=book.learn,
        )
    )
    by_policy = HeadlessRoute(gate, runner or NothingRuns(), registry, headless)
    by_person = InteractiveRoute(gate, pool, registry, by_policy, render_printed, interactive)
    contract = Contract(registry, by_policy, by_person)
    caller = Caller(
        "agent", "caller-1", "token", connection="stdio:caller-1", cwd=str(folder), environ=dict(environ or {})
    )
    try:
        yield World(contract, trail, pool, info, caller, fixed)
    finally:
        await contract.aclose()


@asynccontextmanager
async def with_keeper(places: Places) -> AsyncIterator[HeadlessRunner]:
    keeper = await KeeperClient.open(places, KeeperOptions(linger_s=1.0))
    try:
        yield HeadlessRunner(keeper, os.environ)
    finally:
        await keeper.stop(grace_ms=0)
        await keeper.aclose()
