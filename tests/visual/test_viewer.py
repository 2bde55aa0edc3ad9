"""Viewers of a real session: whose size counts, what each sees, what their keys do, and what a slow one costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.session.running import open_quiet, run, run_with_registry, settings_of
from tests.support.waiting import until
from wsh.session.event import Actor
from wsh.session.input.receipt import Receipts
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.terminal import Terminal
from wsh.visual.stage import Stage
from wsh.visual.viewer.frame import PUT_OFF_S
from wsh.visual.viewer.size import SizePolicy
from wsh.visual.viewer.viewer import Viewer
from wsh.visual.viewer.viewers import Viewers
from wsh.wire.error import SessionTaken
from wsh.wire.model.element import PanelCreate
from wsh.wire.system.place import Places


class Emulator:
    """A viewer's connection with an emulator at its other end. While `stuck` it takes nothing more."""

    def __init__(self, rows: int, cols: int) -> None:
        self.terminal = Terminal(rows, cols)
        self.told: list[dict[str, object]] = []
        self.sent_bytes = 0
        self.stuck = False
        self.dismissed = ""

    def is_busy(self) -> bool:
        return self.stuck

    def send(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        self.terminal.feed(data)

    def tell(self, message: dict[str, object]) -> None:
        self.told.append(message)

    def dismiss(self, reason: str) -> None:
        self.dismissed = reason

    @property
    def lines(self) -> list[str]:
        return [str(line) for line in self.terminal.screen(styled=False).lines]


def look(
    viewers: Viewers, rows: int, cols: int, *, read_only: bool = False, status: bool = False
) -> tuple[Viewer, Emulator]:
    emulator = Emulator(rows, cols)
    return viewers.attach(emulator, rows, cols, read_only=read_only, status=status), emulator


def viewers_of(session: Session, policy: SizePolicy = "latest") -> Viewers:
    stage = Stage(session)
    return Viewers(session, stage, policy=policy)


def test_the_session_takes_the_size_that_the_policy_says(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="sizes")
        latest = viewers_of(session)
        large, _ = look(latest, 40, 100)
        small, _ = look(latest, 20, 60)
        assert (session.rows, session.cols) == (20, 60)
        latest.keys.press(large, b" ")
        assert (session.rows, session.cols) == (40, 100)
        look(latest, 10, 10, read_only=True)
        assert (session.rows, session.cols) == (40, 100), "whoever only looks changes nothing"
        latest.detach(large)
        assert (session.rows, session.cols) == (20, 60)
        latest.resize(small, 21, 61)
        assert (session.rows, session.cols) == (21, 61)
        smallest = viewers_of(session, "smallest")
        look(smallest, 30, 50)
        wide, _ = look(smallest, 20, 90)
        assert (session.rows, session.cols) == (20, 50)
        smallest.detach(wide)
        assert (session.rows, session.cols) == (30, 50)
        fixed = viewers_of(session, "fixed")
        look(fixed, 5, 5)
        assert (session.rows, session.cols) == (30, 50)

    run_with_registry(places, work)


def test_a_small_viewer_moves_its_window_with_the_prefix_and_an_arrow(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="printf '%s\\n' top 2 3 4 5 6 7 8 9; printf 'bottom%24sright'; cat", rows=10, cols=40)
        )
        await session.wait(WaitSpec(text="right", generation=0))
        viewers = viewers_of(session, "fixed")
        viewer, seen = look(viewers, 5, 20, status=True)
        assert seen.lines[3].endswith("right"), "the cursor is in sight"
        for _ in range(3):
            viewers.keys.press(viewer, b"\x1c\x1b[A\x1b[D")
        await until(lambda: seen.lines[0] == "top", str(seen.lines))
        for _ in range(3):
            viewers.keys.press(viewer, b"\x1c\x1b[B")
        await until(lambda: seen.lines[3] == "bottom", str(seen.lines))
        viewers.keys.press(viewer, b"\x1c\x1b[1;5C\x1b[1;5C")
        await until(lambda: seen.lines[3].endswith("right"), str(seen.lines))
        assert viewers.stage.input.mode == "passthrough"
        viewers.stage.resize(4, 20)
        await until(lambda: (viewer.top, viewer.left) == (0, 0), "a window that lies outside comes back")

    run_with_registry(places, work)


