"""A server and a keeper of hundreds of sessions: descriptors above those that `select` knows, and a keeper that has few left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process.keeper import OPTIONS, opened, shell
from tests.support.waiting import HANG_S, until
from wsh.process import KeeperClient
from wsh.process.keeper import frame
from wsh.process.keeper.door import Connection, Door
from wsh.process.keeper.loop import Loop, complain
from wsh.process.launch import _MAIN
from wsh.wire.error import DescriptorsExhausted
from wsh.wire.json.object import JsonObject
from wsh.wire.system.owner import find_peer_fault, own_limit, why_not_owner
from wsh.wire.system.place import Places, ensure_private

KNOWN_TO_SELECT = 1024


@pytest.fixture
def all_low_ones_taken() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = KNOWN_TO_SELECT + 100
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < KNOWN_TO_SELECT:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("all_low_ones_taken")
def test_a_peer_is_judged_whatever_the_number_of_its_descriptor() -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as ours:
        listener.bind("")
        listener.listen()
        ours.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.fileno() >= KNOWN_TO_SELECT
            assert find_peer_fault(accepted, own_limit()) == why_not_owner(os.getpid(), own_limit())


@pytest.mark.usefixtures("all_low_ones_taken")
def test_a_keeper_lets_the_next_server_in_whatever_the_number_of_its_descriptor(places: Places) -> None:
    places.runtime.mkdir(mode=0o700)
    loop = Loop()
    door = Door(loop, str(places.keeper_socket), str(places.keeper_secret))
    door.is_outside = lambda _pid: True
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(places.keeper_socket))
            door._accept(0)
            server.setblocking(False)
            assert b"nonce" in server.recv(4096), "it is greeted, and may prove that it is a server"
    finally:
        for stranger in list(door._strangers):
            stranger.close()
        door.close()


def start_keeper(places: Places, descriptors: int) -> None:
    """A keeper that may have so many descriptors listens where a server will look for it."""
    ensure_private(places.runtime)
    ensure_private(places.state)
    words = [str(places.keeper_socket), str(places.keeper_secret), str(places.state / "default.keeper.log"), "1"]
    limited = ["prlimit", f"--nofile={descriptors}:{descriptors}", sys.executable, "-I", "-S", str(_MAIN), *words]
    subprocess.run(limited, check=True, env={"PATH": os.defpath}, cwd="/")


async def _fill(keeper: KeeperClient) -> None:
    for _ in range(100):
        await keeper.spawn(shell("exec cat"))


async def test_a_keeper_with_few_descriptors_left_gives_all_its_sessions_to_the_next_server(places: Places) -> None:
    start_keeper(places, descriptors=100)
    async with opened(places) as first:
        with pytest.raises(DescriptorsExhausted):
            await _fill(first)
        ids = set(first.children)
        await first.aclose()
        second = await KeeperClient.open(places, OPTIONS)
        assert second.pid == first.pid and len(ids) > 20 and set(second.children) == ids
        for child in second.children.values():
            await child.write_all(b"served\n")
        await until(lambda: all(b"served" in child.ring.peek() for child in second.children.values()))
        await second.aclose()


def count_copies(fd: int) -> int:
    """How many descriptors of this process are of the same file: other tests' may go at any time."""
    wanted = os.fstat(fd)
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is gone
            found += os.path.samestat(os.fstat(int(name)), wanted)
    return found


def talk() -> tuple[Loop, Connection, socket.socket]:
    """The keeper's end of a connection whose other end reads only when told to."""
    loop = Loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return loop, Connection(loop, ours, lambda connection, message, fds: None, lambda connection: None), theirs


def read_all(loop: Loop, connection: Connection, sock: socket.socket) -> list[JsonObject]:
    decoder = frame.Decoder()
    found: list[JsonObject] = []
    while True:
        try:
            data, ancillary, _, _ = sock.recvmsg(65_536, frame.ANCILLARY_BYTES)
        except BlockingIOError:
            if not connection.has_unsent:
                return found
            for fd, events in loop.epoll.poll(0):
                loop._handlers[fd](events)
            continue
        decoder.push(data, ancillary)
        for fd in decoder.take_all_fds():
            os.close(fd)
        while (message := decoder.pop()) is not None:
            found.append(message)
        if not data:
            return found


@pytest.mark.parametrize("ends", [False, True])
def test_what_is_said_meanwhile_comes_after_the_introduction_which_takes_few_descriptors(ends: bool) -> None:
    loop, connection, server = talk()
    count, made = 4000, 0
    with server, open(os.memfd_create("told")) as told:

        def introduce() -> Iterator[tuple[JsonObject, list[int]]]:
            nonlocal made
            for number in range(count):
                made += 1
                yield {"child": number, "fill": "x" * 200}, [told.fileno()] * 8

        connection.stream(introduce())
        connection.send({"event": "exit"})
        if ends:
            connection.finish()
        assert connection.open and connection.has_unsent and 0 < made < count
        assert count_copies(told.fileno()) <= 1 + 8
        found = read_all(loop, connection, server)
        assert [message.get("child") for message in found] == [*range(count), None]
        assert connection.open is not ends
        connection.close()
        assert count_copies(told.fileno()) == 1


def test_a_message_whose_descriptors_cannot_be_duplicated_leaves_none_behind() -> None:
    _, connection, server = talk()
    with server, open(os.memfd_create("told")) as told:
        with pytest.raises(OSError):
            connection.send({}, [told.fileno(), told.fileno(), -1])
        assert count_copies(told.fileno()) == 1 and not connection.has_unsent
        connection.close()


def test_a_keeper_without_a_descriptor_for_a_client_rests_and_takes_it_when_there_is_one(tmp_path: Path) -> None:
    loop = Loop()
    door = Door(loop, str(tmp_path / "keeper.sock"), str(tmp_path / "secret"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "keeper.sock"))
        free = os.dup(client.fileno())
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        try:
            for fd, events in loop.epoll.poll(0):
                loop._handlers[fd](events)
            assert not loop.epoll.poll(0), "it would be told of the client again and again"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        loop.watch(client.fileno(), lambda events: loop.stop())  # it is greeted
        loop.after(HANG_S, loop.stop)
        loop.run()
        (stranger,) = door._strangers
        stranger.close()
        door.close()


async def test_a_keeper_without_a_free_descriptor_ends_a_tree_once_there_is_one_and_loses_no_other(
    places: Places,
) -> None:
    async with opened(places) as keeper:
        bystander = await keeper.spawn(shell("echo ready; read x; exit 9"))
        child = await keeper.spawn(shell("trap '' TERM HUP; setsid sleep 300 & echo ready; while :; do sleep 1; done"))
        for each in (bystander, child):
            await until(lambda each=each: b"ready" in each.ring.peek())  # type: ignore[misc]
        before = resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            with pytest.raises(DescriptorsExhausted):
                await keeper.inspect(bystander, jobs=True)
            killing = asyncio.ensure_future(keeper.kill_tree(child, grace_ms=0))
            await keeper.ping()
            assert not killing.done()
        finally:
            resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, before)
        assert (await killing).survivors == ()
        assert (await keeper.inspect(bystander, jobs=True)).running
        await bystander.write_all(b"\n")
        assert (await bystander.exited).code == 9


def test_a_failure_that_cannot_be_logged_is_no_failure_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "traceback", None)  # as where no descriptor is left to import it with
    try:
        raise ValueError("of a child")
    except ValueError:
        complain("a test")
