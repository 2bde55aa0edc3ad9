"""What a carrier brings to another machine and back, as values, and what it must be able to do.

Everything here has a form in JSON (`to_wire`, `from_wire`), which is the same for every carrier. Times are durations, since clocks
of two machines differ.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from wsh.wire.caller import Caller
from wsh.wire.error import InvalidRequest, WshError
from wsh.wire.error import from_wire as error_from_wire

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject
    from wsh.wire.token_file import Role

PROTOCOL = 1
"""Raised when an older host would misunderstand; hosts of the same number work together, whatever their versions."""

CALLER_HEADER = "wsh-caller"
"""On a connection of the owner's: JSON of the ForwardedCaller for whom it is made."""

StreamKind: TypeAlias = Literal["view", "raw", "json"]


@dataclass(frozen=True)
class ForwardedCaller:
    """Who called, as the server that admitted them says. The host grants at most that, within its own rules."""

    role: Role
    name: str
    host: str
    """The server that admitted them, by its own host name."""
    connection: str = ""
    """Which of its connections it is: owns what the calls make."""
    client: str = ""
    for_model: bool = False

    @classmethod
    def of(cls, caller: Caller, host: str) -> ForwardedCaller:
        return cls(caller.role, caller.name, host, caller.id, caller.client, caller.for_model)

    def to_caller(self, proven: Caller) -> Caller:
        """As whom the call is made here: with the lesser of the two roles, and counted for the server that brought it."""
        return replace(
            proven,
            role="owner" if proven.is_owner and self.role == "owner" else "agent",
            name=self.name if "@" in self.name else f"{self.name}@{self.host}",
            connection=f"host:{self.host}:{self.connection}",
            client=self.client,
            for_model=self.for_model,
            pid=None,
            account=f"{proven.account}:{self.host}",
            via=self.host,
        )

    def to_wire(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_wire(cls, wire: object) -> ForwardedCaller:
        given = _read(wire, "caller")
        role = given.get("role")
        if role not in ("owner", "agent"):
            raise InvalidRequest("The caller has no role.")
        words = {key: str(given.get(key) or "") for key in ("name", "host", "connection", "client")}
        return cls(
            "owner" if role == "owner" else "agent",
            words["name"],
            words["host"],
            words["connection"],
            words["client"],
            given.get("for_model") is True,
        )


@dataclass(frozen=True)
class ForwardedCall:
    """A call of an operation. The same `id` is the same call: it is made once, and asked for again after a cut."""

    id: str
    operation: str
    params: Mapping[str, object]
    session: str | None
    """The session's name at the host, without the host."""
    caller: ForwardedCaller
    deadline_s: float
    """How long the caller will wait for the answer, from when it is sent."""
    repeatable: bool = False
    """Whether it may be made again by a host that does not know any more whether it was."""

    def to_wire(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_wire(cls, wire: object) -> ForwardedCall:
        given = _read(wire, "call")
        id, operation, session, deadline = (given.get(key) for key in ("id", "operation", "session", "deadline_s"))
        if not isinstance(id, str) or not 8 <= len(id) <= 64 or not isinstance(operation, str):
            raise InvalidRequest("The call has no id or no operation.")
        return cls(
            id,
            operation,
            _read(given.get("params"), "params"),
            session if isinstance(session, str) else None,
            ForwardedCaller.from_wire(given.get("caller")),
            float(deadline) if isinstance(deadline, int | float) else 30.0,
            given.get("repeatable") is True,
        )


@dataclass(frozen=True)
class ForwardedAnswer:
    """A result as JSON, a file, or an error. `unwrap` raises here what was raised there."""

    result: object = None
    body: bytes | None = None
    media_type: str = ""
    error: Mapping[str, object] | None = None

    def unwrap(self) -> object:
        """The JSON of the result. Of a file, `body` is asked for instead."""
        if self.error is not None:
            raise error_from_wire(self.error)
        return self.result

    @classmethod
    def of_error(cls, error: WshError) -> ForwardedAnswer:
        return cls(error=error.to_wire())

    def to_wire(self) -> JsonObject:
        if self.error is not None:
            return {"error": dict(self.error)}
        if self.body is not None:
            return {"body": base64.b64encode(self.body).decode(), "media_type": self.media_type}
        return {"result": self.result}

    @classmethod
    def from_wire(cls, wire: object) -> ForwardedAnswer:
        given = _read(wire, "answer")
        error, body = given.get("error"), given.get("body")
        if isinstance(body, str):
            return cls(body=base64.b64decode(body), media_type=str(given.get("media_type", "")))
        return cls(result=given.get("result"), error=error if isinstance(error, dict) else None)


@dataclass(frozen=True)
class StreamRequest:
    """One of the sockets of a session at the host: a viewer's, the raw one, or that of requests and events."""

    kind: StreamKind
    session: str
    query: Mapping[str, str]
    caller: ForwardedCaller


class Stream(Protocol):
    """Messages both ways, as those of a WebSocket: text or bytes. A slow reader slows the sender and nobody else."""

    async def send(self, message: str | bytes) -> None:
        """Raises HostUnreachable when the connection is gone."""

    async def receive(self) -> str | bytes | None:
        """None when the host closed it: see `closed`. Raises HostUnreachable when the connection is gone."""

    @property
    def closed(self) -> tuple[int, str]:
        """Code and reason with which the host closed it."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class HostState:
    """What is known of a host. Times are seconds since 1970 by this machine's clock."""

    name: str
    kind: str
    """`ssh`, or what else carries."""
    target: str
    """What the carrier connects to, for people to read."""
    online: bool = False
    since: float = field(default_factory=time.time)
    last_seen: float | None = None
    version: str | None = None
    protocol: int | None = None
    problem: str | None = None
    """Why it is offline."""
    server_id: str = ""
    """Which server it is, while that is known: two names may lead to the same one."""
    same_as: str | None = None
    """The other name of the same server, under which its sessions are listed."""

    def to_wire(self) -> JsonObject:
        wire = asdict(self)
        del wire["server_id"]
        return wire


ProgressListener: TypeAlias = Callable[["JsonObject"], None]
"""Hears what a call tells while it is made: `{message, stream, phase}`."""

News: TypeAlias = "JsonObject"
"""What a host tells by itself, shaped as the events of `/ws/json`; `{"event": "host_changed"}` when its state changes."""


class Carrier(Protocol):
    """Brings calls and streams to one host. It reconnects by itself, with growing pauses, until it is closed."""

    @property
    def state(self) -> HostState: ...

    async def call(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        """Send it, and send it again after a cut, under the same id. Raises HostUnreachable within `deadline_s`.

        Cancellation is passed on to the host. What is told of its progress during a cut is not told later.
        """

    async def open_stream(self, request: StreamRequest) -> Stream:
        """Raises what the host refuses it with, or HostUnreachable."""

    def listen(self, listener: Callable[[News], None]) -> Callable[[], None]:
        """Hear news of the host until the returned function is called."""

    async def aclose(self) -> None: ...


def _read(wire: object, what: str) -> Mapping[str, object]:
    if not isinstance(wire, dict):
        raise InvalidRequest(f"The forwarded {what} is not an object.")
    return wire