def test_a_person_takes_over_and_hands_back_with_a_key(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="taken")
        viewers = viewers_of(session)
        viewer, seen = look(viewers, 24, 90, status=True)
        viewers.keys.press(viewer, b"\x1c")
        viewers.keys.press(viewer, b"\x14")
        assert session.input.taken_by == viewer.id and viewers.stage.input.mode == "passthrough"
        other, beside = look(viewers, 24, 90, status=True)
        await until(lambda: "by you, Ctrl+\\ Ctrl+T hands back" in seen.lines[23], seen.lines[23])
        await until(
            lambda: "by another terminal, Ctrl+\\ Ctrl+T takes over" in beside.lines[23], "who has it, to the other one"
        )
        viewers.detach(other)
        with pytest.raises(SessionTaken):
            await session.input.send(b"x", Actor("agent", "a"))
        viewers.keys.press(viewer, b"echo by $((40 + 2))\r")
        await until(lambda: "by 42" in seen.lines, "a person types on")
        viewers.keys.press(viewer, b"\x1c\x14")
        assert str(session.input.taken_by) == "None"
        viewers.keys.press(viewer, b"\x1c\x14")
        viewers.detach(viewer)
        assert session.input.taken_by is None, "whoever leaves hands back"

    run_with_registry(places, work)


def test_the_status_line_says_how_many_look_also_when_one_has_left(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="counted")
        viewers = viewers_of(session)
        _, seen = look(viewers, 24, 90, status=True)
        other, _ = look(viewers, 24, 90, status=True)
        third, _ = look(viewers, 24, 90)
        await until(lambda: "3 viewers" in seen.lines[23], "the others")
        viewers.detach(third)
        await until(lambda: "2 viewers" in seen.lines[23], "one less, though nothing was printed")
        viewers.detach(other)
        await until(lambda: "viewers" not in seen.lines[23], "that nobody else looks")

    run_with_registry(places, work)


def test_the_status_line_says_for_a_while_who_typed(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="shared")
        viewers = viewers_of(session)
        viewer, seen = look(viewers, 24, 90, status=True)
        monkeypatch.setattr("wsh.visual.viewer.status._TYPED_S", 3600.0)
        await session.input.send(b"echo fr''om", Actor("agent", "ada"))
        await until(lambda: "typed by agent ada" in seen.lines[23], "who typed")
        viewers.keys.press(viewer, b" me\r")
        await until(lambda: "from me" in seen.lines and "typed by" not in seen.lines[23], "the person typed since")
        viewers.detach(viewer)
        again, seen = look(viewers, 24, 90, status=True)
        assert "shared" in seen.lines[23] and "typed by" not in seen.lines[23], "the same person came again"
        await session.input.send(b"x", Actor("person", "owner"))
        await until(lambda: "typed by a command of yours" in seen.lines[23], "a command")
        viewers.detach(again)
        monkeypatch.setattr("wsh.visual.viewer.status._TYPED_S", 0.3)
        _, seen = look(viewers, 24, 90, status=True)
        await session.input.send(b"x", Actor("agent", "ada"))
        await until(lambda: "x" in seen.lines[2] and "typed by" not in seen.lines[23], "it is told no longer")

    run_with_registry(places, work)


