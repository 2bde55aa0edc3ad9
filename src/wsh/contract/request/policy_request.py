"""From a request to what the policy is asked and the audit is told."""

from __future__ import annotations

import os
import time

from wsh import policy
from wsh.contract.identity import Identity
from wsh.contract.reply.fault import ContractFault, bad_field
from wsh.contract.request.correlation import Correlated
from wsh.contract.request.model import ContractRequest, Execution, Mode
from wsh.policy.audit import describe_result
from wsh.wire.caller import Caller
from wsh.wire.json.object import JsonObject

_MODES = {"headless": policy.Mode.HEADLESS, "interactive": policy.Mode.INTERACTIVE}


def make_policy_request(
    request: ContractRequest,
    caller: Caller,
    cwd: str | None,
    mode: Mode,
    action: policy.Action,
    home: str | None,
) -> policy.PolicyRequest:
    """With `args`, `command` is one program; without, it is a string that the policy parses."""
    execution = request.execution or Execution()
    argv = (execution.command, *execution.args) if execution.command is not None and execution.args else None
    return policy.PolicyRequest(
        actor=caller.id,
        action=action,
        argv=argv,
        command=None if argv is not None else execution.command,
        cwd=cwd,
        env=execution.env or {},
        mode=_MODES[mode],
        workspace=request.runtime.workspace_id,
        caller_surface=request.compat.caller_surface,
        home=home,
        now=time.time(),
    )


def result_entry(identity: Identity, caller: Caller, ids: Correlated, duration_ms: int) -> JsonObject:
    """How a command that was decided on ended, for the audit."""
    return describe_result(
        trace_id=ids.trace_id,
        tool="contract",
        argv=identity.argv,
        cwd=identity.cwd,
        exit_code=identity.exit_code,
        duration_ms=duration_ms,
        request_id=ids.request_id,
        session_id=identity.session_id,
        actor=caller.id,
        mode=identity.mode,
        terminated=identity.terminated,
    )


def find_cwd(request: ContractRequest, caller: Caller) -> str:
    """The canonical working directory. Raises PM_TERM_INVALID_PAYLOAD if there is none."""
    asked = os.path.join(caller.cwd, request.runtime.cwd or "")
    try:
        real = os.path.realpath(asked, strict=True)
    except (OSError, ValueError):
        raise no_cwd(request.runtime.cwd or caller.cwd) from None
    if not os.path.isdir(real) or not os.access(real, os.X_OK):
        raise no_cwd(request.runtime.cwd or caller.cwd)
    return real


def no_cwd(cwd: str) -> ContractFault:
    return bad_field("runtime.cwd", f"{cwd!r} is not a directory that can be entered", reason="cwd_not_found")


def speak(execution: Execution) -> str:
    """The command as one text, for lists and people; never for running."""
    return " ".join([execution.command or "", *(execution.args or [])])
