"""What a node tells of itself: its sessions in a bucket, and what happened in streams.

The bucket shows what is; whatever was not told while NATS was away is told afterwards, so lists converge. Events and audit entries wait
in a bounded queue until NATS has confirmed them; each has an id, so one that was sent twice counts once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import ValidationError

from wsh.host.fleet.connection import ConnectionLost, FleetConnection
from wsh.host.fleet.subject import from_token, to_token
from wsh.wire.model.session import SessionInfo
from wsh.wire.name import is_name

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

_GATHER_S = 0.2
"""Changes within so long are told together."""
_ACTIVE_S = 15.0
"""A session that only prints is told so often."""
_AT_ONCE = 64
_AGES = ("last_activity_ms", "active_at")
_MOST_BYTES = 1_000_000
"""NATS ends a connection that sends more than 1 MiB at once."""
_AGAIN_S = 5.0
"""Between two attempts at a stream that refuses."""


class SessionSource(Protocol):
    """This server's sessions."""

    def list_names(self) -> list[str]: ...

    async def describe_session(self, name: str) -> JsonObject | None:
        """SessionInfo, or None for one that is gone."""


class SessionTeller:
    """Keeps the bucket of sessions as this node's sessions are."""

    def __init__(self, source: SessionSource) -> None:
        self._source = source
        self._dirty: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._told: dict[str, tuple[JsonObject, float]] = {}
        self._renamed: dict[str, str] = {}
        """Old names of sessions, by their new ones, until that is told."""
        self.told_once = asyncio.Event()
        """Set when all sessions have been told for the first time."""

    def mark(self, name: str) -> None:
        """The session is new, gone or changed."""
        self._dirty[name] = None
        self._wake.set()

    def mark_renamed(self, old: str, name: str) -> None:
        """The new name is told before the old one goes, so that nobody takes it for the end of one session and another one's beginning."""
        self._renamed[name] = self._renamed.pop(old, old)
        self._dirty.pop(old, None)
        self.mark(name)

    async def run(self, connection: FleetConnection) -> None:
        """Until the connection ends. Raises ConnectionLost."""
        token = to_token(connection.node)
        kept: dict[str, None] = {}

        def on_key(key: str, revision: int, value: JsonObject | None) -> None:
            if value is not None:
                kept[from_token(key.partition(".")[2])] = None

        watch = await connection.watch("sessions", f"{token}.>", on_key)
        try:
            async with asyncio.timeout(10):
                await watch.caught_up.wait()
        except TimeoutError:
            raise ConnectionLost("NATS did not tell which sessions were told") from None
        finally:
            await watch.aclose()
        self._told.clear()
        self._renamed.clear()
        self._dirty = {**kept, **dict.fromkeys(self._source.list_names())}
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            names, self._dirty = list(self._dirty), {}
            for at in range(0, len(names), _AT_ONCE):
                await asyncio.gather(*(self._tell(connection, token, name) for name in names[at : at + _AT_ONCE]))
            self.told_once.set()
            await asyncio.sleep(_GATHER_S)

    async def _tell(self, connection: FleetConnection, token: str, name: str) -> None:
        found = await self._source.describe_session(name)
        key = f"{token}.{to_token(name)}"
        old = self._renamed.pop(name, None)
        if old is not None:
            if found is not None:
                await connection.put("sessions", key, {**found, "renamed_from": old})
            self.mark(name)  # without its old name, which another session may get
            self.mark(old)
            return
        if found is None:
            self._told.pop(name, None)
            await connection.put("sessions", key, None)
            return
        now = time.time()
        age = found.get("last_activity_ms")
        value = {**found, "active_at": now - age / 1000 if isinstance(age, int | float) else now}
        before, at = self._told.get(name, ({}, 0.0))
        if _without_age(before) == _without_age(value) and now - at < _ACTIVE_S:
            return
        await connection.put("sessions", key, value)
        self._told[name] = (value, now)


def _without_age(info: JsonObject) -> JsonObject:
    return {key: value for key, value in info.items() if key not in _AGES}


def read_told(name: str, told: JsonObject) -> JsonObject | None:
    """A session as another node told it, or None for what cannot be one: one node must not spoil the list for all."""
    known = {key: value for key, value in told.items() if key in SessionInfo.model_fields}
    try:
        info = SessionInfo.model_validate(known).model_dump(mode="json")
    except ValidationError:
        return None
    active = told.get("active_at")
    if info["name"] != name or not is_name(name):
        return None
    if isinstance(active, int | float) and abs(active) < 1e12:
        info["active_at"] = active
    if isinstance(old := told.get("renamed_from"), str):
        info["renamed_from"] = old
    return info


def refresh_age(info: JsonObject) -> JsonObject:
    """SessionInfo as it is now: how long ago it printed, by the time that was told."""
    shown = {key: value for key, value in info.items() if key != "active_at"}
    active = info.get("active_at")
    if isinstance(active, int | float):
        shown["last_activity_ms"] = max(0, int((time.time() - active) * 1000))
    return shown


def _shorten(entry: JsonObject, size: int) -> JsonObject:
    """What finds the whole entry in the node's own file."""
    kept = {key: value for key, value in entry.items() if isinstance(value, int | float) or len(str(value)) <= 200}
    return {**kept, "left_out_bytes": size}


class StreamTeller:
    """Publishes to this node's subject of a stream, in order; what NATS has not confirmed is kept, up to `most`."""

    def __init__(self, kind: Literal["event", "audit"], most: int) -> None:
        self._kind: Literal["event", "audit"] = kind
        self._most = most
        self._waiting: deque[tuple[str, JsonObject]] = deque()
        self._wake = asyncio.Event()
        self.on_confirmed: Callable[[JsonObject], None] = lambda entry: None
        self.dropped = 0
        """How many were left out because NATS was away for too long."""

    def add(self, id: str, entry: JsonObject) -> None:
        """`id` is unique in the fleet and the same for the same entry."""
        self._waiting.append((id, entry))
        while len(self._waiting) > self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._wake.set()

    async def run(self, connection: FleetConnection) -> None:
        """Until the connection ends. Raises ConnectionLost."""
        from nats.errors import Error
        from nats.js.errors import APIError, NoStreamResponseError

        subject = getattr(connection.names, self._kind)(connection.node)
        while True:
            while self._waiting:
                id, entry = self._waiting[0]
                dropped = self.dropped
                if dropped:
                    entry = {**entry, "dropped_before": dropped}
                data = json.dumps(entry, separators=(",", ":")).encode()
                if len(data) > _MOST_BYTES:
                    data = json.dumps(_shorten(entry, len(data)), separators=(",", ":")).encode()
                try:
                    await connection.js.publish(subject, data, headers={"Nats-Msg-Id": id}, timeout=3)
                except (APIError, NoStreamResponseError) as problem:
                    # The stream is full, gone or has no disk. Everything else goes on.
                    log.warning("NATS does not take an %s now: %s", self._kind, problem)
                    await asyncio.sleep(_AGAIN_S)
                    continue
                except (Error, OSError) as problem:
                    raise ConnectionLost(f"NATS did not take an {self._kind}: {problem}") from None
                self.dropped -= dropped
                if self._waiting and self._waiting[0][0] == id:
                    self.on_confirmed(self._waiting.popleft()[1])
            self._wake.clear()
            await self._wake.wait()
