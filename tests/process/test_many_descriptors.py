"""A server and a keeper of hundreds of sessions: numbers of descriptors above those that `select` knows."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import pytest

from wsh.process.keeper.door import Door
from wsh.process.keeper.loop import Loop
from wsh.wire.system.owner import find_peer_fault, own_limit, why_not_owner
from wsh.wire.system.place import Places

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
