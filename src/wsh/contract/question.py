"""From a request to what the policy is asked and the audit is told."""

from __future__ import annotations

import os
from typing import Any, Literal

from wsh.contract.caller import Caller
from wsh.contract.correlation import Correlated
from wsh.contract.fault import ContractFault, bad_field
from wsh.contract.gate import Question, Ruling
from wsh.contract.model import Execution, Mode, Request


def make_question(
    request: Request, caller: Caller, cwd: str | None, mode: Mode, action: Literal["execute", "send", "open"]
) -> Question:
    execution = request.execution or Execution()
    argv = (execution.command, *execution.args) if execution.command is not None and execution.args else None
    return Question(
        mode=mode,
        action=action,
        actor=caller.actor,
        argv=argv,
        command=None if argv is not None else execution.command,
        cwd=cwd,
        env=execution.env or {},
        workspace_id=request.runtime.workspace_id,
        caller_surface=request.compat.caller_surface,
    )


def decision_event(
    event: str,
    request: Request,
    caller: Caller,
    ids: Correlated,
    session_id: str,
    cwd: str | None,
    ruling: Ruling,
    mode: str,
) -> dict[str, Any]:
    """For the audit: who asked for what, and what was ruled. Names of variables, never their values."""
    execution = request.execution or Execution()
    return {
        "event": event,
        "trace_id": ids.trace_id,
        "request_id": ids.request_id,
        "session_id": session_id,
        "actor": caller.id,
        "role": caller.actor,
        "client": caller.client,
        "mode": mode,
        "action": request.action,
        "command": execution.command,
        "args": execution.args,
        "env": sorted(execution.env or {}),
        "cwd": cwd,
        "workspace_id": request.runtime.workspace_id,
        "caller_surface": request.compat.caller_surface,
        "effect": ruling.effect,
        "risk": ruling.risk,
        "reason": ruling.reason,
        "rule": ruling.rule,
    }


def find_cwd(request: Request, caller: Caller) -> str:
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
    return " ".join([execution.command or "", *(execution.args or [])])
