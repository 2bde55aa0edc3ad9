"""The one way from a failure to the MCP wire.

Two shapes exist: a JSON-RPC error (the request was wrong, or we are broken) and a tool result with `isError` (the
operation was tried, or refused, and the model should reason about it). Which failure takes which depends on the
tool's family. Unknown exceptions are logged whole and leave as INTERNAL, without their text.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from wsh.wire import error as fault
from wsh.wire import tool
from wsh.wire.error import InvalidRequest, NotFound, WshError
from wsh.wire.json import rpc
from wsh.wire.json.object import JsonObject
from wsh.wire.system.shortage import find_shortage
from wsh.wire.tool import Family, FieldProblem, ToolFailure

log = logging.getLogger(__name__)


class RpcFailure(Exception):
    """Leaves as a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: JsonObject) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


_PUBLIC_BY_CLASS: tuple[tuple[type[WshError], str], ...] = (
    (fault.WaitTimeout, tool.TOOL_TIMEOUT),
    (fault.SessionExited, tool.SESSION_EXITED),
    (fault.SessionTaken, tool.SESSION_TAKEN),
    (fault.LineInUse, tool.LINE_IN_USE),
    (fault.Refused, tool.FORBIDDEN),
    (fault.LimitReached, tool.QUEUE_OVERLOADED),
    (fault.DescriptorsExhausted, tool.QUEUE_OVERLOADED),
    (fault.DiskFull, tool.DISK_FULL),
    (NotFound, tool.NOT_FOUND),
    (InvalidRequest, tool.INVALID_REQUEST),
    (fault.StateConflict, tool.INVALID_REQUEST),
    (fault.TooLarge, tool.INVALID_REQUEST),
    (fault.IdleSuperseded, tool.CANCELLED),
)


def find_public_code(error: WshError) -> str:
    """The code of the public table for one of our errors. The finer one goes along as `reason`."""
    for cls, code in _PUBLIC_BY_CLASS:
        if isinstance(error, cls):
            return code
    return tool.INTERNAL


def to_payload(error: WshError) -> dict[str, object]:
    """The JSON of an `isError` result: `message`, `code`, `reason`, `hint` and the facts."""
    payload: JsonObject = {"message": error.message, "code": find_public_code(error), "reason": error.code}
    if error.hint:
        payload["hint"] = error.hint
    facts = dict(error.facts)
    if "timeout_ms" in facts:
        payload["timeoutMs"] = facts.pop("timeout_ms")
    return payload | facts


def _is_bad_request(error: WshError) -> bool:
    return error.blame == "caller"


def translate(error: Exception, family: Family, where: str) -> RpcFailure | JsonObject:
    """`error`, raised by a tool of `family`, as what goes out. `where` is for the log."""
    if isinstance(error, RpcFailure):
        return error
    if isinstance(error, ToolFailure):
        return error.to_payload()
    error = find_shortage(error) or error
    if isinstance(error, WshError):
        payload = to_payload(error)
        if family != "terminal":
            return payload
        if _is_bad_request(error):
            return _rpc(rpc.INVALID_PARAMS, payload)
        return _rpc(rpc.INTERNAL_ERROR, payload) if payload["code"] == tool.INTERNAL else payload
    trace = secrets.token_hex(6)
    log.error("%s failed unexpectedly (%s)", where, trace, exc_info=error)
    payload = {
        "message": "An internal error occurred.",
        "code": tool.INTERNAL,
        "hint": f"The fault is ours; look for {trace} in the server's log.",
    }
    return _rpc(rpc.INTERNAL_ERROR, payload) if family == "terminal" else payload


def _rpc(code: int, payload: JsonObject) -> RpcFailure:
    return RpcFailure(code, payload["message"], {k: v for k, v in payload.items() if k != "message"})


def describe_problems(name: str, problems: Sequence[FieldProblem], what: str = "arguments") -> dict[str, object]:
    """Bad arguments, or other fields, as a payload: the first problem in words, all of them as data."""
    first = problems[0]
    subject = f"{first.path!r} " if first.path else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    payload: JsonObject = {
        "message": f"Invalid {what} for {name}: {subject}{first.message}{more}.",
        "code": tool.INVALID_REQUEST,
        "errors": [problem.to_wire() for problem in problems],
    }
    hint = next((problem.hint for problem in problems if problem.hint), None)
    return payload | {"hint": hint} if hint else payload


def refuse_arguments(name: str, family: Family, problems: Sequence[FieldProblem]) -> RpcFailure | JsonObject:
    payload = describe_problems(name, problems)
    return _rpc(rpc.INVALID_PARAMS, payload) if family == "terminal" else payload


def refuse_params(method: str, problems: Sequence[FieldProblem]) -> RpcFailure:
    """The parameters of a method do not fit."""
    return _rpc(rpc.INVALID_PARAMS, describe_problems(method, problems, "parameters"))


def unknown_tool(name: str, near: str | None) -> RpcFailure:
    hint = f"Did you mean {near!r}?" if near else "List the tools to see what this server offers."
    return RpcFailure(
        rpc.INVALID_PARAMS,
        f"Unknown tool: {name[:128]!r}.",
        {"code": tool.INVALID_REQUEST, "tool": name[:128], "hint": hint},
    )
