"""The typed client against a real server: every call, and the server's errors as they were raised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from websockets.asyncio.client import unix_connect

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import until
from wsh.client.client import RemoteSession, Server, connect
from wsh.wire.error import InvalidRequest, ServerGone, SessionNameTaken, SessionNotFound, WaitTimeout
from wsh.wire.system.place import Places, find_places

PROMPT = {"PS1": "$ ", "HISTFILE": "/dev/null"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("client")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        with running_server(find_places()) as server:
            yield server


@pytest.fixture
async def server(running: RunningServer) -> AsyncIterator[Server]:
    async with connect(socket=running.socket, start=False) as server:
        yield server
        for info in await server.list():
            await server.session(info.name).kill()


async def open_shell(server: Server, **more: Any) -> RemoteSession:
    session = await server.open("bash --norc --noprofile", env=PROMPT, **more)
    await session.wait(text="$", generation=0, max_wait_ms=60_000)
    return session


async def test_a_session_is_opened_listed_found_renamed_tagged_and_killed(server: Server) -> None:
    assert await server.health() and (await server.info())["version"]
    session = await server.open("cat", name="one", rows=10, cols=40, tags=["a"], cwd="/")
    info = await session.info()
    assert (info.name, info.rows, info.cols, info.running) == ("one", 10, 40, True)
    assert [found.name for found in await server.list(["a"])] == ["one"] and await server.list(["b"]) == []
    assert (await session.tag(add=["b"], remove=["a"])).name == "one"
    assert [found.name for found in await server.list(["b"])] == ["one"] and await server.list(["a"]) == []
    assert (await session.rename("two")).name == session.name == "two"
    assert (await session.resize(12, 50)).rows == 12
    await session.kill()
    assert await server.list() == []


async def test_typing_keys_screens_and_scrollback(server: Server) -> None:
    session = await open_shell(server)
    await session.send("echo typed; seq 100\r")
    seen = await session.wait(regex="^100$", generation=0, max_wait_ms=60_000)
    assert seen.ended_by == "regex" and "100" in "\n".join(map(str, seen.screen.lines))
    history = await session.scrollback(limit=200)
    lines = [str(line) for line in history.lines]
    assert "typed" in lines and [line for line in lines if line.isdigit()] == [str(n) for n in range(1, 101)]
    styled = await session.screen("styled")
    assert styled.rows == (await session.screen()).rows
    await session.send("sleep 1000\r")
    await session.keys("ctrl+c")
    await session.send("echo $((40+2))\r")
    assert (await session.wait(regex="^42$", generation=0, max_wait_ms=60_000)).ended_by == "regex"


async def test_a_command_has_its_output_and_status_and_is_listed(server: Server) -> None:
    session = await open_shell(server)
    done = await session.run("echo out; false", max_wait_ms=60_000)
    assert done.exit_code == 1 and done.output is not None and done.output.strip() == "out"
    assert [command["exit_code"] for command in await session.commands()][-1:] == [1]
    assert "at_prompt" in await session.state()


async def test_waits_end_with_the_program_or_at_their_deadline(server: Server) -> None:
    session = await server.open("sh -c 'echo up; read x; exit 3'")
    await session.wait(text="up", generation=0, max_wait_ms=60_000)
    with pytest.raises(WaitTimeout):
        await session.wait(text="never", max_wait_ms=50)
    await session.send("\r")
    assert (await session.wait(exit=True, max_wait_ms=60_000)).ended_by == "exit"
    assert (await session.info()).exit_code == 3


async def test_input_longer_than_one_request_arrives_whole_and_in_order(server: Server) -> None:
    session = await server.open("sh -c 'stty raw -echo; echo up; head -c 6000000 | sha256sum; cat'")
    await session.wait(text="up", generation=0, max_wait_ms=60_000)
    data = bytes(range(256)) * 23_438
    await session.send(data[:6_000_000])
    await session.wait(text=hashlib.sha256(data[:6_000_000]).hexdigest()[:40], generation=0, max_wait_ms=60_000)


async def test_errors_are_those_that_the_server_raised(server: Server, running: RunningServer) -> None:
    with pytest.raises(SessionNotFound) as missing:
        await server.session("nobody").info()
    assert "nobody" in str(missing.value)
    await server.open("cat", name="taken")
    with pytest.raises(SessionNameTaken):
        await server.open("cat", name="taken")
    with pytest.raises(InvalidRequest):
        await server.session("taken").resize(0, 0)
    with pytest.raises(ServerGone):
        async with connect(socket=running.socket.with_name("nobody"), start=False) as gone:
            await gone.list()


async def test_detaching_sends_every_viewer_away_and_the_session_goes_on(
    server: Server, running: RunningServer
) -> None:
    session = await open_shell(server, name="watched")
    url = "ws://localhost/sessions/watched/ws/view?rows=24&cols=80"
    async with unix_connect(str(running.socket), url) as first, unix_connect(str(running.socket), url) as second:
        await first.recv()
        await second.recv()
        await session.detach()
        for viewer in (first, second):
            told = [message async for message in viewer]
            last = [json.loads(message) for message in told if isinstance(message, str)][-1]
            assert last == {"type": "dismissed", "reason": "detached"}
            assert viewer.close_code == 1000
    assert (await session.run("echo still here", max_wait_ms=60_000)).exit_code == 0

    async def has_no_viewer() -> bool:
        return '"watched"' not in json.dumps(await server.call("GET", "/clients"))

    await until(has_no_viewer, "the viewers to be forgotten", seen=lambda: running.get("/clients"))
    await session.detach()  # nobody to send away is no error


async def test_a_client_starts_a_server_only_if_it_may(places: Places) -> None:
    with pytest.raises(ServerGone):
        async with connect(socket=places.socket, start=False) as server:
            await server.list()
    assert not places.socket.exists()
