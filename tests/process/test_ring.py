"""Rings: a full one pauses its child and nobody else, and the bells lose no news."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

from tests.support.process.keeper import journal_in, said, shell
from tests.support.waiting import until
from wsh.process import ChildHandle, KeeperClient, SpawnSpec

KIB = 1024


async def test_a_full_ring_pauses_its_child_and_no_other(keeper: KeeperClient, tmp_path: Path) -> None:
    flood = await keeper.spawn(shell("yes", ring_bytes=64 * KIB, journal=journal_in(tmp_path / "j")))
    await until(lambda: flood.ring.paused)
    head = flood.ring.head
    assert 60 * KIB <= head <= 64 * KIB
    other = await keeper.spawn(shell("read x; echo got $x; seq 100"))
    await other.write_all(b"it\n")
    assert (await other.exited).code == 0
    assert b"got it" in other.ring.peek()
    assert flood.ring.head == head and flood.ring.paused and flood.running
    flood.ring.consume(flood.ring.readable())
    await until(lambda: flood.ring.head > head)


async def test_every_byte_passes_whatever_the_portions(keeper: KeeperClient) -> None:
    seen: dict[ChildHandle, list[bytes]] = {}

    def dirty(children: list[ChildHandle]) -> None:
        for child in children:
            data = child.ring.peek(random.choice((1, 17, 4096, 1 << 20)))
            child.ring.consume(len(data))
            seen.setdefault(child, []).append(data)
            if child.ring.readable():
                asyncio.get_running_loop().call_soon(dirty, [child])

    keeper.on_dirty = dirty
    children = [await keeper.spawn(shell("seq 30000", ring_bytes=size * KIB)) for size in (64, 65, 100, 1024)]
    for child in children:
        await child.exited
        await until(lambda child=child: child.ring.eof and not child.ring.readable())  # type: ignore[misc]
        assert b"".join(seen[child]) == b"".join(b"%d\r\n" % n for n in range(1, 30_001))


async def test_no_news_is_missed_by_a_server_that_only_listens_to_the_bell(keeper: KeeperClient) -> None:
    """A thousand round trips, each of which hangs for good if one bell is lost."""
    child = await keeper.spawn(SpawnSpec(["cat"], "/", {"PATH": os.environ["PATH"]}))
    news = asyncio.Event()

    def dirty(children: list[ChildHandle]) -> None:
        child.ring.consume(child.ring.readable())
        news.set()

    keeper.on_dirty = dirty
    echoed = 0
    async with asyncio.timeout(60):
        for number in range(1000):
            line = b"%d\n" % number
            echoed += 2 * (len(line) + 1)
            child.write(line)
            while child.ring.head < echoed:
                news.clear()
                if child.ring.head < echoed:
                    await news.wait()


async def test_an_echo_is_quick_while_others_flood(keeper: KeeperClient) -> None:
    def dirty(children: list[ChildHandle]) -> None:
        for child in children if keeper.on_dirty is dirty else ():
            child.ring.consume(min(child.ring.readable(), 64 * KIB))
            if child.ring.readable():
                asyncio.get_running_loop().call_soon(dirty, [child])

    keeper.on_dirty = dirty
    for _ in range(4):
        await keeper.spawn(shell("yes"))
    child = await keeper.spawn(SpawnSpec(["cat"], "/", {"PATH": os.environ["PATH"]}))
    for _ in range(50):
        head = child.ring.head
        child.write(b"x")
        await until(lambda head=head: child.ring.head > head, "the echo beside the floods")  # type: ignore[misc]
    keeper.on_dirty = lambda children: None  # the rings go with the keeper, and a turn may still be due


async def test_input_that_the_child_does_not_read_waits_and_does_not_block(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("stty raw -echo; echo ready; sleep 0.3; head -c 300000 | wc -c"))
    await said(child, b"ready")
    await asyncio.wait_for(child.write_all(b"y" * 300_000), 60)
    await child.exited
    assert b"300000" in child.ring.peek()


async def test_a_ring_that_was_read_gives_its_memory_back(keeper: KeeperClient, tmp_path: Path) -> None:
    def dirty(children: list[ChildHandle]) -> None:
        for child in children:
            filled.append(blocks())  # while something is in it that nobody has read
            child.ring.consume(child.ring.readable())

    filled: list[int] = []

    def blocks() -> int:
        """Of all rings, as this process's own descriptors show them."""
        folder = "/proc/self/fd"
        names = [f"{folder}/{name}" for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}")]
        return sum(os.stat(name).st_blocks for name in names if "wsh-ring" in os.readlink(name))

    keeper.on_dirty = dirty
    child = await keeper.spawn(
        shell("stty raw; head -c 3000000 /dev/zero; read x; echo end", journal=journal_in(tmp_path / "j"))
    )
    await until(lambda: child.ring.head == 3_000_000)
    assert max(filled) * 512 >= 512 * KIB
    await until(lambda: blocks() * 512 <= 64 * KIB)
    assert child.ring.oldest == child.ring.head == 3_000_000
    assert not child.ring.seek(2_900_000), "those bytes are on disk alone"
    keeper.on_dirty = lambda children: None
    await child.write_all(b"\n")
    await child.exited
    assert child.ring.peek().endswith(b"end\n") and child.ring.oldest == 3_000_000
