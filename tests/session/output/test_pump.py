"""Who is served when many print at once."""

from __future__ import annotations

import asyncio
import time

from tests.support.waiting import until
from wsh.session.output.pump import LATER, LEAST_SLICE_BYTES, YIELDED_ROUNDS, OutputPump
from wsh.terminal import Terminal


class Printer:
    """Output that waits for a terminal."""

    def __init__(self, piece: bytes, size: int) -> None:
        self.terminal = Terminal()
        self.data = piece * (size // max(1, len(piece)))
        self.at = 0
        self.longest_s = 0.0
        self.turns = 0

    def backlog(self) -> int:
        return len(self.data) - self.at

    def pump(self, limit: int) -> int:
        started = time.thread_time()
        piece = self.data[self.at : self.at + limit]
        self.terminal.feed(piece)
        self.at += len(piece)
        self.turns += 1
        if self.turns > 1:  # what its bytes cost is not known before the first
            self.longest_s = max(self.longest_s, time.thread_time() - started)
        return len(piece)


async def _until_done(printer: Printer) -> None:
    loop = asyncio.get_running_loop()
    pump = OutputPump(loop)
    pump.wake([printer])
    deadline = loop.time() + 60
    while printer.backlog():
        assert loop.time() < deadline
        await asyncio.sleep(0)
    pump.close()


async def test_bytes_that_cost_much_are_taken_few_at_a_time() -> None:
    costly = Printer(b"x\x1b[65535b", 24_000)
    await _until_done(costly)
    # the whole of it takes some 0.4 s of processor; no turn but the first may take long
    assert costly.turns > 10
    assert costly.longest_s < 0.2
    costly.terminal.close()


async def test_bytes_that_cost_little_are_taken_many_at_a_time() -> None:
    cheap = Printer(b"plain text\r\n", 8_000_000)
    await _until_done(cheap)
    assert cheap.turns < 400
    cheap.terminal.close()


async def test_a_flood_that_goes_on_lets_the_others_have_their_turns() -> None:
    class Endless(Printer):
        def backlog(self) -> int:
            return 100_000

        def pump(self, limit: int) -> int:
            self.turns += 1
            return limit

    endless, other = Endless(b"", 0), Printer(b"plain text\r\n", 200_000)
    pump = OutputPump(asyncio.get_running_loop(), turn_s=0)  # one slice a turn
    pump.wake([endless, other])
    await until(lambda: endless.turns >= 20, "twenty turns")
    pump.close()
    assert abs(endless.turns - other.turns) <= 1
    for printer in (endless, other):
        printer.terminal.close()


async def test_moments_without_the_processor_are_no_cost_of_the_bytes() -> None:
    class Interrupted(Printer):
        def pump(self, limit: int) -> int:
            time.sleep(0.01)
            return super().pump(limit)

    cheap = Interrupted(b"plain text\r\n", 4_000_000)
    await _until_done(cheap)
    # Counted by the clock, every slice would be the smallest there is.
    assert cheap.turns < 4_000_000 / LEAST_SLICE_BYTES / 8
    cheap.terminal.close()


async def test_what_is_shown_already_is_parsed_a_moment_later() -> None:
    class Echo(Printer):
        def pump(self, limit: int) -> int:
            self.turns += 1
            return LATER if self.turns == 1 else super().pump(limit)

    echo = Echo(b"a", 1)
    pump = OutputPump(asyncio.get_running_loop())
    pump.wake([echo])
    assert (echo.turns, echo.at) == (1, 0), "it is not tried again at once"
    await until(lambda: not echo.backlog(), "the rest")
    pump.close()


class Flood(Printer):
    """Never ends, and costs nothing."""

    def __init__(self) -> None:
        super().__init__(b"", 0)

    def backlog(self) -> int:
        return 100_000

    def pump(self, limit: int) -> int:
        self.turns += 1
        time.sleep(0.0005)
        return limit


class Ticker(Flood):
    """One byte, again and again."""

    def backlog(self) -> int:
        return 1

    def pump(self, limit: int) -> int:
        self.turns += 1
        return 1


async def test_what_a_key_woke_answers_before_the_next_slices_of_floods() -> None:
    pump = OutputPump(asyncio.get_running_loop())
    heard = asyncio.Event()

    class Key(Printer):
        def pump(self, limit: int) -> int:
            heard.set()
            return super().pump(limit)

    floods, key = [Flood() for _ in range(8)], Key(b"x", 1)
    pump.wake(floods)
    await asyncio.sleep(0)
    pump.wake([key])
    await heard.wait()
    before = [flood.turns for flood in floods]
    for _ in range(YIELDED_ROUNDS // 2):  # rounds that tasks which wait for each other take
        await asyncio.sleep(0)
    assert [flood.turns for flood in floods] == before
    await until(lambda: [flood.turns for flood in floods] != before, "the floods to go on")
    pump.close()


async def test_quick_output_without_end_does_not_starve_a_flood() -> None:
    pump = OutputPump(asyncio.get_running_loop())
    flood, ticker = Flood(), Ticker()
    pump.wake([flood, ticker])
    await until(lambda: flood.turns > 20 and ticker.turns > 20, "both to be served")
    pump.close()
