"""Every place where we lean on parts of the SDK that it calls provisional, or that have no public name.

If a new SDK breaks us, it breaks here. The tests look at the wire, never at these hooks.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, ValidationError

from wsh.mcp.error import RpcFailure, refuse_params, translate
from wsh.mcp.registry import Registry
from wsh.mcp.validate import MAX_PROBLEMS
from wsh.wire import tool
from wsh.wire.error import WshError
from wsh.wire.json import rpc
from wsh.wire.json.object import JsonObject
from wsh.wire.system.shortage import find_shortage
from wsh.wire.tool import FieldProblem

log = logging.getLogger(__name__)

# On HTTP with sessions the SDK ends the stream of a call that was cancelled by `notifications/cancelled` with an error
# of this code. MCP wants no answer at all; the stream ends just as well without one.
CANCEL_ANSWER = re.compile(rb'data: ?\{"jsonrpc":"2\.0","id":[^{}]{1,200},"error":\{"code":-32800,')

Context: TypeAlias = ServerRequestContext[object, object]


class WshServer(Server[object]):
    """The SDK's server, advertising list-changed notifications on HTTP too (its session manager passes no options)."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, JsonObject] | None = None,
        extensions: dict[str, JsonObject] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class _Fields(BaseModel):
    model_config = ConfigDict(extra="allow")


class _ProgressNotification(BaseModel):
    method: Literal["notifications/progress"] = "notifications/progress"
    params: _Fields


async def send_progress(ctx: Context, fields: JsonObject) -> None:
    """On the request's own stream. The SDK's progress type would drop the fields that are ours."""
    notification: Any = _ProgressNotification(params=_Fields(**fields))
    await ctx.session.send_notification(notification, related_request_id=ctx.request_id)


async def send_list_changed(ctx: Context) -> None:
    """On the request's own stream, so that it comes before the answer."""
    await ctx.session.send_notification(types.ResourceListChangedNotification(), related_request_id=ctx.request_id)


def get_connection(ctx: Context) -> Connection:
    connection: Connection = ctx.session._connection
    return connection


def call_at_end(ctx: Context, callback: Callable[[], None]) -> None:
    """Run `callback` when the connection that `ctx` came by is over. Modern HTTP has one per request."""
    get_connection(ctx).exit_stack.callback(callback)


def end_longest_idle(manager: StreamableHTTPSessionManager, keep: int) -> None:
    """End sessions that have no request and no stream open, the longest silent first, until at most `keep` are left.

    Many clients never say that they go, and each session costs some 40 KB. One that comes back gets 404 and begins anew.
    """
    scopes = [transport.idle_scope for transport in manager._server_instances.values()]
    idle = [scope for scope in scopes if scope is not None and scope.deadline != math.inf and not scope.cancel_called]
    for scope in sorted(idle, key=lambda scope: scope.deadline)[: max(0, len(idle) - keep)]:
        scope.cancel()


