"""The pump between a host's pipes and the server: garbage, order, surroundings, endings."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from tests.support.mcp.door import RunningDoor, serve
from tests.support.mcp.host import HttpHost, Json, StdioHost, envelope, failure, structured
from tests.support.session.running import run
from tests.support.waiting import HANG_S, wait_until, wait_while
from wsh.client import stdio_proxy
from wsh.client.stdio_proxy import ReconnectPause, StdioProxy, Upstream, Wire
from wsh.mcp.sdk_compat import Context
from wsh.wire.json import rpc
from wsh.wire.system.place import Places, ensure_private, read_boot_id


def test_garbage_is_answered_and_the_connection_lives_on(either_stdio: StdioHost) -> None:
    stdio = either_stdio
    cases: list[tuple[bytes, int, object]] = [
        (b"{nope", -32700, None),
        (b'{"a": NaN}', -32700, None),
        (b"\xff\xfe{}", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"17", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', -32600, 4),
        (b'{"jsonrpc":"2.0","id":5}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}', -32600, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":"no/such"}', -32601, 9),
        (b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{}}', -32602, 10),
        (b'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"echo","arguments":[1]}}', -32602, 11),
    ]
    for line, code, id in cases:
        stdio.send_raw(line + b"\n")
        answer = stdio.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, id), line[:80]
    stdio.send_raw(b"\n   \n")
    assert structured(stdio.call("echo", {"text": "alive"}))["text"] == "alive"


HALF = "\ud800"
"""Half of a surrogate pair, which JSON can spell and no text has."""
HALVES: list[Json] = [
    {"id": HALF, "method": "ping"},
    {"id": HALF, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
    {"id": 1, "method": HALF},
    {"id": 1, "method": "tools/call", "params": {"name": HALF}},
    {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}, "_meta": {HALF: 1}}},
    {"id": 1, "method": "prompts/get", "params": {"name": "wsh:core", "arguments": {HALF: "x"}}},
    {"id": 1, "method": "resources/read", "params": {"uri": f"wsh://sessions/{HALF}/screen"}},
    {"id": 1, "method": "resources/subscribe", "params": {"uri": f"wsh://sessions/{HALF}/screen"}},
]


@pytest.mark.parametrize("modern", [False, True])
def test_half_of_a_surrogate_pair_is_refused_and_what_is_under_way_goes_on(door: RunningDoor, modern: bool) -> None:
    with StdioHost(modern=modern) as host:
        if not modern:
            host.initialize()
        host.start_request("tools/call", {"name": "slow", "arguments": {"ms": 60_000}}, id="under way")
        wait_until(lambda: door.log.started == [""])
        for message in HALVES:
            params = message.get("params", {})
            host.send({"jsonrpc": "2.0", **message, "params": envelope(params) if modern else params})
            answer = host.receive()
            assert (answer["error"]["code"], answer["id"]) == (-32700, None if message["id"] == HALF else 1), message
            assert "surrogate" in answer["error"]["message"]
        assert structured(host.call("echo", {"text": "\U0001f600"}))["text"] == "\U0001f600"
        host.notify("$/cancelRequest", {"id": "under way"})
        assert failure(host.wait_answer("under way"))["code"] == "CANCELLED"


def test_half_of_a_surrogate_pair_over_http_is_refused_by_its_id(http: HttpHost) -> None:
    response = http.post({"jsonrpc": "2.0", "id": 1, "method": HALF})
    assert response.status_code == 400
    assert (response.json()["error"]["code"], response.json()["id"]) == (-32700, 1)


def test_what_is_not_utf_8_in_an_answer_is_replaced_and_the_connection_lives_on(
    stdio: StdioHost, door: RunningDoor
) -> None:
    door.shelf.list_names = lambda: ["a\udcff"]  # type: ignore[method-assign]  # names as no room lets them be
    ref = {"type": "ref/resource", "uri": "wsh://sessions/{name}/screen"}
    told = stdio.request("completion/complete", {"ref": ref, "argument": {"name": "name", "value": "a"}})
    assert told["result"]["completion"]["values"] == ["a\ufffd"]
    assert structured(stdio.call("echo", {"text": "alive"}))["text"] == "alive"


def test_only_a_subscription_that_was_granted_is_repeated_to_the_next_server(places: Places) -> None:
    granted, refused = "wsh://sessions/one/screen", "wsh://sessions/other/screen"
    taken_back = "wsh://sessions/two/screen"
    with serve(places):
        host = StdioHost()
        host.initialize()
        assert "result" in host.request("resources/subscribe", {"uri": granted})
        assert "error" in host.request("resources/subscribe", {"uri": refused})
        assert "result" in host.request("resources/subscribe", {"uri": taken_back})
        assert "result" in host.request("resources/unsubscribe", {"uri": taken_back})
    asked: list[str] = []
    with serve(places) as second:
        index = second.shelf.shelf
        assert index is not None
        subscribe = index.subscribe

        def note(ctx: Context, uri: str) -> None:
            asked.append(uri)
            subscribe(ctx, uri)

        index.subscribe = note  # type: ignore[method-assign]  # to see what comes
        assert "result" in host.request("ping")
        missed = [m["params"]["uri"] for m in host.seen if m.get("method") == "notifications/resources/updated"]
        assert missed == [granted], "it may have changed between the servers"
        wait_until(lambda: asked, "the subscription")
        second.loop.call_soon_threadsafe(index.note_session, "one")
        host.wait_for(lambda m: m.get("method") == "notifications/resources/updated")
        host.close()
    assert asked == [granted]


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_what_changed_between_two_servers_is_told_by_the_pump(places: Places, modern: bool) -> None:
    uri = "wsh://sessions/one/screen"
    with serve(places):
        host = StdioHost(modern=modern)
        if modern:
            wanted = {"resourceSubscriptions": [uri], "resourcesListChanged": True}
            host.start_request("subscriptions/listen", {"notifications": wanted}, id="ear")
            host.wait_for(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")
        else:
            host.initialize()
            assert "result" in host.request("resources/subscribe", {"uri": uri})
    with serve(places):
        told = host.wait_for(lambda m: m.get("method") == "notifications/resources/updated")["params"]
        assert told["uri"] == uri
        assert told.get("_meta") == ({"io.modelcontextprotocol/subscriptionId": "ear"} if modern else None)
        host.wait_for(lambda m: m.get("method") == "notifications/resources/list_changed")
        host.close()


def test_connections_that_break_off_at_once_are_made_anew_ever_later() -> None:
    pause = ReconnectPause()
    assert pause.note_end(lived_s=60.0) == 0.0
    pauses = [pause.note_end(lived_s=0.01) for _ in range(12)]
    assert pauses == sorted(pauses) and 0 < pauses[0] < pauses[1] and pauses[-1] == pauses[-2] <= 2.0
    assert pause.note_end(lived_s=60.0) == 0.0
    assert pause.note_end(lived_s=0.01) == pauses[0]


def test_a_request_before_the_handshake_is_refused(door: RunningDoor) -> None:
    with StdioHost() as host:
        assert "error" in host.request("tools/list")
        assert host.request("ping")["result"] == {}
        host.initialize()
        assert host.request("tools/list")["result"]["tools"]


def test_the_connection_carries_folder_and_variables_of_the_host(door: RunningDoor, tmp_path: Path) -> None:
    env = {"ALLOWED_COMMANDS": "ls", "PM_X": "1", "WSH_Y": "2", "OTHER": "no"}
    with StdioHost(cwd=str(tmp_path), env=env) as host:
        host.initialize()
        seen = structured(host.call("echo", {"text": ""}))
    assert seen["cwd"] == str(tmp_path)
    assert seen["env"] == {k: v for k, v in env.items() if k != "OTHER"}
    assert seen["caller"].startswith("stdio:")


def test_two_hosts_are_two_callers(stdio: StdioHost, door: RunningDoor) -> None:
    with StdioHost() as other:
        other.initialize()
        first = structured(stdio.call("echo", {"text": ""}))["caller"]
        assert structured(other.call("echo", {"text": ""}))["caller"] != first


def test_a_narrowed_connection_lists_and_calls_only_its_families(door: RunningDoor) -> None:
    with StdioHost(args=["--toolsets", "exec"]) as host:
        host.initialize()
        names = [tool["name"] for tool in host.request("tools/list")["result"]["tools"]]
        assert names == ["broken_exec", "picky_exec"]
        assert host.call("echo", {"text": ""})["error"]["code"] == -32602


def test_answers_of_one_caller_come_in_the_order_of_their_ends(stdio: StdioHost) -> None:
    stdio.start_request("tools/call", {"name": "slow", "arguments": {"ms": 400}}, id="late")
    stdio.start_request("tools/call", {"name": "slow", "arguments": {"ms": 50}}, id="early")
    assert [stdio.receive()["id"], stdio.receive()["id"]] == ["early", "late"]


def test_closing_stdin_ends_the_proxy_and_tells_its_end(door: RunningDoor) -> None:
    host = StdioHost()
    host.initialize()
    assert host.close() == 0
    wait_until(lambda: len(door.log.ended_owners) == 1)


def test_answers_that_are_about_to_come_still_go_out_after_stdin_closed(door: RunningDoor) -> None:
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "sh", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow", "arguments": {"ms": 100}}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    command = [sys.executable, "-m", "wsh.cli.main", "mcp"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=True)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def test_each_listen_stream_is_acknowledged_to_the_host_once_by_whichever_server(places: Places) -> None:
    def acknowledge(id: str) -> bytes:
        params = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {}}
        return rpc.dump({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})

    async def work() -> None:
        proxy = StdioProxy(places)
        for id in ("heard", "unheard"):
            body: Json = {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen"}
            proxy._remember(rpc.Message(body, id, "subscriptions/listen"), b"")
        assert proxy._is_for_host(acknowledge("heard"))
        # The server died before it acknowledged the second; the next one acknowledges both.
        assert not proxy._is_for_host(acknowledge("heard"))
        assert proxy._is_for_host(acknowledge("unheard"))

    run(work())


def test_a_notification_with_an_id_takes_nothing_back(places: Places) -> None:
    with serve(places) as first:
        host = StdioHost()
        host.initialize()
        host.start_request("tools/call", {"name": "slow", "arguments": {"ms": 60_000}}, id="lost")
        wait_until(lambda: first.log.started == [""])
        assert host.request("notifications/cancelled", {"requestId": "lost"})["error"]["code"] == -32601
        assert host.request("notifications/initialized")["error"]["code"] == -32601
    assert host.wait_answer("lost")["error"]["code"] == -32000
    with serve(places):
        assert structured(host.call("echo", {"text": "again"}))["text"] == "again"
        assert host.close() == 0


def test_input_from_a_file_is_pumped_too(door: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\nnonsense\n')
    command = [sys.executable, "-m", "wsh.cli.main", "mcp"]
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as out:
        subprocess.run(command, stdin=source, stdout=out, timeout=60, check=True)
    answers = {(m.get("id"), "error" in m) for m in map(json.loads, (tmp_path / "out").read_text().splitlines())}
    assert answers == {(1, False), (None, True)}


def test_a_server_that_dies_fails_what_was_under_way_and_the_next_one_serves_on(places: Places) -> None:
    with serve(places) as first:
        host = StdioHost()
        host.initialize()
        host.start_request("tools/call", {"name": "slow", "arguments": {"ms": 60_000}}, id="lost")
        wait_until(lambda: first.log.started == [""])
    answer = host.wait_for(lambda m: m.get("id") == "lost")
    assert answer["error"]["code"] == -32000
    assert "went away" in answer["error"]["message"]
    with serve(places):
        assert structured(host.call("echo", {"text": "again"}))["text"] == "again"
        assert host.close() == 0


def test_a_listen_stream_of_a_modern_host_survives_a_new_server(places: Places) -> None:
    with serve(places):
        host = StdioHost()
        wanted = {"resourceSubscriptions": ["wsh://sessions/one/screen"]}
        host.start_request("subscriptions/listen", envelope({"notifications": wanted}), id="ear")
        host.wait_for(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")
    with serve(places) as second:
        wait_until(lambda: len(second.endpoint.links) == 1)
        wait_until(lambda: second.shelf.shelf is not None and len(second.shelf.shelf.bus) == 1)
        assert second.shelf.shelf is not None
        second.loop.call_soon_threadsafe(second.shelf.shelf.note_session, "one")
        note = host.wait_for(lambda m: m.get("method") == "notifications/resources/updated")
        assert note["params"]["uri"] == "wsh://sessions/one/screen"
        assert not [m for m in host.seen if m.get("method", "").endswith("acknowledged")]
        host.notify("notifications/cancelled", {"requestId": "ear"})
        host.close()


def _message(id: str, method: str) -> rpc.Message:
    read = rpc.parse(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).encode())
    assert isinstance(read, rpc.Message)
    return read


class IdleWire:
    """To a host that reads everything and says no more."""

    broken = False

    def is_unread(self) -> bool:
        return False

    async def flush(self) -> None:
        pass


async def test_a_request_that_listens_keeps_no_pump_whose_host_has_left(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_proxy, "DRAIN_S", 10 * HANG_S)
    proxy = StdioProxy(places)
    proxy._wire = cast(Wire, IdleWire())
    proxy._remember(_message("ear", "subscriptions/listen"), b"")
    async with asyncio.timeout(HANG_S):
        await proxy._drain()


async def test_a_request_that_the_next_server_has_is_not_given_to_it_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the first server is noticed late where the host is slow to read what that server had said."""

    class GoneServer:
        async def read(self, at_once: object) -> AsyncIterator[bytes]:
            for line in (b"{}",):
                if at_once:
                    raise ConnectionResetError(errno.ECONNRESET, "it had not read all")
                yield line

        def close(self) -> None:
            pass

    gone, next_server = cast(Upstream, GoneServer()), cast(Upstream, GoneServer())
    handed: list[str] = []

    async def note(wire: Wire, read: rpc.Message, out: bytes) -> None:
        handed.append(str(read.id))

    for server in (next_server, gone):
        proxy = StdioProxy(places)
        monkeypatch.setattr(proxy, "_hand_over", note)
        proxy._wire = cast(Wire, IdleWire())
        proxy._last = (_message("once", "tools/call"), b"")
        proxy._remember(*proxy._last)
        proxy._sent_on["once"] = server
        proxy._upstream = next_server
        await proxy._follow(gone)
        assert handed == ([] if server is next_server else ["once"])


