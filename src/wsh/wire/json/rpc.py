"""JSON-RPC 2.0 framing: which bytes are one message, and what to answer when they are not.

Both ends of the stdio path use it: the pump answers garbage itself, the server never trusts that it did. Knows the
envelope alone, nothing of MCP. Standard library only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from wsh.wire.surrogate import is_sound

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_GONE = -32000

Id: TypeAlias = str | int

MAX_MESSAGE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class BadMessage:
    """What arrived is no JSON-RPC message. `id` is the request's where one could be read."""

    code: int
    message: str
    id: Id | None = None

    def to_wire(self) -> dict[str, object]:
        return make_error(self.id, self.code, self.message)


@dataclass(frozen=True)
class Message:
    """A request (id and method), a notification (method alone) or a response (id alone)."""

    body: dict[str, object]
    id: Id | None
    method: str | None
    normalised: bool = False
    """Whether `body` differs from the bytes it was read from."""

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not None

    @property
    def is_notification(self) -> bool:
        return self.method is not None and self.id is None

    @property
    def params(self) -> dict[str, object]:
        params = self.body.get("params")
        return params if isinstance(params, dict) else {}


def make_error(id: Id | None, code: int, message: str, data: object = None) -> dict[str, object]:
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def canonical_id(id: object) -> str | None:
    """Ids that mean the same compare equal: 7, "7" and 7.0. None for what cannot be an id."""
    if isinstance(id, bool) or id is None:
        return None
    if isinstance(id, float):
        return str(int(id)) if id.is_integer() else None
    return str(id) if isinstance(id, str | int) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# `json.loads` would make one for every message.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def parse(raw: bytes) -> Message | BadMessage:
    """One message from one line or body. Never raises."""
    try:
        body = _decode(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return BadMessage(PARSE_ERROR, "Parse error: the message is not valid JSON.")
    if isinstance(body, list):
        return BadMessage(INVALID_REQUEST, "Invalid Request: batches are not supported; send one message at a time.")
    if not isinstance(body, dict):
        return BadMessage(INVALID_REQUEST, "Invalid Request: a message is a JSON object.")
    read = _check(body)
    # UTF-8 has no surrogates, so one that stands alone was written as an escape.
    if b"\\" in raw and (b"\\ud" in raw or b"\\uD" in raw) and not _is_sound(read, body):
        problem = "Parse error: a text holds half of a surrogate pair, which is no character."
        return BadMessage(PARSE_ERROR, problem, read.id if is_sound(str(read.id)) else None)
    return read


def _is_sound(read: Message | BadMessage, body: dict[str, object]) -> bool:
    """False if UTF-8 cannot carry some text outside the arguments of a call, whose check names the field itself."""
    if isinstance(read, Message) and read.method == "tools/call" and isinstance(read.params.get("arguments"), dict):
        body = body | {"params": read.params | {"arguments": None}}
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _check(body: dict[str, object]) -> Message | BadMessage:
    raw_id = body.get("id")
    id: Id | None = None
    if isinstance(raw_id, float) and raw_id.is_integer():
        id = body["id"] = int(raw_id)
    elif isinstance(raw_id, str) or isinstance(raw_id, int) and not isinstance(raw_id, bool):
        id = raw_id
    if body.get("jsonrpc") != "2.0":
        return BadMessage(INVALID_REQUEST, 'Invalid Request: "jsonrpc" must be "2.0".', id)
    if "method" not in body:
        if id is not None and ("result" in body or isinstance(body.get("error"), dict)):
            return Message(body, id, None)
        if "id" in body and raw_id is None and isinstance(body.get("error"), dict):
            return Message(body, None, None)  # the peer could not read something of ours
        return BadMessage(INVALID_REQUEST, 'Invalid Request: "method" is missing.', id)
    method = body["method"]
    if not isinstance(method, str):
        return BadMessage(INVALID_REQUEST, 'Invalid Request: "method" must be a string.', id)
    if "id" in body and id is None:
        return BadMessage(INVALID_REQUEST, 'Invalid Request: "id" must be a string or a whole number.')
    usable = isinstance(body.get("params", {}), dict)
    # A notification is never answered, whatever its parameters are.
    if not usable and (body["params"] is None or "id" not in body):
        del body["params"]
    elif not usable:
        return BadMessage(INVALID_REQUEST, 'Invalid Request: "params" must be an object.', id)
    return Message(body, id, method, normalised=isinstance(raw_id, float) or not usable)


def escape_separators(data: bytes) -> bytes:
    """JSON without the characters that some readers of lines take for line ends. They occur in strings alone."""
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        for raw, escaped in ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085")):
            data = data.replace(raw, escaped)
    return data


def dump(body: dict[str, object]) -> bytes:
    """One line, newline included; line breaks inside strings are escaped by JSON itself."""
    try:
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates, which only an escape can carry
        return json.dumps(body, separators=(",", ":")).encode() + b"\n"