def test_a_paste_while_keys_are_captured_presses_none_though_it_comes_in_pieces(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="captured")
        viewers = viewers_of(session)
        viewer, _ = look(viewers, 24, 80)
        control = viewers.stage.input
        control.capture("agent:ada", by_agent=True)
        for piece in (b"a\x1b[200~", b"yes\r\x1b[20", b"1~\r", b"\x1b[200~no", b"\r"):
            viewers.keys.press(viewer, piece)
        events, _ = control.take_events("agent:ada")
        assert [(event.key, event.raw) for event in events] == [
            ("a", b"a"),
            ("paste", b"\x1b[200~"),
            ("paste", b"yes\r\x1b[20"),
            ("paste", b"1~"),
            ("enter", b"\r"),
            ("paste", b"\x1b[200~"),
            ("paste", b"no"),
            ("paste", b"\r"),
        ]
        control.release("agent:ada")
        viewers.keys.press(viewer, b"\x1b[201~")
        control.capture("agent:ada", by_agent=True)
        viewers.keys.press(viewer, b"\r")
        assert [event.key for event in control.take_events("agent:ada")[0]] == ["enter"]

    run_with_registry(places, work)


def test_what_was_pasted_arrives_whole_though_nobody_looks_any_more(places: Places, tmp_path: Path) -> None:
    async def work(registry: SessionRegistry) -> None:
        size, gate = 300_000, tmp_path / "gate"
        program = f"until [ -e {gate} ]; do sleep 0.02; done; head -c {size} | wc -c; exec sleep 600"
        session = await registry.open_session(SessionSpec(command=f"stty raw -echo; echo ready; {program}"))
        await session.wait(WaitSpec(text="ready", generation=0, max_wait_ms=60_000))
        viewers = viewers_of(session)
        viewer, _ = look(viewers, 24, 80)
        viewers.keys.press(viewer, b"x" * size)
        viewers.leave(viewer)
        viewers.detach(viewer)
        gate.touch()
        await session.wait(WaitSpec(text=str(size), generation=0, max_wait_ms=60_000))
        assert len(viewers) == 0

    run_with_registry(places, work)


def test_the_mouse_beside_the_program_is_not_told_to_it(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="narrow", rows=24, cols=80)
        viewers = viewers_of(session, "fixed")
        viewer, _ = look(viewers, 24, 100)
        typed: list[bytes] = []

        def put(data: bytes, *_: object) -> bool:
            typed.append(data)
            return True

        monkeypatch.setattr(viewers.keys.typing, "put", put)
        viewers.keys.press(viewer, b"\x1b[<0;90;3M")
        viewers.keys.press(viewer, b"\x1b[<0;80;3M")
        assert typed == [b"\x1b[<0;80;3M"]

    run_with_registry(places, work)


def test_whoever_only_looks_can_neither_type_nor_capture_nor_take_over(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="looked")
        viewers = viewers_of(session)
        viewer, seen = look(viewers, 24, 80, read_only=True)
        generation = session.generation
        viewers.keys.press(viewer, b"echo no\r\x1c\x14")
        assert (viewers.stage.input.mode, session.input.taken_by, session.input.last) == ("passthrough", None, None)
        await session.wait(WaitSpec(quiet_ms=100))
        assert session.generation == generation
        viewers.keys.press(viewer, b"\x1c")
        viewers.keys.press(viewer, b"\x1c")
        assert seen.dismissed == "detached"

    run_with_registry(places, work)


def test_frames_that_cost_much_come_a_quarter_of_a_second_apart_at_most(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="slow")
        viewers = viewers_of(session)
        look(viewers, 24, 80)
        viewers.frames.make()
        viewers.frames._cost_s = 3.0
        viewers.frames.schedule()
        assert viewers.frames._due - viewers.frames._last_frame == pytest.approx(PUT_OFF_S)

    run_with_registry(places, work)


def test_a_viewer_that_stops_reading_costs_nothing_and_catches_up_at_once(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="slow")
        viewers = viewers_of(session)
        _, stuck = look(viewers, 24, 80)
        _, free = look(viewers, 24, 80)
        stuck.stuck = True
        before = stuck.sent_bytes
        await session.input.send(b"seq -f 'line %g of the flood' 1 60000\r", Actor("agent", "a"))
        await until(lambda: "line 60000 of the flood" in free.lines, "the flood's end")
        assert stuck.sent_bytes == before
        stuck.stuck = False
        await until(lambda: stuck.lines == free.lines, f"{stuck.lines} instead of {free.lines}")
        assert stuck.sent_bytes - before < 64 * 1024, "one picture, not all that was missed"

    run_with_registry(places, work)


