"""Requests on disk, one file each, so that a server that is killed leaves them to its successor.

A request is on disk before anybody is shown it, `starting` is before its program runs, and what became of it is before anybody is told. So
a successor asks again what still waits, and runs nothing that may have run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from wsh.approval.request import ApprovalRequest
from wsh.bridge.frame import Decision
from wsh.wire.caller import Caller
from wsh.wire.system.moment import Moment, read_moment
from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger("wsh.contract")

KeptState: TypeAlias = Literal["waiting", "starting", "settled"]
SETTLED = 64
"""How many that are settled stay on disk."""


class KeptRequest(BaseModel):
    """What a successor needs. The variables that govern a connection are left out: they may hold secrets, and the connection brings them anew."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: KeptState
    request: ApprovalRequest
    caller: dict[str, Any]
    keep: bool
    since: float
    made: tuple[float, str, float]
    workspace_id: str | None = None
    surface: str | None = None
    leaving: list[Any] | None = None
    sid: str | None = None
    """Of the session that it runs in; chosen before it runs."""
    decision: Decision | None = None
    outcome: str = ""
    ended: float | None = None
    exited: bool = False
    """Whether the end of its program is in the audit."""

    @property
    def left_ms(self) -> int:
        """What is left of its life. A clock that was set back gives none back."""
        age_s = max(0.0, Moment(*self.made).age(read_moment()))
        return self.request.deadline_ms - int(age_s * 1000)

    def make_caller(self) -> Caller:
        return Caller(**self.caller)


def describe_caller(caller: Caller) -> dict[str, Any]:
    return asdict(replace(caller, environ={}))


class RequestFolder:
    """`put` returns when the disk has it. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = asyncio.Lock()
        self._kept: dict[str, KeptRequest] = {}

    def load(self) -> list[KeptRequest]:
        """Blocking. All that an earlier server left, oldest first. What is not a request is removed; what the disk refuses is left for the next server."""
        found = [kept for path in _list_files(self._path) if (kept := _read(path)) is not None]
        found.sort(key=lambda kept: kept.since)
        self._kept = {kept.request.id: kept for kept in found}
        return found

    async def put(self, kept: KeptRequest) -> None:
        async with self._writing:
            await asyncio.to_thread(self._write, kept)

    async def change(self, id: str, **changes: object) -> None:
        async with self._writing:
            kept = self._kept.get(id)
            if kept is not None:
                await asyncio.to_thread(self._write, kept.model_copy(update=changes))

    async def note_exit(self, id: str) -> None:
        """The end of its program is in the audit. A disk that refuses lets a successor say it once more."""
        with contextlib.suppress(OSError):
            await self.change(id, exited=True)

    async def drop(self, id: str) -> None:
        async with self._writing:
            self._kept.pop(id, None)
            await asyncio.to_thread(self._remove, id)

    def _write(self, kept: KeptRequest) -> None:
        ensure_private(self._path)
        write_private(self._path / kept.request.id, kept.model_dump_json().encode())
        self._kept[kept.request.id] = kept
        settled = [id for id, one in self._kept.items() if one.state == "settled"]
        for id in settled[: max(0, len(settled) - SETTLED)]:
            del self._kept[id]
            self._remove(id)

    def _remove(self, id: str) -> None:
        with contextlib.suppress(OSError):
            (self._path / id).unlink()


def _list_files(path: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        for file in path.iterdir():
            if not file.is_file():  # nobody's request: a folder, or a FIFO, which would be waited for
                log.warning("among the requests that an earlier server left is no file: %s", file.name)
            elif file.name.startswith("."):  # a write that was cut off
                file.unlink(missing_ok=True)
            else:
                yield file


def _read(path: Path) -> KeptRequest | None:
    try:
        data = path.read_bytes()
    except OSError as problem:
        log.warning("a request that an earlier server left cannot be read now: %s: %s", path.name, problem)
        return None
    try:
        kept = KeptRequest.model_validate_json(data)
        kept.make_caller()
    except (ValidationError, TypeError, ValueError) as problem:
        log.warning("a request that an earlier server left cannot be read: %s: %s", path.name, type(problem).__name__)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return kept if kept.request.id == path.name else None
