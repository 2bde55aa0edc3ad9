"""One command without its sandbox: asked of a person, by doors whose callers do not speak the contract.

A call that waits may end before the answer. The same call again goes on with the same request, until its end was told; then it is a new one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from wsh.contract.dispatch import Contract
from wsh.contract.identity import Identity
from wsh.contract.output.observer import Attached
from wsh.contract.reply.fault import ContractFault
from wsh.contract.reply.response import Outcome
from wsh.contract.reply.result import wait_for_news
from wsh.contract.request.correlation import correlate
from wsh.contract.request.model import MAX_TIMEOUT_MS, ContractRequest, Execution, Invocation, RequestTarget, Runtime
from wsh.wire.caller import Caller


@dataclass(frozen=True)
class Leaving:
    """With `args`, `command` is one program; without, it is a line as a person types it."""

    command: str
    args: tuple[str, ...]
    cwd: str
    leaves: str
    """The profile that it would leave."""
    reason: str

    def as_request(self, wait_ms: int) -> ContractRequest:
        return ContractRequest(
            action="execute",
            invocation=Invocation(mode="interactive", intent="execute_command"),
            runtime=Runtime(cwd=self.cwd, timeout_ms=wait_ms),
            execution=Execution(command=self.command, args=list(self.args) or None, note=self.reason, sandbox="off"),
        )


async def leave_sandbox(contract: Contract, asked: Leaving, caller: Caller, wait_ms: int) -> Outcome:
    """Ask, or go on with what was asked. Raises ContractFault where it did not run, with why."""
    ids = correlate({}, contract.new_id)
    wait_ms = max(1, min(wait_ms, MAX_TIMEOUT_MS))
    request = asked.as_request(wait_ms)
    known = contract.registry.find_leaving(caller, request, asked.leaves)
    if known is None:
        outcome = await contract.interactive.execute(request, caller, ids, asked.leaves)
        if outcome.status == "accepted":
            return outcome
        known = contract.registry.find_leaving(caller, request, asked.leaves)
        if known is not None:
            known.facts["told"] = True
        return outcome
    await _wait_for_end(known, wait_ms / 1000)
    target = RequestTarget(session_id=known.session_id, terminal_id=known.terminal_id, cursor=0)
    reading = ContractRequest(action="read_output", target=target, runtime=Runtime(timeout_ms=1))
    try:
        outcome = await contract.interactive.read_output(known, reading, ids)
    except ContractFault:
        known.facts["told"] = not known.running
        raise
    known.facts["told"] = outcome.status != "accepted"
    return outcome


async def _wait_for_end(identity: Identity, wait_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    attached: Attached = identity.handle
    if identity.is_pending:
        await asyncio.wait({attached.asked.task}, timeout=wait_s)
    while identity.running and not identity.is_pending and not attached.ear.is_lost:
        left_s = deadline - loop.time()
        if left_s <= 0:
            return
        await wait_for_news(identity, identity.log.end, left_s, lambda: attached.ear.is_lost)