def test_everything_that_scrolls_off_reaches_the_scrollback_though_frames_are_short(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="read x; seq -f '\x1b[3%gm' 1 1; seq 1 900; cat"))
        viewers = viewers_of(session)
        _, seen = look(viewers, 24, 80)
        await session.input.send(b"\r", Actor("agent", "a"))

        def numbers() -> list[str]:
            lines = [str(line) for line in seen.terminal.scrollback(limit=5000).lines]
            return [line for line in lines if line.isdigit()]

        await until(lambda: numbers() == [str(n) for n in range(1, 901)], "every line, in order")

    run_with_registry(places, work)


def test_a_dead_servers_panels_give_their_rows_back(places: Places) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of())
        session = await open_quiet(first, name="shrunk", rows=24, cols=80)
        stage = Stage(session)
        body = {"position": "bottom", "height": 3, "spans": [{"text": "panel"}]}
        stage.panels.create(PanelCreate.model_validate(body))
        await session.settle()
        assert session.rows == 21
        await first.aclose()  # nobody took the panel down, as after a kill
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session("shrunk")
            assert (again.rows, again.cols, again.terminal.rows) == (24, 80, 24)
            await again.input.send(b"stty size\r", Actor("agent", "a"))
            await again.wait(WaitSpec(text="24 80"))
        finally:
            await second.stop()

    run(work())


def test_everybody_sees_that_a_run_waits_for_the_line(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="waits")
        viewers = viewers_of(session)
        _, person = look(viewers, 24, 90, status=True)
        _, page = look(viewers, 24, 90)
        session.input.announce_wait(Actor("agent", "claude"), "ls -l\x1b[31m\necho more")
        for seen in (person, page):
            await until(lambda seen=seen: any("claude wants to run `ls -l" in line for line in seen.lines), "not shown")  # type: ignore[misc]
            assert {"type": "run_waits", "by": "claude", "command": "ls -l\x1b[31m\necho more"} in seen.told
        session.input.announce_wait(None, "")
        for seen in (person, page):
            await until(lambda seen=seen: not any("claude" in line for line in seen.lines), "still shown")  # type: ignore[misc]

    run_with_registry(places, work)


def test_somebody_who_comes_takes_no_change_away_from_others(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="shared")
        viewers = viewers_of(session, "fixed")
        _, first = look(viewers, 24, 80)
        session.terminal.feed(b"printed between two frames\r\n")
        _, second = look(viewers, 24, 80)
        viewers.frames.make()
        assert first.lines == second.lines and "printed between two frames" in first.lines[0]

    run_with_registry(places, work)


def kept(terminal: Terminal) -> list[str]:
    return [str(line) for line in terminal.scrollback(limit=20_000).lines]


def test_a_viewer_is_given_more_earlier_lines_when_it_asks_and_is_told_of_a_gap(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="back")
        viewers = viewers_of(session, "fixed")
        session.terminal.feed(b"".join(b"%d\r\n" % number for number in range(500)))
        emulator = Emulator(24, 80)
        viewer = viewers.attach(emulator, 24, 80, scrollback_lines=100)
        (told,) = [one for one in emulator.told if one["type"] == "scrollback"]
        assert (told["asked"], told["lines"], told["more"]) == (100, 100, True)
        assert (told["first"], told["line"]) == (0, session.terminal.screen_line)
        viewers.frames.renew(viewer, 1000)
        viewers.frames.make()
        above = session.terminal.screen_line - session.terminal.first_line
        told = emulator.told[-1]
        assert (told["asked"], told["lines"], told["more"]) == (1000, above, False)
        assert kept(emulator.terminal) == kept(session.terminal)
        session.terminal.feed(b"".join(b"%d\r\n" % number for number in range(5000)))
        viewers.frames.make()
        told = emulator.told[-1]
        assert told["type"] == "gap"
        since, line = int(str(told["since"])), int(str(told["line"]))
        assert kept(emulator.terminal)[since - line - 24] == kept(session.terminal)[since]
        viewers.frames.renew(viewer, 10_000)
        viewers.frames.make()
        assert kept(emulator.terminal) == kept(session.terminal), "the gap is closed"
        session.terminal.feed(b"".join(b"%d\r\n" % number for number in range(3000)))
        viewers.frames.renew(viewer, 50, (session.terminal.epoch, 4))
        viewers.frames.make()
        assert kept(emulator.terminal) == kept(session.terminal)[4:], "down to the line that somebody reads"

    run_with_registry(places, work)