def test_a_configuration_that_cannot_be_used_is_told_to_each_request(places: Places) -> None:
    """The server that ran was a persistent one, which is waited for as long as the configuration says."""
    ensure_private(places.runtime)
    record = {"boot": read_boot_id(), "host": "127.0.0.1", "port": 1, "pid": 0}
    places.runtime_info.write_text(json.dumps(record))
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text("[client]\nrestart_wait_s = 'long'\n")
    with StdioHost() as host:
        for _ in range(2):
            answer = host.request("ping")
            assert "client.restart_wait_s" in answer["error"]["message"], answer
        assert host.close() == 0


def test_only_the_unix_socket_takes_lines(door: RunningDoor) -> None:
    import httpx2

    assert httpx2.post(door.url + "/stdio", content=b"{}", trust_env=False).status_code == 404


def test_lines_of_any_length_pass_whole(either_stdio: StdioHost) -> None:
    texts = ["", "x" * 100_000, "é", "y" * 3_000_000, "z" * 65_536]
    ids = [either_stdio.start_request("tools/call", {"name": "echo", "arguments": {"text": text}}) for text in texts]
    answers = [either_stdio.receive() for _ in ids]
    told = {answer["id"]: structured(answer)["text"] for answer in answers}
    assert all(told[id] == text for id, text in zip(ids, texts, strict=True))


