"""The headless route: the policy's gate, then the runner. No window, no bridge, no shell.

A command that outlives the call's wait goes on and is `accepted`; its output stays readable under its session. A caller that
cancels the call that started it kills its tree.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from wsh.contract.cleanup import finish_cleanup
from wsh.contract.gate import Gate, blocked
from wsh.contract.identity import Identity, IdentityRegistry
from wsh.contract.output.log import OutputLog
from wsh.contract.reply.fault import ContractFault, bad_field
from wsh.contract.reply.response import Outcome
from wsh.contract.reply.result import make_result, wait_for_news
from wsh.contract.request.correlation import Correlated, make_id
from wsh.contract.request.model import ContractRequest, Execution
from wsh.contract.request.policy_request import find_cwd, make_policy_request, no_cwd, result_entry, speak
from wsh.contract.runner import CommandRunner, StartedCommand, abandon
from wsh.policy import Action, Effect, Verdict
from wsh.wire.caller import Caller
from wsh.wire.error import CwdNotFound, InvalidEnvironment, ProgramNotFound, Refused

log = logging.getLogger("wsh.contract")


@dataclass(frozen=True)
class HeadlessOptions:
    max_output_bytes: int = 10 * 1024 * 1024
    reply_bytes: int = 1024 * 1024
    """Output carried by one answer; the rest is read from `next_cursor` on."""


class HeadlessRoute:
    def __init__(
        self,
        gate: Gate,
        runner: CommandRunner,
        registry: IdentityRegistry,
        options: HeadlessOptions | None = None,
        new_id: Callable[[str], str] = make_id,
    ) -> None:
        self.gate = gate
        self.runner = runner
        self.registry = registry
        self.options = options or HeadlessOptions()
        self.new_id = new_id
        self._watchers: set[asyncio.Task[None]] = set()

    def ask(self, request: ContractRequest, caller: Caller) -> Verdict:
        """What the policy says to running this headless; runs nothing."""
        cwd = find_cwd(request, caller)
        question = make_policy_request(request, caller, cwd, "headless", Action.EXECUTE, self.gate.home)
        return self.gate.weigh(question, caller)

    async def execute(self, request: ContractRequest, caller: Caller, ids: Correlated) -> Outcome:
        execution = request.execution
        assert execution is not None and execution.command is not None
        cwd = find_cwd(request, caller)
        question = make_policy_request(request, caller, cwd, "headless", Action.EXECUTE, self.gate.home)
        session_id = self.new_id("sess")
        verdict = self.gate.decide(question, caller, ids, session_id)
        if verdict.effect is not Effect.ALLOW or len(verdict.argv) != 1:
            raise blocked(verdict)
        identity = Identity(
            session_id=session_id,
            terminal_id=None,
            mode="headless",
            owner=caller.id,
            workspace_id=request.runtime.workspace_id,
            caller_surface=request.compat.caller_surface,
            command=speak(execution),
            argv=verdict.argv[0],
            cwd=cwd,
            trace_id=ids.trace_id,
            started=time.time(),
            log=OutputLog(self.options.max_output_bytes),
        )
        self.registry.add(identity)
        starting = asyncio.ensure_future(self._start(list(verdict.argv[0]), cwd, execution, identity))
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await finish_cleanup(abandon(starting))
            self.registry.remove(identity)
            raise
        except Exception:
            self.registry.remove(identity)
            raise
        watcher = asyncio.create_task(self._watch(identity, started, request, caller, ids), name="contract-headless")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        try:
            await asyncio.wait({watcher}, timeout=request.timeout_ms / 1000)
        except asyncio.CancelledError:
            identity.terminated = True
            await finish_cleanup(started.kill())
            await finish_cleanup(asyncio.wait({watcher}))
            raise
        return Outcome("accepted" if identity.running else "completed", self._result(identity, 0), identity.to_wire())

    async def _start(self, argv: list[str], cwd: str, execution: Execution, identity: Identity) -> StartedCommand:
        try:
            started = await self.runner.start(argv, cwd=cwd, env=execution.env or {}, on_output=identity.log.append)
        except ProgramNotFound:
            raise bad_field(
                "execution.command", f"there is no program {argv[0]!r} that can be run here", reason="program_not_found"
            ) from None
        except CwdNotFound:
            raise no_cwd(cwd) from None
        except Refused as problem:
            message = problem.message
            raise ContractFault("PM_TERM_BLOCKED_DESTRUCTIVE", message, reason="refused", **problem.facts) from None
        except InvalidEnvironment as problem:
            raise bad_field("execution.env", problem.message, reason="invalid_env") from None
        identity.handle = started
        identity.facts["pid"] = started.pid
        return started

    async def _watch(
        self, identity: Identity, started: StartedCommand, request: ContractRequest, caller: Caller, ids: Correlated
    ) -> None:
        """Follow a command to its end, also when no caller waits any more."""
        began = time.monotonic()
        limit = self.gate.lifetime_ms(caller)
        try:
            if not await started.wait(limit or None):
                identity.warning = f"Ended by the policy's lifetime limit of {limit} ms."
                identity.terminated = True
                await started.kill()
            if started.result.signal is not None:
                identity.facts["signal"] = started.result.signal
            identity.end(started.result.exit_code)
        except Exception:
            log.exception("headless command lost, trace %s", ids.trace_id)
            identity.facts["lost"] = True
            identity.end(None)
        finally:
            await started.aclose()
            identity.handle = None  # what is kept of an ended command is its output
        self.gate.record(result_entry(identity, caller, ids, round((time.monotonic() - began) * 1000)))

    async def read_output(self, identity: Identity, request: ContractRequest) -> Outcome:
        assert request.target is not None
        cursor = request.target.cursor
        if request.runtime.timeout_ms is not None:
            await wait_for_news(identity, cursor, request.runtime.timeout_ms / 1000)
        return Outcome(
            "accepted" if identity.running else "completed", self._result(identity, cursor), identity.to_wire()
        )

    async def terminate(self, identity: Identity, request: ContractRequest) -> Outcome:
        survivors: list[int] = []
        if identity.running:
            started: StartedCommand = identity.handle
            identity.terminated = True
            survivors = [pid for pid, _ in (await started.kill()).survivors]
            if not survivors:
                while identity.running:
                    await identity.log.changed()
        result = self._result(identity, identity.log.end)
        result["terminated"] = not identity.running
        if survivors:
            result["survivors"] = survivors
        return Outcome("accepted" if identity.running else "completed", result, identity.to_wire())

    def _result(self, identity: Identity, cursor: int | None) -> dict[str, object]:
        return make_result(identity, identity.log.read(cursor, self.options.reply_bytes))

    async def aclose(self) -> None:
        """End every headless command of this server."""
        for identity in self.registry.list_all():
            if identity.mode == "headless" and identity.running and identity.handle is not None:
                await identity.handle.kill()
        await asyncio.gather(*self._watchers, return_exceptions=True)
