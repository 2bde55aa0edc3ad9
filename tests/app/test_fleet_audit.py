"""The audit of a node on its way to the fleet, with NATS in the test's hands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.waiting import until
from wsh.app import fleet_audit
from wsh.app.fleet_audit import AuditCopy
from wsh.host.ending import end_tasks
from wsh.policy.audit import Audit
from wsh.wire.json.object import JsonObject


class Copied:
    """One start of a node: what was told of its audit."""

    def __init__(self, folder: Path, *, fleet: str = "A", most: int = 100) -> None:
        self.told: list[JsonObject] = []
        self.note = folder / "note"
        self.copy = AuditCopy(
            folder / "audit.log", self.note, lambda id, entry: self.told.append(entry), fleet=fleet, most=most
        )

    def list_words(self) -> list[object]:
        return [entry["word"] for entry in self.told]

    def has_noted(self, sequence: int) -> bool:
        return self.note.exists() and json.loads(self.note.read_bytes())["sequence"] == sequence


@asynccontextmanager
async def copying(made: Copied) -> AsyncIterator[Copied]:
    task = asyncio.ensure_future(made.copy.run())
    try:
        yield made
    finally:
        await end_tasks([task])


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], JsonObject]:
    monkeypatch.setattr(fleet_audit, "_EVERY_S", 0.01)
    audit = Audit(tmp_path / "audit.log")
    return lambda word: audit.append({"word": word})


async def test_what_was_decided_since_the_first_join_is_copied_also_after_a_restart(
    tmp_path: Path, write: Callable[[str], JsonObject]
) -> None:
    write("before")
    async with copying(Copied(tmp_path)) as first:
        await until(lambda: first.has_noted(1))
    write("while NATS was away, and no server ran")
    async with copying(Copied(tmp_path)) as second:
        await until(lambda: second.list_words() == ["while NATS was away, and no server ran"])


async def test_nothing_is_left_out_however_long_nats_is_away(
    tmp_path: Path, write: Callable[[str], JsonObject]
) -> None:
    async with copying(Copied(tmp_path, most=3)) as made:
        await until(lambda: made.has_noted(0))
        for number in range(10):
            write(str(number))
        await until(lambda: len(made.told) == 3)
        confirmed = 0
        while confirmed < 10:
            made.copy.confirm(made.told[confirmed])
            confirmed += 1
            await until(lambda confirmed=confirmed: len(made.told) == min(10, confirmed + 3))  # type: ignore[misc]
        assert made.list_words() == [str(number) for number in range(10)]


async def test_what_was_decided_between_two_fleets_is_told_to_neither(
    tmp_path: Path, write: Callable[[str], JsonObject]
) -> None:
    async with copying(Copied(tmp_path, fleet="A")) as made:
        await until(lambda: made.has_noted(0))
    write("private")
    async with copying(Copied(tmp_path, fleet="B")) as made:
        await until(lambda: made.has_noted(1))
        write("decided in B")
        await until(lambda: made.list_words() == ["decided in B"])


async def test_a_foreign_line_in_the_trail_stops_nothing(tmp_path: Path, write: Callable[[str], JsonObject]) -> None:
    (tmp_path / "note").write_text('{"sequence": 0}')
    write("one")
    trail = tmp_path / "audit.log"
    trail.write_bytes(trail.read_bytes() + b'{"hash": "x"}\n')
    write("two")
    async with copying(Copied(tmp_path)) as made:
        await until(lambda: made.list_words() == ["one", "two"])