def make_version_stamp(registry: Registry) -> Any:
    """Middleware: versions at the top level of each tool, where the SDK's own types have no field for them."""

    async def stamp(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/list" and isinstance(result, dict):
            result["tools"] = [_stamped(registry, entry) for entry in result.get("tools", [])]
        return result

    return stamp


def _stamped(registry: Registry, entry: JsonObject) -> dict[str, object]:
    known = registry.find_tool(entry["name"])
    return entry | known.versions if known is not None else entry


_held: ContextVar[list[JsonObject] | None] = ContextVar("wsh_held", default=None)


def hold_structured(value: JsonObject) -> dict[str, object]:
    """What a handler puts into its result instead of `value`, which `put_structured` puts back.

    The SDK checks and copies a result's whole tree several times: for a styled screen that took longer than all the rest.
    """
    held = _held.get()
    if held is None:
        return value
    held.append(value)
    return {}


async def put_structured(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware: the structured content of a call, put into what the SDK made of its result."""
    if ctx.method != "tools/call":
        return await call_next(ctx)
    held: list[JsonObject] = []
    token = _held.set(held)
    try:
        result = await call_next(ctx)
    finally:
        _held.reset(token)
    if held and isinstance(result, dict) and "structuredContent" in result:
        result["structuredContent"] = held[-1]
    return result


async def guard(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware, outermost: nothing leaves with an exception's text that we did not write ourselves."""
    try:
        return await call_next(ctx)
    except MCPError as problem:
        raise _name_reason(problem, ctx) from None
    except ValidationError as problem:
        # The SDK would leave out which field is wrong.
        refused = refuse_params(ctx.method, _find_problems(problem, ctx.params))
        raise _translate_problem(refused, ctx.method) from None
    except Exception as problem:
        raise _translate_problem(problem, ctx.method) from None


def _name_reason(problem: MCPError, ctx: Context) -> MCPError:
    """`problem`, or what it means where the SDK says as much as nothing."""
    if problem.error.data != "" or get_connection(ctx).initialize_accepted:
        return problem
    text = f"{ctx.method} came before the handshake: send initialize first."
    return MCPError(problem.error.code, text, {"code": tool.INVALID_REQUEST, "hint": "Send initialize first."})


_MAX_ERRORS = 1000
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""What a value must be, by the kinds of pydantic's errors."""


def _find_problems(problem: ValidationError, params: Mapping[str, object] | None) -> list[FieldProblem]:
    """What is wrong with which of the parameters; a field that has several forms is one problem."""
    if problem.error_count() > _MAX_ERRORS:
        return [FieldProblem("", f"{problem.error_count()} values do not fit", "Send less in one request.")]
    wanted: dict[str, list[str]] = {}
    messages: dict[str, str] = {}
    for fault in problem.errors(include_url=False):
        path = _find_path(fault["loc"], fault["type"] == "missing", params)
        if fault["type"] == "missing":
            messages.setdefault(path, "is required")
            continue
        expected = _WANTED.get(fault["type"]) or str(fault.get("ctx", {}).get("expected", ""))
        if expected:
            kinds = wanted.setdefault(path, [])
            kinds += [expected] if expected not in kinds else []
            messages[path] = f"must be {' or '.join(kinds)}, not {_show(fault['input'])}"
        else:
            messages.setdefault(path, f"does not fit: {fault['msg']}")
    return [FieldProblem(path, message) for path, message in list(messages.items())[:MAX_PROBLEMS]]


def _find_path(loc: tuple[int | str, ...], missing: bool, params: Mapping[str, object] | None) -> str:
    """Where in the parameters a fault is. Names of the forms that a field may have are left out."""
    if loc[:1] == ("params",) and len(loc) > 1:
        loc = loc[1:]
    path: list[str] = []
    here: object = params
    for at, part in enumerate(loc):
        if isinstance(here, Mapping) and part in here:
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        elif not (missing and at == len(loc) - 1):
            continue
        path.append(str(part))
    return ".".join(path)


def _show(value: object) -> str:
    """A value in a message; a large one is only named."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value[:80] if isinstance(value, str) else value, ensure_ascii=False)


def _translate_problem(problem: Exception, method: str) -> MCPError:
    if not isinstance(problem, RpcFailure | WshError) and find_shortage(problem) is None:
        log.error("%s failed unexpectedly", method, exc_info=problem)
        return MCPError(rpc.INTERNAL_ERROR, "An internal error occurred.", {"code": tool.INTERNAL})
    failure = translate(problem, "terminal", method)
    if isinstance(failure, dict):  # only tools have results that can say it
        message = failure.pop("message")
        return MCPError(rpc.INTERNAL_ERROR, message, failure)
    return MCPError(failure.code, failure.message, failure.data)


def spell_problem(problem: Exception) -> JsonObject:
    """The error of a call that goes without the SDK."""
    error = _translate_problem(problem, "tools/call").error
    return error.model_dump(by_alias=True, exclude_none=True)


class CancelParams(types.NotificationParams):
    """`$/cancelRequest`: the id as any JSON value, compared in canonical form."""

    id: object = None


__all__ = [
    "CANCEL_ANSWER",
    "CancelParams",
    "Context",
    "WshServer",
    "call_at_end",
    "get_connection",
    "guard",
    "hold_structured",
    "make_version_stamp",
    "put_structured",
    "send_progress",
    "spell_problem",
]
