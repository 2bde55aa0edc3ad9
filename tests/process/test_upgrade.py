"""A newer server over the keeper of version 0.1.0, which outlives an upgrade with its sessions."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.process.keeper import said, shell
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import customize
from wsh.process import ConfinementSpec, KeeperClient, SpawnSpec
from wsh.process.launch import why_outdated
from wsh.wire.error import SandboxUnavailable
from wsh.wire.system.place import Places, ensure_private

FIXTURE = Path(__file__).parent / "fixtures" / "keeper-0.1.0.zip"
SESSIONS = 20


@pytest.fixture
def old_keeper(places: Places, tmp_path: Path) -> None:
    start_old_keeper(places, tmp_path)


def start_old_keeper(places: Places, folder: Path) -> None:
    """The keeper of 0.1.0 listens where a server will look for its keeper. It ends with its last session."""
    zipfile.ZipFile(FIXTURE).extractall(folder / "old")
    ensure_private(places.runtime)
    ensure_private(places.state)
    main = folder / "old" / "src" / "wsh" / "process" / "keeper" / "main.py"
    words = [str(places.keeper_socket), str(places.keeper_secret), str(places.state / "default.keeper.log"), "120"]
    env = {"PATH": os.defpath, "MALLOC_ARENA_MAX": "1"}
    subprocess.run([sys.executable, "-I", "-S", str(main), *words], check=True, env=env, cwd="/")


def _screens(server: RunningServer) -> dict[str, object]:
    names = sorted(info["name"] for info in server.get("/sessions"))
    screens = {name: server.get(f"/sessions/{name}/screen?format=styled") for name in names}
    return {name: (screen["lines"], screen["cursor"]) for name, screen in screens.items()}


def play_its_server(folder: Path) -> dict[str, str]:
    """Variables by which a server takes the old keeper for its own, as the server of that version would."""
    folder.mkdir()
    return customize(folder, "from wsh.process import launch\nlaunch.why_outdated = lambda pid: None")


def test_a_newer_server_takes_over_the_sessions_of_an_old_keeper(
    old_keeper: None, places: Places, tmp_path: Path
) -> None:
    with running_server(places, check_left=False, environ=play_its_server(tmp_path / "older")) as server:
        for n in range(SESSIONS):
            colour = 31 + n % 6
            script = f"printf '\\033[{colour}msession {n}\\033[0m\\n'; seq {n * 7}; echo ready; exec cat"
            made = server.request("POST", "/sessions", {"name": f"s{n:02}", "command": script})
            assert made.status == 201, made.body

        def all_show(text: str, times: int) -> bool:
            return all(str(seen).count(text) == times for seen in _screens(server).values())

        # What it prints later would move the echo away.
        wait_until(lambda: all_show("ready", 1), what="every session's program")
        for n in range(SESSIONS):
            server.request("POST", f"/sessions/s{n:02}/input", b"typed before\r")
        wait_until(lambda: all_show("typed before", 2), what="every session's echo")
        before = _screens(server)
        server.process.kill()
        server.process.wait()
        with running_server(places, check_left=False) as successor:
            assert _screens(successor) == before
            for n in range(SESSIONS):
                assert successor.request("POST", f"/sessions/s{n:02}/input", b"typed after\r").status == 204
            wait_until(
                lambda: all(str(seen).count("typed after") == 2 for seen in _screens(successor).values()),
                what="every session's echo after the upgrade",
            )
            done = subprocess.run([sys.executable, "-m", "wsh.cli.main", "doctor"], capture_output=True, text=True)
            assert "is that of another installation" in done.stdout, done.stdout
            killed = successor.request("DELETE", "/sessions/s00")
            assert killed.status == 204
            assert len(successor.get("/sessions")) == SESSIONS - 1


async def test_a_keeper_without_sandboxes_refuses_a_confined_program_and_runs_nothing(
    old_keeper: None, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsh.process.launch.why_outdated", lambda pid: None)  # as if it kept something

    keeper = await KeeperClient.open(places)
    spec = SpawnSpec(["touch", str(tmp_path / "ran")], "/", {"PATH": os.environ["PATH"]})
    with pytest.raises(SandboxUnavailable, match="version without sandboxes"):
        await keeper.spawn(replace(spec, confinement=ConfinementSpec()))
    assert not keeper.children
    await keeper.stop(grace_ms=0)

    assert not (tmp_path / "ran").exists()


def _keeper_pid(places: Places) -> int:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(places.keeper_socket))
        return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def test_an_old_keeper_is_replaced_when_its_last_session_has_ended_and_not_before(
    old_keeper: None, places: Places, tmp_path: Path
) -> None:
    old = _keeper_pid(places)
    with running_server(places, check_left=False, environ=play_its_server(tmp_path / "older")) as server:
        for name in ("one", "two"):
            server.request("POST", "/sessions", {"name": name, "command": "printf kept; exec cat"})
        server.process.kill()
        server.process.wait()
        with running_server(places, check_left=False) as successor:
            assert why_outdated(old) == "is that of another installation"
            assert successor.request("DELETE", "/sessions/one").status == 204
            assert successor.request("POST", "/sessions", {"name": "three", "command": "exec cat"}).status == 201
            assert _keeper_pid(places) == old, "something still runs under it"
            for name in ("two", "three"):
                assert successor.request("DELETE", f"/sessions/{name}").status == 204
            answers = [
                successor.request("POST", "/sessions", {"name": f"new{n}", "command": f"printf 'hello {n}'; exec cat"})
                for n in range(4)
            ]
            assert [answer.status for answer in answers] == [201] * 4
            new = _keeper_pid(places)
            assert new != old and why_outdated(new) is None
            wait_until(lambda: not Path(f"/proc/{old}").exists(), what="the end of the old keeper")
            wait_until(
                lambda: "hello 3" in str(successor.get("/sessions/new3/screen?format=plain")),
                what="a session under the new keeper",
            )
            assert successor.get("/server/info").get("warnings", []) == []


async def test_two_sessions_opened_at_once_after_an_upgrade_both_run_under_the_new_keeper(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("wsh.process.launch.why_outdated", lambda pid: "is older than this installation")
        keeper = await KeeperClient.open(places)
    old = keeper.pid
    try:
        children = await asyncio.gather(*(keeper.spawn(shell(f"echo hello {n}; exec cat")) for n in range(3)))
        assert keeper.pid != old and set(keeper.children.values()) == set(children)
        for n, child in enumerate(children):
            await said(child, b"hello %d" % n)
    finally:
        await keeper.stop(grace_ms=0)
