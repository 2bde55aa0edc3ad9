"""The `result` of an answer about an identity, and waiting for it to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wsh.contract.identity import Identity
from wsh.contract.output.log import Reading
from wsh.wire.json.object import JsonObject


def make_result(identity: Identity, reading: Reading) -> JsonObject:
    """The `result` of an answer about an identity: its state, and what was read of its output."""
    result: JsonObject = {
        **({} if identity.is_pending else {"authorization": identity.authorization}),
        "stdout": reading.stdout,
        "stderr": reading.stderr,
        "exit_code": identity.exit_code,
        "running": identity.running and not identity.is_pending,
        "cursor": reading.cursor,
        "next_cursor": reading.next_cursor,
        "dropped_bytes": reading.dropped_bytes,
    }
    if reading.more:
        result["more"] = True
    if identity.approval is not None:
        result["approval"] = identity.approval
    if identity.warning is not None:
        result["warning"] = identity.warning
    for name in ("signal", "edited_argv", "approved_by", "approval_scope"):
        if name in identity.facts:
            result[name] = identity.facts[name]
    return result


async def wait_for_wake(identity: Identity, timeout_s: float) -> None:
    """Until anything about it changes, or the time is over."""
    try:
        async with asyncio.timeout(timeout_s):
            await identity.log.changed()
    except TimeoutError:
        pass


async def wait_for_news(
    identity: Identity, cursor: int | None, timeout_s: float, stop: Callable[[], bool] = lambda: False
) -> None:
    """Until there is output past `cursor`, or the end, or `stop` (looked at on every wake), or the time is over."""
    start = identity.log.start if cursor is None else cursor
    try:
        async with asyncio.timeout(timeout_s):
            while identity.running and identity.log.end <= start and not stop():
                await identity.log.changed()
    except TimeoutError:
        pass
