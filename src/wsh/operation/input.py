"""Typing into a session: text, bytes, or keys by name."""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from wsh.operation.context import OnSession
from wsh.operation.forward import Forwarding
from wsh.operation.operation import operation
from wsh.operation.sandbox import admit, is_agent
from wsh.terminal.input.key import encode_key, encode_keys
from wsh.wire.error import InvalidRequest
from wsh.wire.model.base import Model, Shown
from wsh.wire.model.session import Keys

INPUT_ERRORS = (
    "session_not_found",
    "session_exited",
    "session_taken",
    "line_in_use",
    "hidden_prompt",
    "idle_timeout",
    "resource_limit_reached",
    "sandbox_refused",
)


class InputParams(Model):
    """Bytes are typed as they are; of a text, `encoding` says how it is written."""

    data: str | bytes
    encoding: Literal["utf8", "base64", "keys"] = "utf8"


class Generation(Shown):
    generation: int
    """Counts output; the moment before the input."""


@operation(errors=INPUT_ERRORS, family="terminal", forwarding=Forwarding(held=True))
async def send_input(on: OnSession, params: InputParams) -> Generation:
    """Type these bytes."""
    return await _type(on, _decode(on, params))


@operation(errors=(*INPUT_ERRORS, "invalid_key"), family="terminal", forwarding=Forwarding(held=True))
async def send_keys(on: OnSession, params: Keys) -> Generation:
    """Press these keys."""
    return await _type(on, _press(on, params.keys))


async def _type(on: OnSession, data: bytes) -> Generation:
    if is_agent(on.caller):
        admit(on.session, await on.rooms.sandbox.load())
    wait_ms = on.rooms.cap_wait(on.rooms.settings.get_int("approvals.hidden_wait_ms"))
    generation = await on.rooms.hidden.type(
        on, "input", data, wait_ms, lambda: on.session.input.type(data, on.caller.actor)
    )
    on.rooms.marks.note_input(on.caller, on.session.sid, generation)
    return Generation(generation=generation)


def _press(on: OnSession, keys: list[str]) -> bytes:
    return b"".join(encode_key(key, on.session.terminal) for key in keys)


def _decode(on: OnSession, params: InputParams) -> bytes:
    if isinstance(params.data, bytes):
        return params.data
    if params.encoding == "utf8":
        return params.data.encode("utf-8", "surrogateescape")
    if params.encoding == "keys":
        return encode_keys(params.data, on.session.terminal)
    try:
        return base64.b64decode(params.data, validate=True)
    except binascii.Error:
        raise InvalidRequest("The data is not base64.", hint="Use encoding 'utf8' for text.") from None
