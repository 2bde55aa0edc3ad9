"""The keeper outlives servers: nothing that was printed is lost, whoever dies and whenever."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.process.keeper import OPTIONS, journal_in, opened, read_journal, said, shell
from tests.support.waiting import stays, until
from wsh.process import ChildHandle, KeeperClient, KeeperOptions, launch
from wsh.process.keeper import frame, layout
from wsh.process.keeper.door import Door
from wsh.process.keeper.loop import Loop
from wsh.process.keeper.tree.mark import is_alive
from wsh.process.launch import _MAIN
from wsh.wire.error import InvalidRequest, KeeperGone, KeeperIncompatible
from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import Places

# programs that print for as long as servers are being killed
_BEGIN = "import random, sys, time, tty\nwrite, lines, pause = sys.stdout.buffer.write, %d, %f\n"
_PACE = "    if n %% 100 == 0: sys.stdout.flush(); time.sleep(pause)\n"
_NUMBERS = _BEGIN + "for n in range(lines):\n    write(b'%%08d ' %% n + b'x' * (n %% 61) + b'\\n')\n" + _PACE
_ESCAPES = (
    _BEGIN
    + "for n in range(lines):\n    write(b'\\x1b[38;5;%%dm%%08d\\x1b[0m\\x1b]0;%%d' %% (n %% 256, n, n))\n"
    + _PACE
)
_RANDOM = _BEGIN + "tty.setraw(1)\nr = random.Random(7)\nfor n in range(lines):\n    write(r.randbytes(25))\n" + _PACE


def expected(name: str, lines: int) -> bytes:
    if name == "random":
        source = random.Random(7)
        return b"".join(source.randbytes(25) for _ in range(lines))
    if name == "escapes":
        return b"".join(b"\x1b[38;5;%dm%08d\x1b[0m\x1b]0;%d" % (n % 256, n, n) for n in range(lines))
    return b"".join(b"%08d " % n + b"x" * (n % 61) + b"\r\n" for n in range(lines))


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_no_byte_is_lost_or_doubled_when_the_server_is_killed_at_random(
    places: Places, tmp_path: Path, torture: bool
) -> None:
    rounds = 500 if torture else 6
    lines = 400_000 if torture else 40_000
    pace = lines, rounds * 25 / lines
    programs = {f"numbers-{n}": _NUMBERS % pace for n in range(6)}
    programs |= {"escapes": _ESCAPES % pace, "random": _RANDOM % pace}
    command = {name: [sys.executable, "-c", program] for name, program in programs.items()}

    def serve(command: dict[str, list[str]]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.process.consumer", json.dumps(command), str(tmp_path)],
            stdout=subprocess.PIPE,
        )

    def kill(server: subprocess.Popen[bytes], delay_s: float) -> None:
        assert server.stdout is not None
        assert server.stdout.readline() == b"serving 8\n"
        time.sleep(delay_s)
        server.kill()
        server.wait()
        server.stdout.close()

    kill(serve(command), 0.1)
    for _ in range(rounds - 1):
        kill(serve({}), random.random() * 0.05)
    async with opened(places) as keeper:
        children = {child.meta["name"]: child for child in keeper.children.values()}
        assert set(children) == set(command)

        def dirty(some: list[ChildHandle]) -> None:
            for child in some:
                child.ring.consume(child.ring.readable())

        keeper.on_dirty = dirty
        dirty(list(children.values()))
        for name, child in children.items():
            whole = expected(name, lines)
            status = await child.exited
            assert (status.code, status.offset) == (0, len(whole)), name
            await until(lambda child=child, whole=whole: child.ring.journaled == len(whole))  # type: ignore[misc]
            segments = read_journal(tmp_path / name)
            assert b"".join(segments.values()) == whole, name
            starts = list(segments)
            assert [s + len(segments[s]) for s in starts[:-1]] == starts[1:], name
            assert child.ring.journal_dropped == 0
            oldest = max(child.ring.oldest, child.ring.tail - 1000)
            assert child.ring.copy(oldest, child.ring.head) == whole[oldest:]


async def test_a_successor_finds_children_with_meta_output_and_exit(places: Places, tmp_path: Path) -> None:
    async with opened(places) as first:
        child = await first.spawn(shell("echo one; read x; echo two; exit 5", meta={"name": "a"}))
        done = await first.spawn(shell("echo done; exit 6", journal=journal_in(tmp_path / "j")))
        await done.exited
        await first.update_meta(child, {"name": "b", "text": "ü" * 100})
        await said(child, b"one")
        child.ring.consume(3)
        child.ring.set_replied(2)
        await first.aclose()
        with pytest.raises(KeeperGone):
            await first.inspect(child)

        second = await KeeperClient.open(places, OPTIONS)
        assert second.pid == first.pid
        again = second.children[child.id]
        assert again.meta == {"name": "b", "text": "ü" * 100}
        assert (again.ring.tail, again.ring.replied) == (3, 2)
        assert again.ring.peek() == b"\r\n"
        assert again.ring.seek(0) and again.ring.peek().startswith(b"one")
        await again.write_all(b"\n")
        assert (await again.exited).code == 5
        ended = second.children[done.id]
        assert (await ended.exited).code == 6
        assert ended.ring.peek() == b"done\r\n" and ended.ring.eof
        await second.forget(ended)
        assert done.id not in second.children
        await second.aclose()


async def test_a_journaled_child_runs_on_without_a_server_and_one_without_a_journal_waits(
    places: Places, tmp_path: Path
) -> None:
    async with opened(places) as first:
        script = "head -c 400000 /dev/zero | tr '\\0' x; touch {}"
        small = {"ring_bytes": 64 * 1024}
        free = await first.spawn(shell(script.format(tmp_path / "free"), journal=journal_in(tmp_path / "j"), **small))
        bound = await first.spawn(shell(script.format(tmp_path / "bound"), **small))
        await first.aclose()
        await until((tmp_path / "free").exists)
        assert not (tmp_path / "bound").exists()

        second = await KeeperClient.open(places, OPTIONS)
        free, bound = second.children[free.id], second.children[bound.id]
        assert free.ring.tail == 0 and free.ring.oldest > 0
        assert not free.ring.seek(0), "those bytes are only in the journal"
        while free.running:  # with a server again, what it has not consumed holds the child back
            free.ring.seek(free.ring.head)
            await asyncio.sleep(0.001)
        assert (await free.exited).code == 0 and free.ring.head == 400_000
        await until(lambda: free.ring.journaled == 400_000)
        assert sum(len(data) for data in read_journal(tmp_path / "j").values()) == 400_000
        await until(lambda: bound.ring.paused, "the one without a journal to be held back")
        assert bound.ring.tail == 0
        got = 0
        while bound.running:
            data = bound.ring.peek()
            got += len(data)
            bound.ring.consume(len(data))
            await asyncio.sleep(0.001)
        assert got + bound.ring.readable() == 400_000
        await second.aclose()


async def test_the_newest_server_displaces_the_one_before(places: Places) -> None:
    async with opened(places) as first:
        child = await first.spawn(shell("read x; echo got $x"))
        lost: list[KeeperGone] = []
        first.on_lost = lost.append
        second = await KeeperClient.open(places, OPTIONS)
        await until(lambda: lost)
        assert "another server" in lost[0].message
        with pytest.raises(KeeperGone, match="another server"):
            await first.ping()
        with pytest.raises(KeeperGone):
            await child.exited
        child.ring.consume(5)  # what the displaced one does to its counters is nobody's business
        assert second.children[child.id].ring.tail == 0
        await second.children[child.id].write_all(b"1\n")
        assert (await second.children[child.id].exited).code == 0
        await second.aclose()


async def test_servers_that_race_share_one_keeper(places: Places) -> None:
    keepers = await asyncio.gather(*(KeeperClient.open(places, OPTIONS) for _ in range(6)), return_exceptions=True)
    alive = [keeper for keeper in keepers if isinstance(keeper, KeeperClient)]
    assert all(isinstance(keeper, KeeperClient | KeeperGone) for keeper in keepers)
    assert len({keeper.pid for keeper in alive}) == 1
    for keeper in alive:
        await keeper.aclose()
    async with opened(places) as last:
        assert last.pid == alive[0].pid


async def test_a_dead_keeper_is_loud_and_the_next_one_starts_clean(places: Places) -> None:
    keeper = await KeeperClient.open(places, OPTIONS)
    child = await keeper.spawn(shell("sleep 300"))
    lost: list[KeeperGone] = []
    keeper.on_lost = lost.append
    os.kill(keeper.pid, 9)
    with pytest.raises(KeeperGone):
        await child.exited
    assert len(lost) == 1 and lost[0].code == "keeper_gone"
    with pytest.raises(KeeperGone):
        await keeper.spawn(shell("true"))
    await keeper.aclose()
    await until(lambda: not is_alive(child.pid))  # its terminal hung up
    async with opened(places) as fresh:
        assert fresh.children == {}


async def test_a_keeper_with_nothing_to_keep_ends_by_itself(places: Places) -> None:
    keeper = await KeeperClient.open(places, KeeperOptions(linger_s=0.1))
    child = await keeper.spawn(shell("exit 1"))
    await child.exited
    await keeper.aclose()
    await stays(lambda: is_alive(keeper.pid), "a keeper that remembers an exit", 0.3)
    keeper = await KeeperClient.open(places, OPTIONS)
    await keeper.forget(keeper.children[child.id])
    await keeper.aclose()
    await until(lambda: not is_alive(keeper.pid))
    assert not places.keeper_socket.exists()
    with pytest.raises(KeeperGone, match="nobody listens"):
        await KeeperClient.open(places, KeeperOptions(start=False))


async def test_stopping_ends_every_tree_even_of_forgotten_children(places: Places, tmp_path: Path) -> None:
    keeper = await KeeperClient.open(places, OPTIONS)
    note = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {note}; exec sleep 300' & until [ -s {note} ]; do sleep 0.01; done"
    child = await keeper.spawn(shell(script))
    await child.exited
    await keeper.forget(child)
    pid = int(note.read_text())
    assert is_alive(pid), "a child that simply exits kills nothing else"
    other = await keeper.spawn(shell("sleep 300"))
    assert await keeper.stop() == []
    assert not is_alive(pid) and not is_alive(other.pid)
    await until(lambda: not is_alive(keeper.pid))


async def open_busy(places: Places) -> socket.socket:
    """A server that has asked more than a socket holds the answers of, and reads none."""
    sock = await asyncio.to_thread(launch.connect, places, OPTIONS)
    for number in range(2000):
        sock.sendall(frame.encode({"do": "ping", "id": number}))
    return sock


def read_to_the_end(sock: socket.socket) -> list[JsonObject]:
    decoder, found = frame.Decoder(), []
    while data := sock.recv(65_536):
        decoder.push(data, [])
        while (message := decoder.pop()) is not None:
            found.append(message)
    return found


async def test_a_keeper_that_ends_is_heard_out_by_a_server_that_was_busy(places: Places) -> None:
    with await open_busy(places) as sock:
        sock.sendall(frame.encode({"do": "stop", "grace_ms": 0, "id": 2000}))
        await until(lambda: not places.keeper_socket.exists(), "the keeper to have ended all")
        await asyncio.sleep(0.1)
        heard = await asyncio.to_thread(read_to_the_end, sock)
    assert [message["re"] for message in heard if "re" in message] == list(range(2001))


async def test_a_busy_server_hears_that_another_has_taken_its_place(places: Places) -> None:
    with await open_busy(places) as sock:
        async with opened(places):
            sock.sendall(frame.encode({"do": "stop", "grace_ms": 0, "id": 2000}))
            heard = await asyncio.to_thread(read_to_the_end, sock)
    assert heard[-1] == {"event": "displaced"}
    assert [message["re"] for message in heard if "re" in message] == list(range(2000))


async def test_a_keeper_of_another_version_is_refused_in_clear_words(places: Places, tmp_path: Path) -> None:
    places.runtime.mkdir(mode=0o700, exist_ok=True)

    async def old_keeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame.encode({"keeper": 1, "protocols": [0], "nonce": "00"}))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(old_keeper, places.keeper_socket)
    with pytest.raises(KeeperIncompatible, match=r"speaks protocol \[0\], this server speaks 1"):
        await KeeperClient.open(places, OPTIONS)
    server.close()
    places.keeper_socket.unlink()


async def test_a_stranger_without_the_secret_or_of_another_version_gets_nothing(places: Places) -> None:
    async with opened(places):
        assert places.keeper_socket.stat().st_mode & 0o777 == 0o600
        assert places.keeper_secret.stat().st_mode & 0o777 == 0o600
        for hello, refused in (
            ({"protocol": layout.PROTOCOL, "proof": "00" * 32}, "proof"),
            ({"protocol": 99, "proof": ""}, "protocol"),
        ):
            reader, writer = await asyncio.open_unix_connection(places.keeper_socket)
            decoder = frame.Decoder()
            writer.write(frame.encode(hello))
            decoder.push(await reader.read(), [])
            greeting, refusal = decoder.pop(), decoder.pop()
            assert greeting is not None and greeting["protocols"] == [layout.PROTOCOL]
            assert refusal is not None and refusal["refused"] == refused
            writer.close()
            await writer.wait_closed()


def test_the_keeper_imports_the_standard_library_alone() -> None:
    listing = (
        "import sys; main = {'__name__': 'x', '__file__': sys.argv[1]}\n"
        "exec(open(sys.argv[1]).read(), main); main['_make_importable']()\n"
        "import wsh.process.keeper.daemon\n"
        "print('\\n'.join(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", listing, str(_MAIN)], capture_output=True, text=True, check=True
    )
    names = done.stdout.split()
    ours = {name for name in names if name.split(".")[0] == "wsh"}
    assert {"wsh.process.keeper.core", "wsh.process.keeper.daemon"} <= ours
    assert {name for name in ours if not name.startswith("wsh.process.keeper.")} == {
        "wsh",
        "wsh.process",
        "wsh.process.keeper",
    }
    assert {name.split(".")[0] for name in names} - {"wsh", "__main__"} <= set(sys.stdlib_module_names)
    assert "asyncio" not in names and "typing" not in names


async def test_sigterm_ends_the_keeper_with_everything_in_it(places: Places) -> None:
    keeper = await KeeperClient.open(places, OPTIONS)
    child = await keeper.spawn(shell("setsid sleep 300 & echo $!; wait"))
    await said(child, b"\r\n")
    pid = int(child.ring.peek())
    os.kill(keeper.pid, 15)
    await until(lambda: not is_alive(keeper.pid))
    assert not is_alive(pid) and not is_alive(child.pid)
    assert not places.keeper_socket.exists() and not places.keeper_secret.exists()
    await keeper.aclose()


async def test_a_child_signalled_before_its_exec_does_not_end_the_keeper(places: Places) -> None:
    async with opened(places) as keeper:
        for _ in range(30):
            spawning = asyncio.ensure_future(keeper.spawn(shell("sleep 300")))
            await asyncio.sleep(random.random() * 0.003)
            spawning.cancel()
            try:
                child = await spawning
            except asyncio.CancelledError:
                continue
            await keeper.kill_tree(child)
            await child.exited
            await keeper.forget(child)
        assert (await keeper.ping())["children"] == 0


async def test_a_message_that_makes_no_sense_costs_the_connection_and_not_the_keeper(places: Places) -> None:
    async with opened(places) as keeper:
        child = await keeper.spawn(shell("read x; exit 3"))
        for nonsense in ({"do": "spawn"}, {"do": "kill", "child": child.id}, {"do": "spawn", "terminal": 1}):
            broken = await KeeperClient.open(places, OPTIONS)
            with pytest.raises(KeeperGone):
                await broken._link.ask(nonsense)
            await broken.aclose()
        last = await KeeperClient.open(places, OPTIONS)
        with pytest.raises(InvalidRequest, match="unknown request"):
            await last._ask({"do": "dance"})
        with pytest.raises(InvalidRequest, match="no such child"):
            await last._ask({"do": "inspect", "child": 999})
        await last.children[child.id].write_all(b"\n")
        assert (await last.children[child.id].exited).code == 3
        await last.aclose()


async def test_a_socket_that_was_cleaned_away_comes_back(places: Places) -> None:
    places.runtime.mkdir(mode=0o700)
    loop = Loop()
    door = Door(loop, str(places.keeper_socket), str(places.keeper_secret))
    places.keeper_socket.unlink()
    places.keeper_secret.unlink()
    door.restore()
    assert places.keeper_socket.is_socket() and places.keeper_secret.exists()
    places.keeper_secret.unlink()
    door.restore()
    assert places.keeper_socket.is_socket() and places.keeper_secret.exists()
    door.close()
    assert not places.keeper_socket.exists()
    places.keeper_socket.write_text("somebody else's")
    door.restore()
    assert places.keeper_socket.read_text() == "somebody else's"


async def test_whoever_meets_a_keeper_that_is_ending_gets_the_next_one(places: Places) -> None:
    """The socket of one that ends may still take a connection; its secret is gone by then."""

    for delay_ms in range(0, 24, 2):
        first = await KeeperClient.open(places, KeeperOptions(linger_s=0.01))
        await first.aclose()
        await asyncio.sleep(delay_ms / 1000)
        await (await KeeperClient.open(places, KeeperOptions(linger_s=0.01))).aclose()
    last = await KeeperClient.open(places, OPTIONS)
    await last.stop(grace_ms=0)


@pytest.mark.parametrize(
    "gives_up", ["before its greeting", "after its greeting", "after the proof", "in the midst of its children"]
)
async def test_a_keeper_that_ends_at_any_step_of_our_coming_in_is_followed_by_the_next(
    places: Places, gives_up: str
) -> None:
    places.runtime.mkdir(mode=0o700, exist_ok=True)
    places.keeper_secret.write_bytes(b"00" * 32)
    met: list[str] = []

    async def ending(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(gives_up)
        if gives_up != "before its greeting":
            writer.write(frame.encode({"keeper": 1, "protocols": [layout.PROTOCOL], "nonce": "00" * 16}))
            await writer.drain()
        if gives_up in ("after the proof", "in the midst of its children"):
            await reader.read(1)  # the rest stays unread, so that the other side sees a reset
        if gives_up == "in the midst of its children":
            writer.write(frame.encode({"event": "children", "list": []}))
            await writer.drain()
        server.close()
        places.keeper_socket.unlink()
        places.keeper_secret.unlink()
        writer.transport.abort()

    server = await asyncio.start_unix_server(ending, places.keeper_socket)
    lost: list[KeeperGone] = []
    async with opened(places) as keeper:
        keeper.on_lost = lost.append
        assert met == [gives_up] and (await keeper.ping())["children"] == 0
    assert lost == []


async def test_a_keeper_that_is_killed_while_we_come_in_is_followed_by_the_next(places: Places) -> None:
    """Unlike one that ends, it leaves its socket and its secret behind."""

    for _ in range(8):
        first = await KeeperClient.open(places, OPTIONS)
        await first.aclose()
        coming = asyncio.ensure_future(KeeperClient.open(places, OPTIONS))
        await asyncio.sleep(random.random() * 0.01)
        os.kill(first.pid, 9)
        try:
            second = await coming
        except KeeperGone:
            raise AssertionError("nobody followed the keeper that was killed") from None
        if second.pid == first.pid:  # it had come in before
            await second.aclose()
            continue
        await second.stop(grace_ms=0)
    async with opened(places) as last:
        assert last.children == {}