def test_a_viewer_is_told_how_many_lines_are_still_to_come_above_the_screen(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsh.visual.viewer.frame._FRAME_S", 0.0)  # each frame adds as few lines as it may

    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="behind")
        viewers = viewers_of(session, "fixed")
        emulator = Emulator(24, 80)
        viewers.attach(emulator, 24, 80, scrollback_lines=100)
        session.terminal.feed(b"".join(b"%d\r\n" % number for number in range(200)))
        awaited: list[int] = []
        while not awaited or awaited[-1]:
            viewers.frames.make()
            told = emulator.told[-1]
            assert told["type"] == "behind"
            awaited.append(int(str(told["lines"])))
            assert len(kept(emulator.terminal)) + awaited[-1] == len(kept(session.terminal))
        assert len(awaited) > 2
        assert kept(emulator.terminal) == kept(session.terminal)
        session.terminal.feed(b"one more\r\n")
        viewers.frames.make()
        assert emulator.told[-1] is told, "nothing is told of a screen that is not ahead"

    run_with_registry(places, work)


def test_a_viewer_is_told_at_once_that_the_screen_had_to_be_begun_anew(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="anew")
        viewers = viewers_of(session)
        _, emulator = look(viewers, 24, 80)
        viewers.frames.make()
        assert all(one["type"] != "notice" for one in emulator.told)
        session.terminal.mended = 1
        for _ in range(2):
            viewers.frames.make()
        (told,) = [one for one in emulator.told if one["type"] == "notice"]
        assert "begin its screen anew" in str(told["text"])

    run_with_registry(places, work)


def test_what_was_typed_is_counted_as_it_is_written_and_known_when_the_viewer_comes_again(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="count", command="sh -c 'printf \"$ \"; exec cat'")
        viewers = viewers_of(session)

        def come(typed: int = 0) -> tuple[Viewer, Emulator]:
            emulator = Emulator(24, 80)
            made = viewers.attach(emulator, 24, 80, prefix="Ctrl+B", input_id=77, typed=typed)
            return made, emulator

        first, emulator = come()
        assert emulator.told[0] == {"type": "typed", "received": 0, "unsure": False}
        viewers.keys.press(first, b"hello")
        await until(lambda: {"type": "typed", "written": 5} in emulator.told, "the receipt")
        second, again = come(5)
        assert again.told[0] == {"type": "typed", "received": 5, "unsure": False}
        assert emulator.dismissed, "the connection before is over"
        viewers.keys.press(first, b"late")
        viewers.keys.press(second, b" there")
        await until(lambda: {"type": "typed", "written": 11} in again.told, "the receipt")
        # As the next server finds it.
        assert session.child is not None
        found = Receipts().open(session.child.ring, 77, 0)
        assert (found.received, found.written, found.unsure) == (11, 11, False)
        session.input.receipts.note(session.child.ring, found, under_way=True)
        assert Receipts().open(session.child.ring, 77, 0).unsure
        assert Receipts().open(session.child.ring, 78, 3).received == 3, "nothing is known of another"
        assert Receipts().open(session.child.ring, 77, 20).received == 20, (
            "what came without a receipt, as the viewer knows"
        )
        await until(lambda: "hello there" in again.lines[0], "all of it, once")

    run_with_registry(places, work)
