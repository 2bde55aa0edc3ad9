"""The outbox: every notice with its state at every channel, in one file that is written whole.

What a channel is about to send is `sending` on disk before it leaves. A successor that finds `sending` does not know whether it arrived:
push is sent again, because its receiver shows an id once; everything else is not.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Literal, TypeAlias, get_args

from wsh.notice.rule import KINDS, WAITING, Channel, NoticeKind
from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger(__name__)

DeliveryState: TypeAlias = Literal["due", "sending", "sent", "over", "seen", "held", "failed", "unknown"]
OPEN: tuple[DeliveryState, ...] = ("due", "sending")
_HEARD = 10_000
_ENDED: frozenset[NoticeKind] = frozenset({"failed", "finished", "exited"})
"""Kinds that are known as told by when they ended."""


@dataclass(frozen=True)
class Delivery:
    """Of one notice by one channel. `over`: answered before it was told; `seen`: the person typed there meanwhile; `held`: too many."""

    state: DeliveryState = "due"
    tries: int = 0
    next_at: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Notice:
    """`seq` rises with every notice, over restarts too. `title` and `text` are for channels that only the owner reads."""

    seq: int
    id: str
    kind: NoticeKind
    since: float
    made: float
    title: str
    text: str = ""
    session: str | None = None
    sid: str = ""
    row: int = 0
    """Of a program that asks: the line of its question, counted from the session's first."""
    request_id: str | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    over: bool = False
    """It waits no more."""
    into: str = ""
    line: str = ""
    front: int = 0
    deliveries: dict[Channel, Delivery] = field(default_factory=dict)

    @property
    def host(self) -> str | None:
        """The other machine that it is of."""
        return self.id.partition("/")[0] if "/" in self.id else None

    @property
    def waits(self) -> bool:
        return self.kind in WAITING and not self.over

    @property
    def matters(self) -> bool:
        """Whether it waits for somebody, or has still to be sent."""
        return self.waits or any(one.state in OPEN for one in self.deliveries.values())


class Outbox:
    """`notices` is what is true now; `kept` is what the disk has, which is all that is shown to anybody."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self.notices: dict[str, Notice] = {}
        self.kept: dict[str, Notice] = {}
        self.floor = 0.0
        """What ended before this was told, or is not worth telling any more."""
        self.heard: dict[str, int] = {}
        """By session: the offset up to which the messages of its programs are in the outbox."""
        self._seq = 0
        self._writing = asyncio.Lock()
        self._changes = 0
        self._written = 0

    def load(self) -> None:
        """Blocking. A file that cannot be read counts as empty: nothing that is old is told then."""
        self.floor = time.time()
        self._changes += 1  # a successor has to know from when on things were told
        try:
            found = json.loads(self._path.read_bytes())
            notices = [_restore(one) for one in found["notices"]]
            floor, seq = float(found["floor"]), int(found["seq"])
            heard = {str(sid): int(offset) for sid, offset in found["heard"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
            log.warning("the outbox cannot be read; what was in it is not told: %s", problem)
            return
        self._changes -= 1
        self.floor, self._seq, self.heard = floor, seq, heard
        self.notices = {notice.id: notice for notice in notices}
        self.kept = dict(self.notices)
        for notice in notices:
            for channel, delivery in notice.deliveries.items():
                if delivery.state == "sending":
                    self.deliver(notice.id, channel, *_AFTER_A_DEATH.get(channel, _UNKNOWN))

    @property
    def is_changed(self) -> bool:
        """Whether the disk has not got all of it yet."""
        return self._changes > self._written

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def add(self, notice: Notice) -> None:
        self._changes += 1
        self.notices[notice.id] = notice
        while len(self.notices) > self._most:
            values = self.notices.values()
            # What still waits is known by its notice alone: without it, it would be told again, or not at all.
            gone = next((one for one in values if not one.matters and one is not notice), None) or next(iter(values))
            if gone.kind in _ENDED and gone.host is None:
                self.floor = max(self.floor, gone.since)
            del self.notices[gone.id]

    def forget_before(self, when: float) -> None:
        """What ended before that is not told any more."""
        if when > self.floor:
            self._changes += 1
            self.floor = when

    def hear(self, sid: str, offset: int) -> None:
        self._changes += 1
        self.heard.pop(sid, None)
        self.heard[sid] = offset
        while len(self.heard) > _HEARD:
            del self.heard[next(iter(self.heard))]

    def end(self, id: str) -> None:
        notice = self.notices.get(id)
        if notice is not None and not notice.over:
            self._changes += 1
            self.notices[id] = replace(notice, over=True)

    def deliver(self, id: str, channel: Channel, state: DeliveryState, why: str = "", next_at: float = 0.0) -> None:
        notice = self.notices.get(id)
        if notice is not None:
            self._changes += 1
            before = notice.deliveries[channel]
            tries = before.tries + (state == "sending")
            after = Delivery(state, tries, next_at, why)
            self.notices[id] = replace(notice, deliveries={**notice.deliveries, channel: after})

    def list_due(self, channel: Channel) -> list[Notice]:
        return [one for one in self.notices.values() if (d := one.deliveries.get(channel)) and d.state == "due"]

    def list_open(self, kinds: Iterable[NoticeKind], sid: str | None = None) -> list[Notice]:
        """Notices of things that wait for somebody, oldest first."""
        return [
            one for one in self.notices.values() if one.kind in kinds and one.waits and (sid is None or one.sid == sid)
        ]

    async def commit(self) -> None:
        """On disk when this returns. Raises OSError."""
        mine = self._changes
        async with self._writing:
            if self._written >= mine:
                return  # somebody else's write had it
            now, kept = self._changes, dict(self.notices)
            state = {"floor": self.floor, "seq": self._seq, "heard": dict(self.heard)}
            await asyncio.to_thread(self._write, state, kept)
            self._written, self.kept = now, kept

    def _write(self, state: dict[str, object], kept: dict[str, Notice]) -> None:
        ensure_private(self._path.parent)
        text = json.dumps(state | {"notices": [asdict(one) for one in kept.values()]})
        write_private(self._path, text.encode())


_UNKNOWN: tuple[DeliveryState, str] = ("unknown", "the server ended while it was sent; whether it arrived is not known")
_AFTER_A_DEATH: dict[Channel, tuple[DeliveryState, str]] = {"push": ("due", ""), "line": ("due", "")}
"""A line goes by the list of wakes, which takes an id once."""


def _restore(kept: dict[str, object]) -> Notice:
    """Raises ValueError, TypeError or KeyError for what we cannot have written."""
    deliveries = kept.pop("deliveries")
    if not isinstance(deliveries, dict):
        raise ValueError("no deliveries")
    notice = Notice(**kept)  # type: ignore[arg-type]  # checked below
    numbers = (notice.seq, notice.since, notice.made, notice.row, notice.front)
    texts = (notice.id, notice.title, notice.text, notice.sid, notice.into, notice.line)
    if not _are(int | float, numbers) or not _are(str, texts) or notice.kind not in KINDS:
        raise ValueError(f"no notice: {notice.id!r}")
    restored = {channel: Delivery(**one) for channel, one in deliveries.items()}
    for one in restored.values():
        if not _are(int | float, (one.tries, one.next_at)) or one.state not in get_args(DeliveryState):
            raise ValueError(f"no delivery: {one!r}")
    return replace(notice, deliveries=restored)


def _are(kind: type | UnionType, values: Iterable[object]) -> bool:
    return all(isinstance(value, kind) for value in values)