def test_a_message_that_is_too_long_is_refused_and_the_next_one_served(either_stdio: StdioHost) -> None:
    long = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * rpc.MAX_MESSAGE_BYTES + b'"}}\n'
    either_stdio.send_raw(long)
    assert either_stdio.receive()["error"]["code"] == rpc.INVALID_REQUEST
    assert structured(either_stdio.call("echo", {"text": "alive"}))["text"] == "alive"


def test_a_host_that_reads_late_has_the_whole_last_answer(door: RunningDoor) -> None:
    words = [sys.executable, "-m", "wsh.cli.main", "mcp"]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "late", "version": "1"}}
    call = {"name": "echo", "arguments": {"text": "x" * 1_000_000}}
    messages: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        out = process.stdout.fileno()
        fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, 4096)
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        process.stdin.close()
        while os.read(out, 1) != b"\n":
            pass
        # The rest of the answer waits in the pump for room in the pipe, and nothing else is under way.
        wait_until(lambda: _waiting_bytes(out) > 0, "the answer in the pipe")
        wait_while(lambda: process.poll() is None, "the pump with the rest of its answer", 0.15)
        *_, last = process.stdout.read().splitlines()
    assert len(json.loads(last)["result"]["structuredContent"]["text"]) == 1_000_000


def _waiting_bytes(fd: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])


def test_an_older_pump_is_served_in_chunks(door: RunningDoor, places: Places) -> None:
    """One that does not ask for lines without HTTP around them."""
    greeting = {"wsh": {"id": "0123456789", "cwd": "/", "environ": {}, "toolsets": []}}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(HANG_S)
        sock.connect(str(places.socket))
        sock.sendall(b"POST /mcp/stdio HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for body in (greeting, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}):
            line = json.dumps(body).encode() + b"\n"
            sock.sendall(b"%x\r\n%b\r\n" % (len(line), line))
        with sock.makefile("rb") as answers:
            while answers.readline() != b"\r\n":
                pass
            lines = []
            for _ in range(2):
                size = int(answers.readline(), 16)
                lines.append(json.loads(answers.read(size)))
                assert answers.read(2) == b"\r\n"
    assert "raw" not in lines[0]["wsh"]
    assert lines[1]["id"] == 1 and "result" in lines[1]
