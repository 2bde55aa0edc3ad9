"""The echo of a key, shown before it is parsed: each character once."""

from __future__ import annotations

import time

from tests.support.session.running import open_quiet, run_with_registry
from tests.support.waiting import HANG_S, until, wait_until
from tests.visual.test_viewer import look, viewers_of
from wsh.session.registry import SessionRegistry
from wsh.wire.system.place import Places


def test_an_echo_that_comes_before_the_last_one_is_parsed_does_not_show_that_again(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, "printf '$'; exec cat", name="fast")
        viewers = viewers_of(session)
        viewer, emulator = look(viewers, 24, 80)
        viewers.keys.press(viewer, b">")
        await until(lambda: emulator.lines[0] == "$>", "a first echo, of which the next frames learn that it is plain")
        print_ahead = session.output.ahead
        assert print_ahead is not None and session.child is not None
        child = session.child
        shown: list[str] = []

        def hear(offset: int, text: bytes) -> bool:
            done = print_ahead(offset, text)
            shown.append(emulator.lines[0])
            if len(shown) == 1:
                child.write(b"b")  # its echo comes before this one is parsed
                deadline = time.monotonic() + HANG_S
                while child.ring.head < offset + 2:
                    assert time.monotonic() < deadline
            return done

        session.output.ahead = hear
        viewers.keys.press(viewer, b"a")
        await until(lambda: emulator.lines[0] == "$>ab", "both")
        assert shown[0] == "$>a", "it is shown ahead"
        assert all("$>ab".startswith(line) for line in shown), shown

    run_with_registry(places, work)


def test_an_echo_is_shown_before_the_loop_hears_of_it_and_parsed_afterwards(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, "printf '$'; exec cat", name="soon")
        viewers = viewers_of(session)
        viewer, emulator = look(viewers, 24, 80)
        viewers.keys.press(viewer, b">")
        await until(lambda: emulator.lines[0] == "$>", "a first echo, of which the next frames learn that it is plain")
        await until(lambda: session.terminal.screen(False).lines[0] == "$>", "that it is parsed")
        assert session.child is not None
        ring, before = session.child.ring, session.generation
        viewers.keys.press(viewer, b"a")
        wait_until(lambda: ring.head > before, "the echo, with no turn of the loop")
        session.output.show_ahead()
        session.output.show_ahead()
        assert (emulator.lines[0], session.generation) == ("$>a", before), "it is shown once, and not parsed yet"
        await until(lambda: session.terminal.screen(False).lines[0] == "$>a", "that it is parsed")
        assert emulator.lines[0] == "$>a"

    run_with_registry(places, work)
