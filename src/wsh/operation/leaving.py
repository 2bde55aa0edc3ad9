"""One command without its sandbox, where a person lets it: how the doors that run commands ask for it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from wsh.operation.context import Context
from wsh.operation.operation import Json
from wsh.wire.error import CapabilityMissing, InternalError, InvalidRequest, Refused, SandboxRefused, WshError

if TYPE_CHECKING:
    from wsh.contract.reply.fault import ContractFault
    from wsh.contract.reply.response import Outcome

AGAIN = "Call again with the same words to go on waiting; nothing is asked or run twice."


def check_leaving(sandbox: str | None, reason: str | None) -> bool:
    """Whether a call asks to leave the sandbox. Raises InvalidRequest for one without the other."""
    if sandbox is None:
        if reason is not None:
            raise InvalidRequest("reason goes with sandbox alone.", hint='Send sandbox "off" with it, or leave it out.')
        return False
    if reason is None or not reason.strip():
        raise InvalidRequest(
            "A command leaves its sandbox with a reason only.", hint="Say in `reason` why; the person reads it."
        )
    return True


async def run_outside(
    context: Context, command: str | Sequence[str], cwd: str, leaves: str | None, reason: str, wait_ms: int
) -> Json:
    """Ask a person, and wait for what comes of it. `command` is a line, or the words of one program."""
    from wsh.contract.ask.leaving import Leaving, leave_sandbox
    from wsh.contract.reply.fault import ContractFault

    if leaves is None:
        raise InvalidRequest("There is no sandbox to leave here.", hint="Run it without `sandbox` and `reason`.")
    line, args = (command, ()) if isinstance(command, str) else _spell(command)
    contract = await context.rooms.contract.get()
    asked = Leaving(line, tuple(args), cwd, leaves, reason.strip())
    try:
        outcome = await leave_sandbox(contract, asked, context.governed, wait_ms)
    except ValidationError as problem:
        said = problem.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(f"{said['loc'][-1]}: {said['msg']}.", hint="Change the command or its folder.") from None
    except ContractFault as fault:
        raise _explain(fault, leaves) from None
    return _describe(outcome, leaves)


def _spell(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    # A word alone would be read as a line.
    return (argv[0], argv[1:]) if len(argv) > 1 else (shlex.quote(argv[0]), ())


def _describe(outcome: Outcome, leaves: str) -> Json:
    """`ended`, and in `outside` what the caller is told of the request."""
    result = outcome.result
    outside: Json = {"leaves": leaves, "approval": result.get("approval"), **(outcome.identity or {})}
    outside |= {name: result[name] for name in ("approval_id", "approval_left_ms", "approved_by") if name in result}
    ended = outcome.status == "completed"
    if not ended:
        waits = result.get("approval") == "pending"
        state = "It waits for a person." if waits else "It was approved and still runs."
        outside["note"] = f"{state} {AGAIN}"
    return {"ended": ended, "exit_code": result["exit_code"], "output": result["stdout"], "outside": outside}


def _explain(fault: ContractFault, leaves: str) -> WshError:
    """The contract's failure in the words of every door."""
    reason = fault.details.get("reason")
    facts: Json = {"profile": leaves, "contract_code": fault.code}
    match fault.code:
        case "PM_TERM_DECLINED":
            hint = "A person said no: do not try it another way; ask what they want instead."
            return SandboxRefused(fault.message, hint=hint, declined=True, **facts)
        case "PM_TERM_TIMEOUT" if fault.details.get("phase") == "approval":
            hint = "It stays in its sandbox. Ask the person before you ask again."
            return SandboxRefused(fault.message, hint=hint, **facts)
        case "PM_TERM_BLOCKED_DESTRUCTIVE":
            return Refused(fault.message, hint="Change the command.", reason=reason, **facts)
        case "PM_TERM_INVALID_PAYLOAD" | "PM_TERM_INVALID_ACTION":
            return InvalidRequest(fault.message, hint="Change the command or its folder.", reason=reason, **facts)
        case "PM_TERM_INTERNAL" | "PM_TERM_NOT_FOUND":
            return InternalError()
        case _:
            hint = "Start interactive-terminal, or let approvals be answered at this server with `wsh approvals on`."
            return CapabilityMissing(f"Nobody can be asked: {fault.message}", hint=hint, **facts)
