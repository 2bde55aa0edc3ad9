"""Calls under way: the queue limit, deadlines, cancellation, one answer each.

A tool runs in a task of its own, which is begun at once: one that never waits is over without a turn of the loop. The SDK's cancel scopes deliver a cancellation again at every await; the rooms'
cleanup is written for asyncio, where it comes once. So the door waits for the task, passes a cancellation on once,
and lets the cleanup finish behind a shield before anything is answered: when the answer is out, the work is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from wsh.mcp import error
from wsh.mcp.caller import McpClient
from wsh.mcp.progress import Emit, ProgressThrottle
from wsh.mcp.registry import Tool
from wsh.wire import tool as word
from wsh.wire.caller import TAKEN_BACK, Caller
from wsh.wire.json import rpc
from wsh.wire.json.rpc import canonical_id
from wsh.wire.system.begin import begin
from wsh.wire.tool import Family, Stream, ToolFailure, ToolOutcome

log = logging.getLogger(__name__)

# How long a cancelled call may clean up before the door stops waiting for it.
CLEANUP_S = 15.0
MAX_TIMEOUT_MS = 24 * 3600 * 1000
_TIMEOUT = "wsh/timeoutMs"


@dataclass(eq=False)
class RunningCall:
    """One call under way; the context that its tool sees."""

    tool: Tool
    client: McpClient
    request_id: object
    timeout_ms: int
    deadline: float
    reporter: ProgressThrottle
    cancelled: bool = False
    task: asyncio.Future[ToolOutcome] | None = field(default=None, repr=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.caller.id, canonical_id(self.request_id) or ""

    @property
    def caller(self) -> Caller:
        return self.client.caller

    @property
    def toolsets(self) -> tuple[Family, ...]:
        return self.client.toolsets

    def progress(self, message: str, *, stream: Stream = "info", phase: str = "progress") -> None:
        self.reporter.report(message, stream=stream, phase=phase)

    def cancel(self) -> None:
        """Stop the work; the call will be answered with CANCELLED."""
        self.cancelled = True
        self.reporter.close()
        if self.task is not None:
            self.task.cancel(TAKEN_BACK)


class CallRunner:
    """Every call of one server passes here."""

    def __init__(self, *, queue_size: int, progress_per_second: float) -> None:
        self._queue_size = queue_size
        self._per_second = progress_per_second
        self._calls: dict[tuple[str, str], list[RunningCall]] = {}
        self._busy = 0

    @property
    def under_way(self) -> int:
        return sum(len(calls) for calls in self._calls.values())

    def cancel(self, owner: str, request_id: object) -> bool:
        """Cancel the call that `owner` started under this id. An id that two clients of one token use names neither."""
        key = canonical_id(request_id)
        calls = self._calls.get((owner, key), []) if key is not None else []
        if len(calls) != 1:
            return False
        calls[0].cancel()
        return True

    async def serve(
        self,
        tool: Tool,
        arguments: dict[str, object],
        client: McpClient,
        request_id: object,
        meta: Mapping[str, object],
        emit: Emit,
    ) -> ToolOutcome:
        """Run one call to its only answer. Raises `RpcFailure` where that is a JSON-RPC error."""
        spec = tool.spec
        problems = [] if spec.checks_itself else tool.validator.find_problems(arguments)
        if problems:
            if spec.refuse is not None:
                return spec.refuse(arguments, problems)
            return _finish(error.refuse_arguments(spec.name, spec.family, problems))
        if not spec.checks_itself:
            arguments = tool.validator.normalise(arguments)
        if spec.timeout_spelling in arguments and spec.timeout_argument is not None:
            if spec.timeout_argument in arguments:
                twice = word.FieldProblem(str(spec.timeout_spelling), f"is {spec.timeout_argument}, which is given too")
                return _finish(error.refuse_arguments(spec.name, spec.family, [twice]))
            arguments = arguments | {spec.timeout_argument: arguments[spec.timeout_spelling]}
            del arguments[spec.timeout_spelling]
        try:
            timeout_ms = _settle_timeout(tool, arguments, meta)
            if meta.get(_TIMEOUT) is not None:
                arguments = _pass_timeout(tool, arguments, timeout_ms)
        except ValueError as problem:
            bad = word.FieldProblem(f"_meta.{_TIMEOUT}", str(problem))
            return _finish(error.refuse_arguments(spec.name, spec.family, [bad]))
        if not spec.reads and self._busy >= self._queue_size:
            return _overloaded(self._queue_size)
        token = meta.get("progressToken")
        reporter = ProgressThrottle(
            token if isinstance(token, str | int) and not isinstance(token, bool) else None,
            request_id,
            spec.name,
            emit,
            self._per_second,
        )
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        call = RunningCall(tool, client, request_id, timeout_ms, deadline, reporter)
        siblings = self._calls.setdefault(call.key, [])
        if siblings and call.client.exclusive:
            raise error.RpcFailure(
                rpc.INVALID_REQUEST,
                f"The request id {call.request_id!r} is in use by a call that is under way.",
                {"code": word.INVALID_REQUEST, "hint": "Give every request its own id."},
            )
        siblings.append(call)
        self._busy += not spec.reads
        call.task = begin(_run(arguments, call))
        return await self._await_end(call)

    async def _await_end(self, call: RunningCall) -> ToolOutcome:
        """Wait for a call that was begun, and stop it where it takes too long."""
        spec = call.tool.spec
        assert call.task is not None
        timed_out = False
        try:
            if not call.task.done():
                slack_s = spec.slack_ms / 1000 if spec.self_timed else 0.0
                await asyncio.wait({call.task}, timeout=call.timeout_ms / 1000 + slack_s)
                timed_out = not call.task.done()
            if timed_out:
                await _stop(call)
            return _settle(call, timed_out)
        except asyncio.CancelledError:
            # The peer takes it back or went away: no answer, but the work must end.
            call.reporter.close()
            await _stop(call)
            raise
        finally:
            call.reporter.close()
            self._busy -= not spec.reads
            siblings = self._calls[call.key]
            siblings.remove(call)
            if not siblings:
                del self._calls[call.key]

    async def aclose(self) -> None:
        """Cancel everything that is under way, and wait for it."""
        calls = [call for calls in self._calls.values() for call in calls]
        for call in calls:
            call.cancel()
        tasks = {call.task for call in calls if call.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP_S)


async def _run(arguments: dict[str, object], call: RunningCall) -> ToolOutcome:
    return await call.tool.spec.run(arguments, call)


async def _stop(call: RunningCall) -> None:
    """Cancel the task once and wait, shielded and bounded, until it has cleaned up."""
    task = call.task
    assert task is not None
    with anyio.CancelScope(shield=True):
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLEANUP_S)
    if not task.done():
        log.warning(
            "%s (%s) did not end within %.0f s of being stopped", call.tool.spec.name, call.caller.id, CLEANUP_S
        )
    elif not task.cancelled() and task.exception() is not None:
        log.debug("%s failed while it was stopped", call.tool.spec.name, exc_info=task.exception())


def _settle(call: RunningCall, timed_out: bool) -> ToolOutcome:
    spec = call.tool.spec
    task = call.task
    assert task is not None
    if call.cancelled:
        if task.done() and not task.cancelled():
            task.exception()  # looked at, so that nobody warns about it
        return _fail(
            ToolFailure(word.CANCELLED, "The request was cancelled by the client.", requestId=str(call.request_id))
        )
    if timed_out or task.cancelled():
        if not timed_out:
            log.warning("%s was cancelled from within", spec.name)
        return _fail(
            ToolFailure(
                word.TOOL_TIMEOUT,
                f"{spec.name} did not finish within {call.timeout_ms} ms and was stopped.",
                hint="Ask for less in one call, or allow it more time.",
                timeoutMs=call.timeout_ms,
            )
        )
    problem = task.exception()
    if problem is None:
        return task.result()
    if not isinstance(problem, Exception):
        raise problem
    return _finish(error.translate(problem, spec.family, spec.name))


def _finish(answer: error.RpcFailure | dict[str, object]) -> ToolOutcome:
    if isinstance(answer, error.RpcFailure):
        raise answer
    return ToolOutcome(answer, is_error=True)


def _fail(failure: ToolFailure) -> ToolOutcome:
    return ToolOutcome(failure.to_payload(), is_error=True)


def _overloaded(limit: int) -> ToolOutcome:
    return _fail(
        ToolFailure(
            word.QUEUE_OVERLOADED,
            f"The server has {limit} calls under way and takes no more just now.",
            hint="Try again in a moment, or make fewer calls at once (setting mcp.queue_size).",
        )
    )


def _settle_timeout(tool: Tool, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> int:
    spec = tool.spec
    if spec.timeout_argument is not None and arguments.get(spec.timeout_argument) is not None:
        return int(arguments[spec.timeout_argument])
    asked = meta.get(_TIMEOUT)
    if asked is None:
        return spec.default_timeout_ms
    if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= MAX_TIMEOUT_MS:
        raise ValueError(f"must be a whole number from 1 to {MAX_TIMEOUT_MS}")
    return asked


def _pass_timeout(tool: Tool, arguments: dict[str, object], timeout_ms: int) -> dict[str, object]:
    """The arguments with a deadline from `_meta`, where the tool has an argument for it. Raises ValueError if it does not fit."""
    name = tool.spec.timeout_argument
    if name is None:
        return arguments
    arguments = arguments | {name: timeout_ms}
    problems = tool.validator.find_problems(arguments)
    if problems:
        raise ValueError(problems[0].message)
    return arguments
