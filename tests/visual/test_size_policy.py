"""Looking never changes: whose size a session takes, and how a viewer shows one that has another."""

from __future__ import annotations

import pytest

from tests.support.session.running import run_with_registry
from tests.support.waiting import until
from tests.visual.test_viewer import Emulator, look, viewers_of
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.terminal import Terminal
from wsh.visual.input.keyboard import is_typed
from wsh.visual.stage_registry import StageRegistry
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places

PERSON, AGENT = Actor("person", "page"), Actor("agent", "builder")


async def open_by(registry: SessionRegistry, actor: Actor, rows: int = 24, cols: int = 80) -> Session:
    return await registry.open_session(SessionSpec(command="cat", rows=rows, cols=cols, actor=actor))


def size(session: Session) -> tuple[int, int]:
    return session.rows, session.cols


def test_a_persons_session_takes_the_size_of_whoever_typed_last_and_of_nobody_who_looks(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_by(registry, PERSON, 50, 200)
        viewers = viewers_of(session, "typed")
        desk, _ = look(viewers, 40, 105)
        phone, _ = look(viewers, 44, 48)
        viewers.resize(phone, 30, 48)
        viewers.keys.press(phone, b"\x1b[I\x1b[O\x1b[<35;3;4M")
        assert size(session) == (50, 200), "neither looking, nor turning a phone, nor a reported mouse is typing"
        viewers.keys.press(desk, b"a")
        assert size(session) == (40, 105)
        viewers.resize(phone, 44, 48)
        assert size(session) == (40, 105)
        viewers.resize(desk, 41, 110)
        assert size(session) == (41, 110), "who typed last may make the window larger"
        viewers.keys.press(phone, b"b")
        assert size(session) == (44, 48)
        viewers.detach(phone)
        assert size(session) == (44, 48), "leaving changes nothing"

    run_with_registry(places, work)


def test_an_agents_session_changes_only_when_somebody_asks_to_fit_it(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_by(registry, AGENT, 50, 200)
        viewers = viewers_of(session, "typed")
        viewer, seen = look(viewers, 20, 100, status=True)
        onlooker, _ = look(viewers, 10, 10, read_only=True)
        viewers.keys.press(viewer, b"hello")
        viewers.resize(viewer, 21, 100)
        viewers.sizes.fit(onlooker)
        assert size(session) == (50, 200)
        assert "of 200×50 (the agent's)" in seen.lines[-1]
        assert [m["follows"] for m in seen.told if m["type"] == "size"] == [False]
        viewers.sizes.fit(viewer)
        assert size(session) == (20, 100), "without the row of the status line"

    run_with_registry(places, work)


def test_typed_is_how_it_is_shipped_and_is_said_in_the_status_line(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_by(registry, PERSON)
        viewers = StageRegistry(Settings()).viewers_of(session)
        assert viewers.sizes.policy == "typed"
        _, seen = look(viewers, 10, 79, status=True)
        assert "of 80×24 (until you type)" in seen.lines[-1]

    run_with_registry(places, work)


def test_a_whole_viewer_shows_the_session_in_its_own_size_with_the_earlier_lines(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="sh -c 'seq 1 300; cat'", rows=30, cols=100, actor=PERSON)
        )
        await session.wait(WaitSpec(text="300", generation=0))
        viewers = viewers_of(session, "typed")
        seen = Emulator(30, 100)
        viewer = viewers.attach(seen, 10, 40, whole=True, scrollback_lines=2000)
        kinds = [m["type"] for m in seen.told]
        assert kinds[0] == "size" and (seen.told[0]["rows"], seen.told[0]["cols"]) == (30, 100)
        assert every_line(seen.terminal) == [str(n) for n in range(1, 301)], (
            "no seam between the history and the screen"
        )
        viewers.resize(viewer, 12, 44)
        assert size(session) == (30, 100)
        viewers.keys.press(viewer, b"x")
        assert size(session) == (12, 44), "typing takes what has room"
        seen.terminal.resize(12, 44)
        await until(lambda: every_line(seen.terminal) == [*(str(n) for n in range(1, 301)), "x"], "laid out anew, once")

    run_with_registry(places, work)


def every_line(terminal: Terminal) -> list[str]:
    lines = [str(line) for line in terminal.lines_between(terminal.first_line, terminal.total_lines, styled=False)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.mark.parametrize(("rows", "printed"), [(1, 1), (1, 5), (2, 1), (5, 4), (5, 5), (5, 6), (24, 23), (24, 300)])
def test_the_scrollback_of_a_new_viewer_has_no_gap(places: Places, rows: int, printed: int) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_by(registry, PERSON, rows, 40)
        session.terminal.feed("".join(f"{n}\r\n" for n in range(1, printed + 1)).encode() + b"end")
        viewers = viewers_of(session, "fixed")
        seen = Emulator(rows, 40)
        viewers.attach(seen, rows, 40, scrollback_lines=2000)
        assert every_line(seen.terminal) == [*(str(n) for n in range(1, printed + 1)), "end"]

    run_with_registry(places, work)


@pytest.mark.parametrize(
    ("data", "typed"),
    [
        (b"a", True),
        (b"\x1b[I", False),
        (b"\x1b[O\x1b[<0;1;1M\x1b[<0;1;1m", False),
        (b"\x1b[M !!", False),
        (b"\x1b[Ia", True),
        (b"\x1b[A", True),
        (b"\x1bOA", True),
        (b"\r", True),
    ],
)
def test_reports_of_focus_and_mouse_are_no_typing(data: bytes, typed: bool) -> None:
    assert is_typed(data) is typed
