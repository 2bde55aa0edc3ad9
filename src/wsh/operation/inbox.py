"""The inbox: everything that waits for the person or has ended, in one list, and putting an entry aside."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Literal

from pydantic import Field

from wsh.inbox.item import ORDER, InboxItem, InboxLimits, ItemKind, list_items
from wsh.inbox.mark import DONE
from wsh.operation.context import Context, Rooms
from wsh.operation.forward import Forwarding
from wsh.operation.operation import operation
from wsh.session.state import find_word
from wsh.wire.error import InvalidRequest, NotFound
from wsh.wire.model.base import Model, Shown

_SNOOZE_S = 3600
_NAMES = ("id", "session", "request_id")


class InboxEntry(Shown):
    id: str
    kind: Literal["request", "hidden", "asks", "failed", "finished"]
    wants: bool
    """Whether it waits for a person; only these count in a badge."""
    since: float
    """When it began to wait, or ended: seconds since the epoch."""
    age_ms: int
    what: str
    """The command."""
    line: str
    """Of a program that asks: its last line."""
    session: str | None
    command_id: int | None
    request_id: str | None
    """Of a request: its id under /approvals."""
    exit_code: int | None
    duration_ms: float | None
    done: bool
    snoozed_until: float | None
    host: str | None = None
    """The host that it is of; null for this server."""


class Inbox(Shown):
    items: list[InboxEntry]
    wants: int
    """How many of them wait for a person and are not put aside."""


class InboxQuery(Model):
    all: Annotated[bool, Field(description="With those that are done or snoozed.")] = False


class InboxMarkBody(Model):
    """`snooze` hides it for `for_s` seconds (an hour if left out), `done` for good, `restore` brings it back."""

    action: Literal["done", "snooze", "restore"]
    for_s: Annotated[int, Field(ge=1, le=2_592_000)] | None = None


class InboxMark(InboxMarkBody):
    id: str


@operation(who="owner", manner="reads", forwarding=Forwarding(names=_NAMES, joined="items"))
async def list_inbox(context: Context, params: InboxQuery) -> Inbox:
    """What waits for a person or has ended: requests, programs that ask, failed and finished commands."""
    return _make_inbox(await _list_entries(context.rooms), params.all)


@operation(who="owner", errors=("not_found",), forwarding=Forwarding(addresses=("id",), names=_NAMES))
async def mark_inbox(context: Context, params: InboxMark) -> Inbox:
    """Mark an entry as done, put it off, or bring it back."""
    if params.for_s is not None and params.action != "snooze":
        raise InvalidRequest("for_s goes with snooze.", hint="Leave it out.")
    found = {entry.id: entry for entry in await _list_entries(context.rooms)}
    entry = found.get(params.id)
    if entry is None:
        raise NotFound(
            f"The inbox has no entry {params.id!r}.", hint="List it again: a program that was answered asks no more."
        )
    if entry.kind == "request" and params.action == "done":
        raise InvalidRequest(
            "A request is done when it is answered.", hint="Approve or decline it, or snooze it until then."
        )
    until = {"done": DONE, "restore": None, "snooze": time.time() + (params.for_s or _SNOOZE_S)}[params.action]
    await context.rooms.inbox_marks.set(params.id, until, found.keys())
    return _make_inbox(await _list_entries(context.rooms), False)


def _make_inbox(entries: list[InboxEntry], with_aside: bool) -> Inbox:
    wants = sum(entry.wants and not _is_aside(entry) for entry in entries)
    return Inbox(items=[entry for entry in entries if with_aside or not _is_aside(entry)], wants=wants)


def _is_aside(entry: InboxEntry) -> bool:
    return entry.done or entry.snoozed_until is not None


async def _list_entries(rooms: Rooms) -> list[InboxEntry]:
    """Everything, put aside or not: what waits first, by kind and the oldest ahead, then what ended, newest ahead."""
    contract = await rooms.contract.get()
    limits = InboxLimits.of(rooms.settings)
    sessions = rooms.registry.list_sessions()
    states = await asyncio.gather(*(find_word(session) for session in sessions))
    await rooms.inbox_marks.load()
    now = time.time()
    put_off = rooms.inbox_marks.list_put_off(now)
    items = [
        item
        for session, state in zip(sessions, states, strict=True)
        for item in list_items(session, state, limits, now, put_off)
    ]
    for entry in contract.interactive.waiting.list_entries():
        if entry.state == "waiting":
            wire = entry.to_wire()
            session = entry.request.title if entry.request.kind == "hidden" else None
            # The request stands for the prompt that it is about.
            items = [item for item in items if session is None or (item.kind, item.session) != ("hidden", session)]
            items.append(_make_request(str(wire["id"]), entry.since, str(wire["command"]), session))
    items.sort(key=lambda item: (ORDER.index(item.kind), item.since) if item.wants else (len(ORDER), -item.since))
    return [_show(rooms, item, now) for item in items]


def _make_request(id: str, since: float, command: str, session: str | None) -> InboxItem:
    kind: ItemKind = "request"
    return InboxItem(f"request.{id}", kind, since, command or "opens a terminal", session=session, request_id=id)


def _show(rooms: Rooms, item: InboxItem, now: float) -> InboxEntry:
    marks = rooms.inbox_marks
    return InboxEntry(
        id=item.id,
        kind=item.kind,
        wants=item.wants,
        since=item.since,
        age_ms=max(0, int((now - item.since) * 1000)),
        what=item.what,
        line=item.line,
        session=item.session,
        command_id=item.command_id,
        request_id=item.request_id,
        exit_code=item.exit_code,
        duration_ms=item.duration_ms,
        done=marks.is_done(item.id),
        snoozed_until=marks.snoozed_until(item.id, now),
    )
