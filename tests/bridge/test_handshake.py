"""Who may talk, in which version, and how a line that is no frame is answered."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.bridge.scripted import ScriptedDesktop, listening
from tests.support.bridge.talk import RawPeer, ask, connected, greeting
from tests.support.waiting import HANG_S, stays, until
from wsh.bridge.client import BridgeClient, Greeting
from wsh.bridge.endpoint import Endpoint, find_endpoint, remove_endpoint, write_endpoint
from wsh.bridge.fault import Dropped, HandshakeRefused, HandshakeTimeout, Unreachable
from wsh.bridge.frame import PolicyFrame
from wsh.bridge.listener import ListenerOptions
from wsh.bridge.stream import MISSED_HEARTBEATS


async def test_a_client_with_the_token_is_ready_and_gets_its_ids_back() -> None:
    async with listening(ScriptedDesktop()) as (listener, endpoint), connected(endpoint) as client:
        assert client.ready.version == 1
        assert client.ready.trace_id == "trace_test" and client.ready.runtime_session_id == "runtime-1"
        assert listener.clients == ["test server"]


async def test_a_wrong_token_is_refused_with_a_reason() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        for wrong in ("", "x", endpoint.token + "x", endpoint.token[:-1], "é" * 40):
            with pytest.raises(HandshakeRefused) as caught:
                await BridgeClient.connect(endpoint.host, endpoint.port, greeting(wrong))
            assert caught.value.details["reason"] == "bad_token"
            assert endpoint.token not in str(caught.value.details)


async def test_a_peer_of_another_version_is_refused_with_the_versions_that_would_do() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        with pytest.raises(HandshakeRefused) as caught:
            await BridgeClient.connect(
                endpoint.host, endpoint.port, Greeting(endpoint.token, "t", "r", versions=(2, 3))
            )
        assert caught.value.details["reason"] == "unsupported_version"
        assert caught.value.details["supported"] == [1] and caught.value.details["given"] == [2, 3]


async def test_the_highest_common_version_is_chosen() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        client = await BridgeClient.connect(
            endpoint.host, endpoint.port, Greeting(endpoint.token, "t", "r", versions=(7, 1))
        )
        assert client.ready.version == 1
        await client.aclose()


async def test_nothing_listening_is_unreachable() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        port = endpoint.port
    with pytest.raises(Unreachable):
        await BridgeClient.connect("127.0.0.1", port, greeting("t"))
    with pytest.raises(Unreachable):
        await BridgeClient.connect("no-such-host.invalid", port, greeting("t"))
    with pytest.raises(Unreachable):
        await BridgeClient.connect("bad host\udc80", port, greeting("t"))


async def test_a_silent_listener_is_a_handshake_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HandshakeTimeout):
            await BridgeClient.connect("127.0.0.1", port, greeting("t"), handshake_timeout_s=0.1)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b'{"type":"heartbeat","seq":1}\n'])
async def test_something_else_on_that_port_is_refused(answer: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HandshakeRefused) as caught:
            await BridgeClient.connect("127.0.0.1", port, greeting("t"))
        assert caught.value.details["reason"] in {"not_a_bridge", "closed"}


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"hello there", "malformed"),
        (b'{"type":"heartbeat","seq":0}', "hello_expected"),
        (b'{"type":"hello","versions":[1]}', "malformed"),
        (b'{"type":"hello","versions":[],"token":"","trace_id":"t","runtime_session_id":"r"}', "malformed"),
    ],
)
async def test_a_bad_first_frame_is_answered_with_why_and_ends_the_connection(first: bytes, code: str) -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        peer = await RawPeer.open(endpoint)
        peer.say(first)
        answer = await peer.hear()
        assert (answer["type"], answer["code"], answer["fatal"]) == ("error", code, True)
        assert await peer.hear() == {}
        await peer.aclose()


async def test_a_client_that_never_says_hello_is_put_out() -> None:
    options = ListenerOptions(port=0, hello_timeout_s=0.1)
    async with listening(ScriptedDesktop(), options) as (_, endpoint):
        peer = await RawPeer.open(endpoint)
        assert (await peer.hear())["code"] == "hello_timeout"
        await peer.aclose()


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b'{"type":"ready"}', b"\x00\xff", b'["type"]'])
async def test_a_malformed_frame_is_an_error_frame_and_the_connection_lives_on(line: bytes) -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        peer = await RawPeer.open(endpoint)
        assert (await peer.hello(endpoint))["type"] == "ready"
        peer.say(line)
        answer = await peer.hear()
        assert (answer["type"], answer["code"]) == ("error", "malformed")
        peer.say({"type": "read", "id": "x", "trace_id": "t", "terminal_id": "none"})
        answer = await peer.hear()
        assert (answer["code"], answer["reply_to"]) == ("unknown_terminal", "x")
        await peer.aclose()


async def test_a_malformed_request_is_answered_to_its_own_id() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        peer = await RawPeer.open(endpoint)
        await peer.hello(endpoint)
        peer.say({"type": "request", "id": "r9", "argv": "ls"})
        answer = await peer.hear()
        assert (answer["code"], answer["reply_to"]) == ("malformed", "r9")
        await peer.aclose()


async def test_a_frame_of_ten_megabytes_is_refused_and_others_go_on() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint), connected(endpoint) as bystander:
        peer = await RawPeer.open(endpoint)
        await peer.hello(endpoint)
        peer.say(b'{"type":"request","command":"' + b"x" * 10_000_000 + b'"}')
        answer = await peer.hear()
        assert (answer["code"], answer["fatal"]) == ("frame_too_large", True)
        assert answer["details"]["max_frame_bytes"] == 4 * 1024 * 1024
        await peer.aclose()
        decision = await bystander.submit(ask("true"))
        assert decision.outcome == "approved"


async def test_a_client_that_hears_a_malformed_frame_says_so_and_lets_nobody_wait() -> None:
    heard = asyncio.get_running_loop().create_future()

    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(
            b'{"type":"ready","version":1,"trace_id":"trace_test","runtime_session_id":"runtime-1",'
            b'"heartbeat_ms":10000,"max_frame_bytes":100000}\n'
        )
        await reader.readline()
        writer.write(b"{broken\n")
        heard.set_result(await reader.readline())
        writer.close()

    async with await asyncio.start_server(broken, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connected(Endpoint("127.0.0.1", port, "t")) as client:
            with pytest.raises(Dropped) as caught:
                await client.submit(ask("true"))
            assert caught.value.details["reason"] == "malformed"
        assert b'"malformed"' in await heard


async def test_a_peer_that_falls_silent_is_dropped_by_both_ends() -> None:
    options = ListenerOptions(port=0, heartbeat_s=0.05)
    async with listening(ScriptedDesktop(), options) as (listener, endpoint):
        peer = await RawPeer.open(endpoint)
        await peer.hello(endpoint)
        beats = 0
        while (await peer.hear(skip=())).get("type") == "heartbeat":
            beats += 1
        assert beats == MISSED_HEARTBEATS
        await until(lambda: not listener.clients, "the silent client to be dropped")
        await peer.aclose()

    async def frozen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(
            b'{"type":"ready","version":1,"trace_id":"trace_test","runtime_session_id":"runtime-1",'
            b'"heartbeat_ms":50,"max_frame_bytes":100000}\n'
        )
        await reader.read()
        writer.close()

    async with await asyncio.start_server(frozen, "127.0.0.1", 0) as server:
        async with connected(Endpoint("127.0.0.1", server.sockets[0].getsockname()[1], "t")) as client:
            with pytest.raises(Dropped):
                async with asyncio.timeout(HANG_S):
                    await client.submit(ask("true"))


async def test_heartbeats_keep_an_idle_connection_alive() -> None:
    options = ListenerOptions(port=0, heartbeat_s=0.1)
    async with listening(ScriptedDesktop(), options) as (_, endpoint), connected(endpoint) as client:
        await stays(lambda: client.is_open, "the connection", 1)
        assert (await client.submit(ask("true"))).outcome == "approved"


async def test_more_clients_than_the_limit_are_told() -> None:
    options = ListenerOptions(port=0, max_clients=1)
    async with listening(ScriptedDesktop(), options) as (_, endpoint), connected(endpoint):
        with pytest.raises(HandshakeRefused) as caught:
            async with connected(endpoint):
                pass
        assert caught.value.details["reason"] == "too_many_clients"


async def test_the_windows_policy_arrives_after_ready_and_again_when_it_changes() -> None:
    desktop = ScriptedDesktop(policy_text="a = 1\n")
    heard: list[PolicyFrame] = []
    async with listening(desktop) as (listener, endpoint), connected(endpoint, on_policy=heard.append):
        await until(lambda: len(heard) == 1, "the first policy")
        desktop.policy_text = "a = 2\n"
        listener.announce_policy()
        await until(lambda: len(heard) == 2, "the changed policy")
    assert [policy.text for policy in heard] == ["a = 1\n", "a = 2\n"]
    assert heard[0].digest != heard[1].digest


def test_the_runtime_file_is_private_and_believed_only_then(tmp_path: Path) -> None:
    path = tmp_path / "wsh" / "interactive-terminal.json"
    assert find_endpoint(path) is None
    endpoint = Endpoint("127.0.0.1", 45459, "secret", 1)
    write_endpoint(path, endpoint)
    assert path.stat().st_mode & 0o777 == 0o600
    assert find_endpoint(path) == endpoint and "secret" not in repr(endpoint)
    remove_endpoint(path, Endpoint("127.0.0.1", 1, "other", 1))
    assert path.exists()
    path.chmod(0o644)
    assert find_endpoint(path) is None
    path.chmod(0o600)
    for broken in ("", "[]", "{}", '{"host":"h","port":0,"token":"t"}', '{"host":"h","port":1,"token":""}'):
        path.write_text(broken)
        assert find_endpoint(path) is None
    write_endpoint(path, endpoint)
    link = tmp_path / "link"
    os.symlink(path, link)
    assert find_endpoint(link) is None
    remove_endpoint(path, endpoint)
    assert not path.exists()
