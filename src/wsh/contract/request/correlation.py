"""The ids that tie a request to everything that happens because of it.

Settled before anything runs: what the caller gave is kept unchanged, what it left out is made up, always unique. An id
that could not be accepted is replaced, so that even a refusal has ids to look for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from wsh.contract.request.model import ClientId, CorrelationId

_ID: TypeAdapter[str] = TypeAdapter(CorrelationId)
_CLIENT_ID: TypeAdapter[str] = TypeAdapter(ClientId)


@dataclass(frozen=True)
class Correlated:
    request_id: str
    trace_id: str
    client_request_id: str | None = None

    def to_wire(self) -> dict[str, str]:
        wire = {"request_id": self.request_id, "trace_id": self.trace_id}
        return wire | {"client_request_id": self.client_request_id} if self.client_request_id is not None else wire


def make_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def correlate(raw: Mapping[str, object], new_id: Callable[[str], str] = make_id) -> Correlated:
    given = raw.get("correlation")
    part = given if isinstance(given, Mapping) else {}
    return Correlated(
        _accept(_ID, part.get("request_id")) or new_id("req"),
        _accept(_ID, part.get("trace_id")) or new_id("trace"),
        _accept(_CLIENT_ID, part.get("client_request_id")),
    )


def _accept(kind: TypeAdapter[str], value: object) -> str | None:
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError:
        return None
