"""Adapters for real: programs that are started, hang, exit or speak another version; bridges that refuse, stall or drop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge.scripted import ScriptedDesktop, listening
from tests.support.contract.world import World, opened
from tests.support.waiting import until
from wsh.bridge.endpoint import Endpoint, find_endpoint, write_endpoint
from wsh.bridge.listener import ListenerOptions
from wsh.contract.adapters.discover import PROGRAM
from wsh.contract.request.model import Runtime

REPOSITORY = Path(__file__).parents[3]


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def desktop_program(folder: Path, before: str = "", options: str = "") -> str:
    """A program that becomes a scripted desktop."""
    info = folder / "desktop" / "interactive-terminal.json"
    return script(
        folder / "desktop-program",
        f'{before}\ncd {REPOSITORY} && exec "{sys.executable}" -m tests.support.bridge.scripted --info {info} {options}',
    )


def gone(pid: int) -> bool:
    """Ended; perhaps not collected yet by whoever inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@asynccontextmanager
async def ended_afterwards(world: World) -> AsyncIterator[None]:
    """A launched desktop stays, as it should; the test takes it away."""
    try:
        yield
    finally:
        endpoint = find_endpoint(world.info)
        if endpoint is not None and endpoint.pid is not None and not gone(endpoint.pid):
            os.kill(endpoint.pid, signal.SIGTERM)
            await until(lambda: gone(endpoint.pid or 0), "the desktop to end")
            try:
                os.waitpid(endpoint.pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait
            except ChildProcessError:
                pass


def details(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["error"]["details"]
    return found


def path_without_desktop() -> str:
    """Nothing of this machine's own is found beside what a test configures."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not os.path.exists(os.path.join(folder, PROGRAM)))


@asynccontextmanager
async def playing(folder: Path, **options: Any) -> AsyncIterator[World]:
    async with opened(folder, path=path_without_desktop(), **options) as world:
        yield world


# local and bundled


async def test_a_configured_program_is_started_becomes_ready_and_serves(tmp_path: Path) -> None:
    program = desktop_program(tmp_path)
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        async with ended_afterwards(world):
            answer = await world.interactive("echo", "from a real window", spawn_timeout_ms=30_000)
            assert answer["success"] and answer["result"]["stdout"] == "from a real window\n"
            first = find_endpoint(world.info)
            assert (await world.interactive("true"))["success"]
            assert find_endpoint(world.info) == first, "one desktop serves all"
            assert first is not None and first.pid is not None
            await world.pool.aclose()
            assert not gone(first.pid), "the window outlives our connection"
            assert (await world.interactive("true"))["success"], "a running desktop is found again, not started again"
            assert find_endpoint(world.info) == first


async def test_twenty_requests_at_once_start_one_desktop(tmp_path: Path) -> None:
    program = desktop_program(tmp_path, before=f"echo started >> {tmp_path}/starts")
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        async with ended_afterwards(world):
            calls = [world.interactive("true", spawn_timeout_ms=30_000) for _ in range(20)]
            assert all(answer["success"] for answer in await asyncio.gather(*calls))
    assert (tmp_path / "starts").read_text() == "started\n"


async def test_the_auto_order_falls_through_to_the_next_candidate(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "echo no display >&2; exit 1")
    bundled = desktop_program(tmp_path)
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": broken}, bundled_path=bundled) as world:
        async with ended_afterwards(world):
            assert (await world.interactive("true", spawn_timeout_ms=30_000))["success"]


async def test_path_lookup_comes_last(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = Path(desktop_program(tmp_path))
    program.rename(folder / "interactive-terminal")  # noqa: ASYNC240

    async with opened(tmp_path, path=f"{folder}:{os.environ['PATH']}") as world, ended_afterwards(world):
        assert (await world.interactive("true", spawn_timeout_ms=30_000))["success"]


async def test_nothing_to_start_is_gui_unavailable_with_every_source_attempted(tmp_path: Path) -> None:
    async with opened(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": "/no/such/program"}) as world:
        answer = await world.interactive("ls")
        assert answer["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        assert [entry["source"] for entry in details(answer)["attempted_candidates"]] == [
            "configured",
            "bundled",
            "path",
        ]
        assert details(answer)["spawn_errors"] == [] and details(answer)["next_recommended_action"]
        assert details(answer)["headless_verdict"]["effect"] == "allow"
        assert answer["fallback"]["strategy"] == "fallback_to_headless_if_allowed"
        assert answer["fallback"]["recommended_mode"] == "headless"
        again = await world.interactive("ls")
        assert again["error"] == answer["error"], "the same input fails the same way"


async def test_a_program_that_exits_is_gui_unavailable_with_what_it_said(tmp_path: Path) -> None:
    program = script(tmp_path / "exits", f"echo x >> {tmp_path}/starts; echo could not connect to display >&2; exit 3")
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        answer = await world.interactive("ls", adapter_override="local")
        assert answer["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        (error,) = details(answer)["spawn_errors"]
        assert error["attempt"] == 1 and "status 3" in error["error"] and "display" in error["error"]
        assert details(answer)["attempted_candidates"][0] == {
            "source": "configured",
            "path": program,
            "outcome": "exited",
        }
    assert (tmp_path / "starts").read_text() == "x\n", "no retry for what will not pass"


async def test_a_program_that_hangs_is_a_timeout_and_is_ended_with_its_children(tmp_path: Path) -> None:
    program = script(tmp_path / "hangs", f"sleep 1000 & echo $$ $! > {tmp_path}/pids; wait")
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        answer = await world.interactive("ls", adapter_override="local", spawn_timeout_ms=400)
        assert answer["error"]["code"] == "PM_TERM_TIMEOUT"
        assert details(answer)["attempted_candidates"][0]["outcome"] == "timeout"
        assert details(answer)["spawn_timeout_ms"] == 400 and details(answer)["spawn_errors"]
        pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
        await until(lambda: all(gone(pid) for pid in pids), "the program and its child to end")


@pytest.mark.parametrize("failure", ["exit 75", "echo EADDRINUSE: port 45459 >&2; exit 1"])
async def test_a_transient_failure_is_tried_once_more(failure: str, tmp_path: Path) -> None:
    once = f"if [ ! -e {tmp_path}/tried ]; then touch {tmp_path}/tried; {failure}; fi"
    program = desktop_program(tmp_path, before=once)
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        async with ended_afterwards(world):
            assert (await world.interactive("true", spawn_timeout_ms=30_000))["success"]


async def test_a_transient_failure_is_not_tried_a_third_time(tmp_path: Path) -> None:
    program = script(tmp_path / "busy", f"echo x >> {tmp_path}/starts; exit 75")
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        answer = await world.interactive("true", adapter_override="local")
        assert answer["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        assert [error["attempt"] for error in details(answer)["spawn_errors"]] == [1, 2]
    assert (tmp_path / "starts").read_text() == "x\nx\n"


async def test_a_program_of_another_version_is_a_disconnect_and_is_ended(tmp_path: Path) -> None:
    info = tmp_path / "desktop" / "interactive-terminal.json"
    code = f"""
import json, os, pathlib, socket
listener = socket.create_server(("127.0.0.1", 0))
path = pathlib.Path({str(info)!r})
path.touch(mode=0o600)
facts = {{"host": "127.0.0.1", "port": listener.getsockname()[1], "token": "t", "pid": os.getpid()}}
path.write_text(json.dumps(facts))
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
while True:
    peer, _ = listener.accept()
    peer.recv(65536)
    peer.sendall(b'{{"type":"error","code":"unsupported_version","message":"too old","fatal":true}}\\n')
"""
    (tmp_path / "other.py").write_text(code)
    program = script(tmp_path / "other", f'exec "{sys.executable}" {tmp_path}/other.py')
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": program}) as world:
        answer = await world.interactive("ls", adapter_override="local", spawn_timeout_ms=30_000)
        assert answer["error"]["code"] == "PM_TERM_DISCONNECTED"
        assert details(answer)["attempted_candidates"][0]["outcome"] == "refused"
        assert "too old" in details(answer)["spawn_errors"][0]["error"]
        assert gone(int((tmp_path / "pid").read_text()))


async def test_a_file_that_cannot_be_executed_is_said_once(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    async with playing(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_BINARY": str(program)}) as world:
        answer = await world.interactive("true", adapter_override="local")
        assert answer["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        (error,) = details(answer)["spawn_errors"]
        assert "ENOEXEC" in error["error"]


async def test_a_relative_or_unlisted_binary_is_refused_before_anything_starts(tmp_path: Path) -> None:
    program = script(tmp_path / "mine", f"touch {tmp_path}/started")
    async with playing(tmp_path) as world:
        for path in ("bin/mine", program):
            answer = await world.interactive("true", binary_path=path)
            assert answer["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
            assert details(answer)["fields"][0]["field"] == "runtime.binary_path"
    assert not (tmp_path / "started").exists()


async def test_a_running_desktop_with_another_token_or_a_stale_file(tmp_path: Path) -> None:
    async with playing(tmp_path) as world:
        async with listening(ScriptedDesktop()) as (_, endpoint):
            write_endpoint(world.info, Endpoint(endpoint.host, endpoint.port, "not the token", 1))
            refused = await world.interactive("true")
            assert refused["error"]["code"] == "PM_TERM_DISCONNECTED" and details(refused)["reason"] == "bad_token"
        stale = await world.interactive("true", adapter_override="bundled")
        assert stale["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE", "a file that leads nowhere is as good as none"


# the container's bridge


def bridge_environ(endpoint: Endpoint, **changes: str) -> dict[str, str]:
    return {
        "PM_RUNNING_IN_CONTAINER": "true",
        "PM_INTERACTIVE_TERMINAL_TOKEN": endpoint.token,
        "PM_INTERACTIVE_TERMINAL_HOST_ALIAS": endpoint.host,
        "PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS": endpoint.host,
        "PM_INTERACTIVE_TERMINAL_HOST_PORT": str(endpoint.port),
        "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "500",
    } | {f"PM_INTERACTIVE_TERMINAL_{name}": value for name, value in changes.items()}


async def test_a_container_reaches_the_host_by_its_alias_then_by_the_fallback(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(cwd="/usr")
    async with listening(desktop) as (_, endpoint):
        for alias in (endpoint.host, "no-such-host.invalid"):
            environ = bridge_environ(endpoint, HOST_ALIAS=alias)
            async with opened(tmp_path, environ=environ) as world:
                answer = await world.interactive("pwd")
                assert answer["success"] and answer["result"]["stdout"] == "/usr\n", "the desktop's own folder"


async def test_across_the_bridge_only_the_desktop_knows_what_a_path_means(tmp_path: Path) -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        async with opened(tmp_path, environ=bridge_environ(endpoint)) as world:
            there = await world.interactive("pwd", cwd="/etc")
            assert there["result"]["stdout"] == "/etc\n"
            missing = await world.interactive("pwd", cwd="/no/such/place")
            assert missing["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
            relative = await world.interactive("pwd", cwd="etc")
            assert relative["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"


async def test_missing_or_malformed_bridge_configuration_is_an_invalid_mode(tmp_path: Path) -> None:
    for environ in (
        {"PM_RUNNING_IN_CONTAINER": "true"},
        {"PM_TERM_ADAPTER_MODE": "container_bridge"},
        {"PM_TERM_ADAPTER_MODE": "container_bridge", "PM_INTERACTIVE_TERMINAL_TOKEN": ""},
    ):
        async with opened(tmp_path, environ=environ) as world:
            answer = await world.interactive("ls")
            assert answer["error"]["code"] == "PM_TERM_INVALID_MODE"
            assert details(answer)["missing"] == ["PM_INTERACTIVE_TERMINAL_TOKEN"]
            override = await world.interactive("ls", adapter_override="container_bridge")
            assert override["error"]["code"] == "PM_TERM_INVALID_MODE"
    environ = {"PM_RUNNING_IN_CONTAINER": "true", "PM_INTERACTIVE_TERMINAL_TOKEN": "secret-token"}
    async with opened(tmp_path, environ={**environ, "PM_INTERACTIVE_TERMINAL_HOST_PORT": "x"}) as world:
        answer = await world.interactive("ls")
        assert answer["error"]["code"] == "PM_TERM_INVALID_MODE" and "secret-token" not in str(answer)


async def test_nothing_listening_is_gui_unavailable_with_alias_and_port(tmp_path: Path) -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        pass
    environ = bridge_environ(endpoint, HOST_ALIAS="no-such-host.invalid")
    async with opened(tmp_path, environ=environ) as world:
        answer = await world.interactive("ls")
        assert answer["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        attempted = details(answer)["attempted_candidates"]
        assert [(entry["host"], entry["port"]) for entry in attempted] == [
            ("no-such-host.invalid", endpoint.port),
            ("127.0.0.1", endpoint.port),
        ]
        assert all(entry["error"] for entry in attempted) and details(answer)["next_recommended_action"]


async def test_a_silent_handshake_is_a_timeout(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        endpoint = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1], "t")
        async with opened(tmp_path, environ=bridge_environ(endpoint, CONNECT_TIMEOUT_MS="200")) as world:
            answer = await world.interactive("ls")
            assert answer["error"]["code"] == "PM_TERM_TIMEOUT"
            assert details(answer)["attempted_candidates"][0]["port"] == endpoint.port


async def test_a_wrong_token_is_a_disconnect(tmp_path: Path) -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        async with opened(tmp_path, environ=bridge_environ(endpoint, TOKEN="wrong-secret")) as world:
            answer = await world.interactive("ls")
            assert answer["error"]["code"] == "PM_TERM_DISCONNECTED" and details(answer)["reason"] == "bad_token"
            assert "wrong-secret" not in str(answer) and endpoint.token not in str(answer)


async def test_a_peer_of_another_version_or_another_protocol_is_a_disconnect(tmp_path: Path) -> None:
    answers = {
        b'{"type":"error","code":"unsupported_version","message":"m","fatal":true,"details":{"supported":[9]}}\n': (
            "unsupported_version"
        ),
        b"SSH-2.0-OpenSSH\n": "not_a_bridge",
        b"": "closed",
    }
    for line, reason in answers.items():

        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes = line) -> None:
            await reader.readline()
            writer.write(line)
            writer.close()

        async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
            endpoint = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1], "t")
            async with opened(tmp_path, environ=bridge_environ(endpoint)) as world:
                answer = await world.interactive("ls")
                assert answer["error"]["code"] == "PM_TERM_DISCONNECTED"
                assert details(answer)["reason"] == reason


async def test_the_default_request_timeout_comes_from_the_environment(tmp_path: Path) -> None:
    async with listening(ScriptedDesktop(script=lambda pending: None)) as (_, endpoint):
        async with opened(tmp_path, environ=bridge_environ(endpoint, REQUEST_TIMEOUT_MS="300")) as world:
            answer = await world.interactive("ls")
            assert answer["status"] == "accepted" and answer["result"]["approval"] == "pending"


async def test_an_adapter_has_the_whole_interface_and_recovers(tmp_path: Path) -> None:
    async with listening(ScriptedDesktop(), ListenerOptions(port=0)) as (listener, endpoint):
        async with opened(tmp_path, environ=bridge_environ(endpoint)) as world:
            assert (await world.interactive("true"))["success"]
            (adapter,) = world.pool._adapters.values()
            assert adapter.adapter_type == "container_bridge" and adapter.state == "ready"
            health = await adapter.health_check()
            assert health.healthy and health.endpoint == f"{endpoint.host}:{endpoint.port}"
            for peer in list(listener._peers):
                peer.stream.abort()
            await until(lambda: not adapter._client or not adapter._client.is_open, "the drop to be noticed")
            assert not (await adapter.health_check()).healthy
            assert (await world.interactive("true"))["success"], "the next request reconnects"
            assert len(listener.clients) == 1
            await adapter.close()
            await adapter.close()


async def test_headless_never_touches_a_desktop(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (listener, endpoint):
        async with opened(tmp_path, environ=bridge_environ(endpoint)) as world:
            blocked = await world.headless("wget x")
            assert blocked["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        async with opened(tmp_path, environ={"PM_RUNNING_IN_CONTAINER": "true"}) as world:
            assert (await world.headless("wget x"))["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        assert listener.clients == [] and desktop.arrived == []


async def test_calls_that_find_the_connection_dropped_at_once_make_one_new_connection(tmp_path: Path) -> None:
    async with opened(tmp_path) as world, listening(ScriptedDesktop()) as (listener, endpoint):
        write_endpoint(world.info, endpoint)
        adapter = await world.pool.get(world.caller.environ, Runtime(), "first")
        await adapter.close()
        await until(lambda: not listener.clients, "the end of the old connection")
        again = await asyncio.gather(
            world.pool.reattach(adapter, "a"),
            world.pool.get(world.caller.environ, Runtime(), "b"),
            world.pool.reattach(adapter, "c"),
        )
        assert set(again) == {adapter} and len(listener.clients) == 1
