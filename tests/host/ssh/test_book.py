"""The list of ssh hosts on disk, while it changes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from wsh.host.carrier import HostState
from wsh.host.registry import HostRegistry
from wsh.host.ssh import book as ssh_book
from wsh.host.ssh.book import SshBook, read_entries
from wsh.host.ssh.carrier import SshCarrier, SshTiming
from wsh.host.ssh.master import SshTarget
from wsh.host.ssh.seen import SeenHost
from wsh.wire.error import StateConflict
from wsh.wire.json.object import JsonObject
from wsh.wire.setting import load
from wsh.wire.system.place import Places, find_places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    folders = {"XDG_RUNTIME_DIR": "r", "XDG_STATE_HOME": "s", "XDG_CONFIG_HOME": "c"}
    for short in folders.values():
        (tmp_path / short).mkdir(mode=0o700)
    found = find_places({name: str(tmp_path / short) for name, short in folders.items()})
    found.config.mkdir(mode=0o700, parents=True)
    found.config_file.write_text('[hosts]\nssh = ["false"]\n')
    return found


@asynccontextmanager
async def _open_book(places: Places) -> AsyncIterator[tuple[SshBook, HostRegistry]]:
    registry = HostRegistry()
    book = SshBook(places, load(places.config_file), registry, "here")
    book.open()
    try:
        yield book, registry
    finally:
        await registry.aclose()


async def test_hosts_that_are_added_and_removed_at_once_are_all_on_disk(places: Places) -> None:
    async with _open_book(places) as (book, _):
        await book.add("old", "old", None)
        await asyncio.gather(book.add("one", "one", None), book.remove("old"), book.add("two", "two", "nice wsh"))
    assert read_entries(places.config / "hosts.json") == {
        "one": {"target": "one"},
        "two": {"target": "two", "command": "nice wsh"},
    }


async def test_of_two_hosts_of_one_name_that_are_added_at_once_the_second_is_refused(places: Places) -> None:
    async with _open_book(places) as (book, registry):
        made = await asyncio.gather(
            book.add("one", "first", None), book.add("one", "second", None), return_exceptions=True
        )
        assert [type(one) for one in made] == [type(None), StateConflict]
        assert registry.get_carrier("one").state.target == "first"
    assert read_entries(places.config / "hosts.json") == {"one": {"target": "first"}}


async def test_calls_wait_for_the_next_connection_as_long_as_the_setting_says(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    timings: list[SshTiming] = []

    class Noted(SshCarrier):
        def __init__(
            self, target: SshTarget, folder: Path, here: str, timing: SshTiming, seen: SeenHost | None = None
        ) -> None:
            timings.append(timing)
            super().__init__(target, folder, here, timing, seen)

    monkeypatch.setattr(ssh_book, "SshCarrier", Noted)
    places.config_file.write_text('[hosts]\nssh = ["false"]\nresume_s = 600\n')
    async with _open_book(places) as (book, _):
        await book.add("one", "one", None)
    assert [timing.resume_s for timing in timings] == [600.0]


_DAMAGED = '{"one": {"target": "one"}, "two": "user@two", "three": {}, "four": {"target": "four", "command": 4}}'


async def test_an_entry_that_cannot_be_used_takes_no_other_with_it_and_stays_in_the_file(places: Places) -> None:
    path = places.config / "hosts.json"
    path.write_text(_DAMAGED)
    async with _open_book(places) as (book, registry):
        assert [host.name for host in registry.list_hosts()] == ["one"]
        await book.add("five", "five", None)
        await book.remove("one")
    assert json.loads(path.read_text()) == {
        "two": "user@two",
        "three": {},
        "four": {"target": "four", "command": 4},
        "five": {"target": "five"},
    }


@pytest.mark.parametrize("content", ['{"one": {"target": "one"}', '[{"one": "one"}]', "[" * 100_000, "\xff"])
async def test_a_list_that_cannot_be_read_is_not_written_over(places: Places, content: str) -> None:
    path = places.config / "hosts.json"
    path.write_text('{"one": {"target": "one"}}')
    async with _open_book(places) as (book, registry):
        path.write_text(content, "latin-1")
        for change in (book.add("two", "two", None), book.remove("one")):
            with pytest.raises(StateConflict, match=re.escape(str(path))) as refused:
                await change
            assert "Correct the file" in (refused.value.hint or "")
        assert "one" in registry and "two" not in registry
    async with _open_book(places) as (book, registry):
        assert len(registry) == 0
        with pytest.raises(StateConflict, match=re.escape(str(path))):
            await book.add("two", "two", None)
    assert path.read_text("latin-1") == content


async def test_a_host_that_is_away_when_the_server_begins_is_told_as_the_server_before_last_saw_it(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places.config / "hosts.json").write_text('{"one": {"target": "one"}, "two": {"target": "two"}}')
    online = HostState("one", "ssh", "one", online=True, version="1.2.3", last_seen=1_000.0)
    sessions: list[JsonObject] = [{"name": "one/train", "tags": ["gpu"], "running": True}]
    async with _open_book(places) as (book, registry):
        with monkeypatch.context() as patch:
            patch.setattr(registry.get_carrier("one"), "_state", online)
            registry.remember({"one": sessions})
            await book.aclose()
    path = places.config / "hosts-seen.json"
    assert path.stat().st_mode & 0o777 == 0o600
    for _ in range(2):  # what was read is kept, too
        async with _open_book(places) as (book, registry):
            one, two = registry.list_hosts()
            assert not one.online and one.version == "1.2.3" and two.last_seen is None
            assert one.last_seen is not None and one.last_seen > 1_000.0 and one.since == one.last_seen
            assert registry.last_sessions == {"one": sessions}
            await book.aclose()
    async with _open_book(places) as (book, registry):
        await book.remove("one")
        await book.aclose()
    assert json.loads(path.read_text()) == {}


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"one": 1}', '{"one": {"target": "one", "last_seen": 1, "sessions": [1]}}']
)
async def test_damaged_notes_of_what_was_seen_leave_the_hosts_usable(places: Places, content: str) -> None:
    (places.config / "hosts.json").write_text('{"one": {"target": "one"}}')
    (places.config / "hosts-seen.json").write_text(content)
    async with _open_book(places) as (book, registry):
        assert [one.last_seen for one in registry.list_hosts()] == [None]
        await book.aclose()
