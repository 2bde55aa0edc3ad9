"""The JSON WebSockets, spoken by a real client: every method, every event, and what is refused."""

from __future__ import annotations

import base64
import json
import random
import string
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.http.route.test_element import OVERLAY, PANEL
from tests.http.route.test_session import settle, type_in, wait_for_text
from tests.support.http.talk import Mirror, Talk, talk
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.http.ws.methods import METHODS
from wsh.terminal.terminal import Terminal
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile

Open = Callable[..., str]


def refused(server: RunningServer, path: str, **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        connect(f"{server.ws_url}{path}", additional_headers=headers)
    body = caught.value.response.body or b"{}"
    return caught.value.response.status_code, json.loads(body)["error"]["code"]


# the way in


def test_an_upgrade_passes_the_same_doors_as_a_request(server: RunningServer, open_session: Open) -> None:
    path = f"/sessions/{open_session('cat')}/ws/json"
    bearer = server.auth["Authorization"]
    assert refused(server, path) == (401, "auth_required")
    assert refused(server, path, Authorization="Bearer nonsense") == (403, "auth_invalid")
    assert refused(server, f"{path}?ticket=nonsense") == (403, "auth_invalid")
    assert refused(server, f"{path}?token={server.token}") == (401, "auth_required")
    assert refused(server, path, Authorization=bearer, Origin="null") == (403, "origin_not_allowed")
    assert refused(server, path, Authorization=bearer, Origin="http://evil.example") == (403, "origin_not_allowed")
    assert refused(server, "/sessions/nobody/ws/json", Authorization=bearer) == (404, "session_not_found")
    assert refused(server, "/sessions/nobody/ws/raw", Authorization=bearer) == (404, "session_not_found")
    assert refused(server, "/sessions", Authorization=bearer) == (404, "not_found")
    assert server.request("GET", path).code == "invalid_request"


def test_a_ticket_opens_one_socket_once(server: RunningServer, open_session: Open) -> None:
    path = f"/sessions/{open_session('cat')}/ws/json"
    ticket = server.request("POST", "/auth/ws-ticket").json["ticket"]
    with connect(f"{server.ws_url}{path}?ticket={ticket}", additional_headers={"Origin": server.url}) as connection:
        assert json.loads(connection.recv()) == {"connected": True}
    assert refused(server, f"{path}?ticket={ticket}") == (403, "auth_invalid")


def test_a_ticket_has_the_role_of_whoever_asked_for_it(server: RunningServer) -> None:
    agent = TokenFile(server.places.tokens).add_agent("ticketed")
    ticket = server.request("POST", "/auth/ws-ticket", token=agent).json["ticket"]
    with connect(f"{server.ws_url}/ws/json?ticket={ticket}") as connection:
        client = Talk(connection)
        assert client.receive() == {"connected": True}
        assert client.fail("set_server_mode", {"persistent": True}) == "forbidden"


def test_the_most_clients_of_a_session_is_a_setting(places: Places) -> None:
    with running_server(places, environ={"WSH_SERVER_MAX_VIEWERS": "2"}) as server:
        server.request("POST", "/sessions", {"name": "s", "command": "cat"})
        with talk(server, "/sessions/s/ws/json"), talk(server, "/sessions/s/ws/json"):
            assert server.get("/sessions/s")["clients"] == 2
            auth = server.auth["Authorization"]
            assert refused(server, "/sessions/s/ws/json", Authorization=auth) == (429, "resource_limit_reached")
        wait_until(lambda: server.get("/sessions/s")["clients"] == 0, "the clients to be gone")


# methods


def test_every_method_of_a_session_answers(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    settle(server, name)
    with talk(server, f"/sessions/{name}/ws/json") as client:
        asked = set()

        def ask(method: str, params: Any = None) -> Any:
            asked.add(method)
            return client.ask(method, params)

        assert ask("get_screen", {"format": "plain"})["rows"] == 24
        assert ask("get_scrollback", {"limit": 5, "format": "plain"})["offset"] == 0
        before = ask("send_input", {"data": "hello\r"})["generation"]
        idle = ask("await_idle", {"timeout_ms": 100, "last_generation": before, "format": "plain"})
        assert idle["screen"]["lines"][:2] == ["hello", "hello"] and idle["ended_by"] == "quiet"
        assert ask("await_quiesce", {"timeout_ms": 10})["generation"] == idle["generation"]
        ask("send_input", {"data": base64.b64encode(b"b64\r").decode(), "encoding": "base64"})
        ask("send_input", {"data": "k e y enter", "encoding": "keys"})
        assert ask("resize", {"rows": 20, "cols": 70})["cols"] == 70

        for kind, wanted in (("overlay", OVERLAY), ("panel", PANEL)):
            made = ask(f"create_{kind}", {**wanted, "focusable": True})["id"]
            assert [e["id"] for e in ask(f"list_{kind}s")] == [made]
            assert ask(f"get_{kind}", {"id": made})["id"] == made
            assert ask(f"update_{kind}", {"id": made, "spans": [{"text": "u", "id": "a"}]})["spans"][0]["text"] == "u"
            assert ask(f"patch_{kind}", {"id": made, "z": 5})["z"] == 5
            spans = [{"text": "v", "id": "a"}]
            assert ask(f"update_{kind}_spans", {"id": made, "spans": spans})["spans"] == spans
            write = {"row": 0, "col": 0, "text": "w"}
            assert ask(f"{kind}_region_write", {"id": made, "writes": [write]})["region_writes"] == [write]
            both = ask("batch_update", {"id": made, "type": kind, "spans": spans, "writes": [{**write, "col": 1}]})
            assert len(both["region_writes"]) == 2
            assert ask("focus", {"id": made}) == {"focused": made} == ask("get_focus")
            assert ask("unfocus") == {"focused": None}
            ask(f"delete_{kind}", {"id": made})
            ask(f"create_{kind}", wanted)
            ask(f"clear_{kind}s")
            assert client.ask(f"list_{kind}s") == []

        assert ask("get_input_mode") == {"mode": "passthrough"}
        assert ask("capture_input") == {"mode": "capture"}
        assert ask("release_input") == {"mode": "passthrough"}
        assert ask("get_screen_mode") == {"mode": "normal"}
        assert ask("enter_alt_screen") == {"mode": "alt"}
        assert ask("exit_alt_screen") == {"mode": "normal"}
        assert ask("list_commands") == [] and ask("get_state")["integration"] == "off"
        assert ask("run_command", {"input": "x", "timeout_ms": 50})["finished_by"] == "prompt"
        for method in ("get_command", "get_command_output"):
            asked.add(method)
            assert client.fail(method, {"id": 1}) == "command_not_found"
        assert ask("subscribe", {"events": ["lines"]}) == {"events": ["lines"]}
        assert ask("unsubscribe") == {"events": []}
        assert asked == {name for name, method in METHODS.items() if not method.server_only}


def test_commands_of_a_shell_are_run_told_and_read(server: RunningServer, open_session: Open) -> None:
    name = open_session("bash --norc")
    with talk(server, f"/sessions/{name}/ws/json") as client:
        client.ask("subscribe", {"events": ["commands"]})
        done = client.ask("run_command", {"input": "seq 1 3; false", "format": "plain"})
        assert (done["finished_by"], done["exit_code"], done["output"]) == ("command", 1, "1\n2\n3")
        started = client.event("command_started")["command"]
        assert (started["id"], started["command"]) == (1, "seq 1 3; false")
        finished = client.event("command_finished")["command"]
        assert (finished["id"], finished["exit_code"], finished["state"]) == (1, 1, "finished")
        assert client.ask("get_command", {"id": 1}) == finished == client.ask("list_commands")[0]
        page = client.ask("get_command_output", {"id": 1, "regex": "[23]"})
        assert (page["lines"], page["numbers"], page["total"]) == (["2", "3"], [1, 2], 3)
        assert client.ask("await_idle", {"prompt": True})["ended_by"] == "prompt"
        assert client.ask("get_state")["at_prompt"] == "yes"
        running = client.send("run_command", {"input": "sleep 0.5; echo late"})
        assert client.ask("await_idle", {"timeout_ms": 20, "format": "plain"})["ended_by"] == "quiet"
        assert client.answer(running)["result"]["output"] == "late"


def test_bad_requests_get_a_clear_answer_and_the_socket_lives_on(server: RunningServer, open_session: Open) -> None:
    with talk(server, f"/sessions/{open_session('cat')}/ws/json") as client:
        for raw in (
            "",
            "{",
            "[]",
            "null",
            "7",
            '"text"',
            "[" * 5000,
            '{"id": NaN, "method": "get_focus"}',
            '{"id": 1e400, "method": "get_focus"}',
            b"\xff\xfe",
        ):
            client.connection.send(raw)
            assert client.receive()["error"]["code"] == "invalid_request"
        for body, code in (
            ({"id": 1}, "invalid_request"),
            ({"id": 1, "method": 5}, "invalid_request"),
            ({"id": 1, "method": "get_screen", "params": []}, "invalid_request"),
            ({"id": 1, "method": "get_screen", "params": {"format": "fancy"}}, "invalid_format"),
            ({"id": 1, "method": "subscribe", "params": {"events": ["lines"], "format": 3}}, "invalid_format"),
            ({"id": 1, "method": "get_screen", "params": {"x": 1}}, "invalid_request"),
            ({"id": 1, "method": "get_screen", "extra": 1}, "invalid_request"),
            ({"id": 1, "method": "no_such_method"}, "unknown_method"),
            ({"id": 1, "method": "kill_session"}, "unknown_method"),
            ({"id": 1, "method": "create_overlay", "params": {"x": 1}}, "invalid_overlay"),
            ({"id": 1, "method": "get_panel", "params": {"id": "none"}}, "panel_not_found"),
            ({"id": 1, "method": "exit_alt_screen"}, "not_in_alt_screen"),
            ({"id": 1, "method": "send_input", "params": {"data": "*", "encoding": "base64"}}, "invalid_request"),
            ({"id": 1, "method": "subscribe", "params": {"events": ["weather"]}}, "invalid_request"),
            ({"id": 1, "method": "await_idle", "params": {}}, "invalid_request"),
            ({"id": 1, "method": "get_focus", "session": "another"}, "invalid_request"),
        ):
            client.connection.send(json.dumps(body))
            answer = client.receive()
            assert (answer["id"], answer["error"]["code"]) == (1, code), (body, answer)
        client.connection.send(json.dumps({"method": "get_focus"}))
        assert client.receive() == {"method": "get_focus", "result": {"focused": None}}
        for number in ("text", 7, 1.5, None):
            client.connection.send(json.dumps({"id": number, "method": "get_focus"}))
            assert client.receive()["id"] == number


def test_a_message_that_is_too_large_ends_the_socket_with_the_reason(places: Places) -> None:
    with running_server(places, environ={"WSH_SERVER_MAX_FRAME_BYTES": "4096"}) as server:
        with talk(server, "/ws/json") as client:
            client.connection.send("x" * 5000)
            with pytest.raises(ConnectionClosed) as caught:
                client.receive()
            assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009


def test_waits_run_beside_other_requests_and_a_newer_one_replaces_an_older(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("sh -c 'while :; do echo x; sleep 0.02; done'")
    with talk(server, f"/sessions/{name}/ws/json") as client:
        first = client.send("await_idle", {"timeout_ms": 5000, "max_wait_ms": 60000})
        assert client.ask("get_screen_mode") == {"mode": "normal"}
        second = client.send("await_idle", {"timeout_ms": 5000, "max_wait_ms": 300})
        answers = {(answer := client.receive())["id"]: answer for _ in range(2)}
        assert answers[first]["error"]["code"] == "idle_superseded"
        assert answers[second]["error"]["code"] == "idle_timeout"


def test_a_wait_that_is_replaced_before_it_began_is_answered_too(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    with talk(server, f"/sessions/{name}/ws/json") as client:
        sent = [client.send("await_idle", {"timeout_ms": 60000, "fresh": True}) for _ in range(20)]
        sent.append(client.send("await_idle", {"timeout_ms": 1}))
        answers = {(answer := client.receive())["id"]: answer for _ in sent}
        codes = [answers[number].get("error", {}).get("code") for number in sent]
        assert codes == ["idle_superseded"] * 20 + [None]


# events


def test_a_mirror_kept_by_differences_ends_with_the_same_screen(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    with talk(server, f"/sessions/{name}/ws/json") as client:
        client.ask("subscribe", {"events": ["diffs", "cursor", "lines"], "interval_ms": 20})
        script = (
            "for i in $(seq 300); do printf '\\033[3%dmline %d\\033[0m\\n' $((i%8)) $i; done; clear; seq 5; "
            "printf '\\033[?1049h\\033[5;5Hinside'; sleep 0.1; printf '\\033[?1049l'; echo all-$((1+1))-over\r"
        )
        client.ask("send_input", {"data": script})
        client.ask("await_idle", {"text": "all-2-over", "max_wait_ms": 60_000})
        client.ask("await_idle", {"timeout_ms": 300, "fresh": True})

        def is_same() -> bool:
            mirror = Mirror()
            truth = client.ask("get_screen")
            for event in client.events:
                mirror.take(event)
            return bool(mirror.screen == truth)

        # On a busy machine news comes less often.
        wait_until(is_same, "a mirror that shows what the screen does")

        def has_all_kinds() -> bool:
            # It may have been so busy that all of the above came as one whole screen.
            client.ask("send_input", {"data": "echo once more\r"})
            client.ask("await_idle", {"timeout_ms": 100, "fresh": True})
            return {"sync", "diff", "cursor", "line", "reset"} <= {event["event"] for event in client.events}

        wait_until(has_all_kinds, "news of every kind", seen=lambda: {event["event"] for event in client.events})
        wait_until(is_same, "a mirror that shows what the screen does after differences")


def test_the_sync_comes_right_after_the_answer_and_a_new_subscription_replaces_the_old(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("cat")
    settle(server, name)
    with talk(server, f"/sessions/{name}/ws/json") as client:
        client.send("subscribe", {"events": ["lines"], "format": "plain", "interval_ms": 10})
        assert client.receive()["result"] == {"events": ["lines"]}
        sync = client.receive()
        assert sync["event"] == "sync" and sync["screen"]["lines"][0] == "" and "scrollback_lines" in sync
        client.ask("subscribe", {"events": ["cursor"], "format": "plain", "interval_ms": 10})
        client.ask("send_input", {"data": "abc"})
        cursor = client.event("cursor")
        assert (cursor["row"], cursor["col"], cursor["visible"]) == (0, 3, True)
        client.ask("unsubscribe")
        client.events.clear()
        client.ask("send_input", {"data": "def"})
        client.ask("await_idle", {"timeout_ms": 100, "fresh": True})
        assert not client.events


def test_exit_mode_title_bell_idle_and_running_are_told(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    with talk(server, f"/sessions/{name}/ws/json") as client:
        events = ["mode", "activity", "exit"]
        client.ask("subscribe", {"events": events, "interval_ms": 10, "idle_timeout_ms": 150, "format": "plain"})
        assert client.event("idle")["screen"]["rows"] == 24
        client.ask("send_input", {"data": "printf '\\033]2;named\\007\\007\\033[?1049h'\r"})
        assert client.event("running")["generation"] > 0
        assert client.event("title")["title"] == "named"
        client.ask("send_input", {"data": "printf '\\a'; sleep 0.05; exit 4\r"})
        assert client.event("exit")["exit_code"] == 4


def test_elements_and_input_mode_are_told(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    with talk(server, f"/sessions/{name}/ws/json") as client:
        client.ask("subscribe", {"events": ["overlay", "input"]})
        made = server.request("POST", f"/sessions/{name}/overlay", OVERLAY).json["id"]
        told = client.event("overlay")
        assert (told["action"], told["id"], told["overlay"]["x"]) == ("created", made, 2)
        server.request("POST", f"/sessions/{name}/panel", PANEL)
        assert client.event("panel")["panel"]["visible"] is True
        server.request("DELETE", f"/sessions/{name}/overlay")
        assert client.event("overlay")["action"] == "removed"
        server.request("POST", f"/sessions/{name}/input/capture")
        assert client.event("input_mode")["mode"] == "capture"
        server.request("POST", f"/sessions/{name}/input/release")
        assert client.event("input_mode")["mode"] == "passthrough"


def test_captured_keys_become_events_and_the_capture_ends_with_its_owner(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("cat")
    settle(server, name)
    agent = TokenFile(server.places.tokens).add_agent("captor")
    person = connect(f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers=server.auth)
    with person:
        with talk(server, f"/sessions/{name}/ws/json", token=agent) as client:
            client.ask("subscribe", {"events": ["input"]})
            panel = client.ask("create_panel", {**PANEL, "focusable": True})["id"]
            client.ask("capture_input")
            client.ask("focus", {"id": panel})
            person.send(b"\x1b[Aq")
            keys = [client.event("input"), client.event("input")]
            assert [(k["raw"], k["key"], k["target"]) for k in keys] == [("\x1b[A", "up", panel), ("q", "q", panel)]
            assert keys[0]["viewer"]
            client.ask("send_input", {"data": "agents pass\r"})
        mode = f"/sessions/{name}/input/mode"
        wait_until(lambda: server.get(mode) == {"mode": "passthrough"}, "the end of the lease")
        person.send(b"people too\r")
        wait_for_text(server, name, "people too")
        lines = server.get(f"/sessions/{name}/screen?format=plain")["lines"]
        assert "agents pass" in lines and not any(line.startswith("q") for line in lines)


def test_a_killed_session_closes_its_sockets_and_a_detach_sends_clients_away(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("cat")
    for action in (("POST", f"/sessions/{name}/detach"), ("DELETE", f"/sessions/{name}")):
        with talk(server, f"/sessions/{name}/ws/json") as client:
            raw = connect(f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers=server.auth)
            with raw:
                raw.recv()
                assert server.request(*action).status == 204
                with pytest.raises(ConnectionClosed) as caught:
                    client.receive()
                assert caught.value.rcvd is not None and caught.value.rcvd.code == 1000
                for _ in raw:
                    pass


def test_the_end_of_the_server_closes_sockets_with_1012(places: Places) -> None:
    with running_server(places) as server:
        with talk(server, "/ws/json") as client:
            server.stop()
            with pytest.raises(ConnectionClosed) as caught:
                client.receive()
            assert caught.value.rcvd is not None and caught.value.rcvd.code == 1012


# the server's socket


def test_the_servers_socket_does_everything_with_a_session_named(server: RunningServer) -> None:
    with talk(server, "/ws/json") as client:
        made = client.ask("create_session", {"name": "ws-a", "command": "cat", "tags": ["x"]})
        assert made["name"] == "ws-a" and made["running"]
        assert client.event("session_created")["name"] == "ws-a"
        assert [s["name"] for s in client.ask("list_sessions", {"tag": "x"})] == ["ws-a"]
        assert client.fail("get_screen") == "session_required"
        assert client.fail("get_screen", session="nobody") == "session_not_found"
        assert client.ask("get_screen", session="ws-a")["rows"] == 24
        client.ask("subscribe", {"events": ["lines"], "format": "plain", "interval_ms": 10}, session="ws-a")
        assert client.event("sync")["session"] == "ws-a"
        client.ask("send_input", {"data": "hello\r"}, session="ws-a")
        assert client.event("line", lambda e: e["line"] == "hello")["session"] == "ws-a"
        client.ask("update_tags", {"add": ["y"], "remove": ["x"]}, session="ws-a")
        tags = client.event("session_tags_changed")
        assert (tags["tags"], tags["added"], tags["removed"]) == (["y"], ["y"], ["x"])
        assert client.ask("rename_session", {"new_name": "ws-b"}, session="ws-a")["name"] == "ws-b"
        renamed = client.event("session_renamed")
        assert (renamed["old_name"], renamed["new_name"]) == ("ws-a", "ws-b")
        changed = client.ask("update_session", {"name": "ws-c", "add_tags": ["z"]}, session="ws-b")
        assert (changed["name"], changed["tags"]) == ("ws-c", ["y", "z"])
        assert client.ask("detach_session", session="ws-c") == {"detached": 0}
        assert client.ask("kill_session", {"name": "ws-c"}) == {}
        assert client.event("session_destroyed")["name"] == "ws-c"
        assert client.ask("set_server_mode", {"persistent": True}) == {"persistent": True}
        assert client.fail("set_server_mode", {"persistent": None}) == "invalid_request"
        assert client.fail("create_session", {"name": "a b"}) == "invalid_session_name"
        assert client.fail("create_session", {"name": "a/b"}) == "host_not_found"


def test_a_parameter_that_is_null_is_never_an_error_of_ours(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    with talk(server, "/ws/json") as client:
        for method in METHODS.values():
            for field in method.params.model_fields:
                asked = open_session("cat") if method.name == "kill_session" else name
                answer = client.answer(client.send(method.name, {field: None}, session=asked))
                assert answer.get("error", {}).get("code") != "internal_error", (field, answer)
                if method.name == "create_session" and "result" in answer:
                    client.ask("kill_session", session=answer["result"]["name"])


def test_one_socket_hears_several_sessions(server: RunningServer, open_session: Open) -> None:
    names = [open_session("cat") for _ in range(3)]
    with talk(server, "/ws/json") as client:
        for name in names:
            client.ask("subscribe", {"events": ["lines"], "format": "plain", "interval_ms": 10}, session=name)
        for name in names:
            type_in(server, name, f"for {name}\r")
        heard: set[str] = set()
        while len(heard) < 3:
            event = client.event("line", lambda e: e["line"].startswith("for "))
            assert event["line"] == f"for {event['session']}"
            heard.add(event["session"])


# what a hostile or broken client can do


def drain(client: Talk) -> None:
    """Read what has come: a client that does not read would keep the server from reading its good-bye."""
    while True:
        try:
            client.connection.recv(timeout=0.02)
        except TimeoutError:
            return


@pytest.mark.torture
def test_fuzzed_messages_are_answered_and_nobody_else_notices(server: RunningServer, torture: bool) -> None:
    count = 10_000 if torture else 1_000
    rng = random.Random(7)
    methods = [*METHODS, "x", "", "__class__"]
    values: list[Any] = [None, True, -1, 2**70, 1.5, "", "x" * 300, "\ud800", [], {}, [[]], {"id": "a"}, "a", ["lines"]]
    fields = (
        "id session name format events spans writes x y width height z text data encoding rows cols timeout_ms".split()
    )

    def message() -> str | bytes:
        kind = rng.random()
        if kind < 0.2:
            return "".join(rng.choice(string.printable) for _ in range(rng.randrange(40)))
        if kind < 0.3:
            return rng.randbytes(rng.randrange(40))
        params = {rng.choice(fields): rng.choice(values) for _ in range(rng.randrange(5))}
        body = {
            "id": rng.choice(values),
            "method": rng.choice(methods),
            "params": rng.choice([params, params, *values]),
        }
        if rng.random() < 0.5:
            body["session"] = rng.choice(["fuzz", "fuzz", *values])
        text = json.dumps(body)
        return text[: rng.randrange(len(text))] if kind > 0.95 else text

    server.request("POST", "/sessions", {"name": "fuzz", "command": "cat"})
    with talk(server, "/ws/json") as client:
        for number in range(count):
            client.connection.send(message())
            if number % 50 == 0:
                assert server.request("GET", "/health").status == 200
                drain(client)
        drain(client)
    for info in server.get("/sessions"):
        if info["name"] == "fuzz" or "-" in info["name"]:
            server.request("DELETE", f"/sessions/{info['name']}")
    with talk(server, "/ws/json") as client:
        assert isinstance(client.ask("list_sessions"), list)


def test_a_client_that_does_not_read_costs_bounded_memory_and_is_repaired(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("sh -c 'read x; yes abcdefghijklmnopqrstuvwxyz | head -c 16000000; sleep 60'")
    slow = [
        connect(f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers=server.auth, max_size=None, max_queue=1)
        for _ in range(3)
    ]
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    type_in(server, name, "\r")
    wait_until(lambda: server.get(f"/sessions/{name}")["last_activity_ms"] > 300, "the end of the flood")
    assert process.memory_info().rss - before < 60_000_000
    truth = server.get(f"/sessions/{name}/screen?format=plain")["lines"]
    for connection in slow:
        received = 0
        with Terminal(24, 80) as mine, connection:

            def is_repaired(connection: ClientConnection = connection, mine: Terminal = mine) -> bool:
                nonlocal received
                with suppress(TimeoutError):
                    while True:
                        data = connection.recv(timeout=0.1)
                        assert isinstance(data, bytes)
                        received += len(data)
                        mine.feed(data)
                return bool(mine.screen(False).lines == truth)

            wait_until(is_repaired, "the screen of a client that reads again")
        assert received < 14_000_000, "a client that fell behind was fed everything late"


def test_killing_flooding_sessions_under_their_subscribers_breaks_nothing(places: Places) -> None:
    with running_server(places) as server:
        with talk(server, "/ws/json") as client:
            for number in range(3):
                name = f"f{number}"
                server.request("POST", "/sessions", {"name": name, "command": "yes"})
                wanted = {
                    "events": ["lines", "diffs", "cursor", "activity", "exit"],
                    "interval_ms": 5,
                    "idle_timeout_ms": 5,
                }
                client.ask("subscribe", wanted, session=name)
                raw = connect(f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers=server.auth, max_size=None)
                with raw:
                    raw.recv()
                    assert server.request("DELETE", f"/sessions/{name}").status == 204
                    for _ in raw:
                        pass
            assert client.ask("list_sessions") == []
        time.sleep(0.2)
        server.stop()
        assert "Traceback" not in server.output.read_text()
