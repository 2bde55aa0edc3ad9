"""Snapshots, retention and the cap go on whatever becomes of one session."""

from __future__ import annotations

import pytest

from tests.support.session.running import run_with_registry
from tests.support.waiting import until
from wsh.process import ChildHandle, SpawnSpec
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.wire.system.place import Places

FLOOD = "printf a; read go; head -c 3000000 /dev/zero | tr '\\0' y; exec cat"


async def _has_snapshot(registry: SessionRegistry, session: Session) -> None:
    await until(
        lambda: any("snapshot" in path.name for path in session.folder.path.iterdir()),
        f"a snapshot of {session.name}",
        seen=lambda: (list(session.folder.path.iterdir()), registry._housekeeping._task),
        timeout_s=30,
    )


def test_killing_a_session_whose_output_is_behind_leaves_the_others_their_snapshots(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(registry: SessionRegistry) -> None:
        flood = await registry.open_session(SessionSpec(command=FLOOD, name="flood"))
        await until(lambda: flood.generation > 0, "its first byte")
        with monkeypatch.context() as patch:
            patch.setattr(registry.pump, "wake", lambda sources: None)  # the server is too busy to parse
            assert flood.child is not None
            flood.child.write(b"\r")
            await until(lambda: flood.child is not None and flood.child.ring.paused, "the ring to be full")
            await until(lambda: flood in registry._housekeeping._changed, "housekeeping to have heard of it")
            await registry.kill("flood")
        assert flood not in registry._housekeeping._changed
        other = await registry.open_session(SessionSpec(command="read go; printf other; exec cat", name="other"))
        assert other.child is not None
        other.child.write(b"\r")
        await _has_snapshot(registry, other)

    run_with_registry(places, work, session__ring_bytes=65536, journal__snapshot_interval_s=0.1)


def test_a_session_that_printed_only_before_it_was_on_the_list_has_a_snapshot(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(registry: SessionRegistry) -> None:
        spawn = registry.keeper.spawn

        async def spawn_and_look_away(spec: SpawnSpec) -> ChildHandle:
            child = await spawn(spec)
            await until(lambda: child.ring.head >= 5, "all that it prints")
            return child

        monkeypatch.setattr(registry.keeper, "spawn", spawn_and_look_away)
        await _has_snapshot(registry, await registry.open_session(SessionSpec(command="printf early; exec cat")))

    run_with_registry(places, work, journal__snapshot_interval_s=0.1)


def test_a_failing_look_at_the_sessions_is_logged_and_the_next_one_comes(
    places: Places, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(registry: SessionRegistry) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(registry._housekeeping, "_cap", lambda: 1 / 0)
            session = await registry.open_session(SessionSpec(command="printf hello; exec cat"))
            await until(lambda: "housekeeping failed" in caplog.text, "the failure in the log", timeout_s=30)
        session.snapshot_offset = -1
        registry._housekeeping.touched(session)
        await _has_snapshot(registry, session)

    run_with_registry(places, work, journal__snapshot_interval_s=0.1)
