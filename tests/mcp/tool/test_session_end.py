"""A session that ends under a call: an operational failure that carries everything the call found out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.mcp.host import HttpHost, StdioHost, failure, structured
from tests.support.mcp.live import KINDS, live_server, open_host
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until

Host = HttpHost | StdioHost
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with live_server(tmp_path_factory.mktemp("ends")) as running:
        yield running


@pytest.fixture(scope="module", params=KINDS)
def host(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[Host]:
    with open_host(server, request.param) as opened:
        yield opened


@pytest.fixture
def session(host: Host) -> Iterator[str]:
    name: str = call(host, "wsh_create_session", command="bash --norc")["session"]
    call(host, "wsh_await_quiesce", session=name, until=["prompt"], max_wait_ms=60_000)
    yield name
    if name in [entry["name"] for entry in call(host, "wsh_list_sessions")["sessions"]]:
        call(host, "wsh_manage_session", session=name, action="kill")


def call(host: Host, tool: str, /, **arguments: Any) -> Json:
    return structured(host.call(tool, arguments))


def fail(host: Host, tool: str, /, **arguments: Any) -> Json:
    return failure(host.call(tool, arguments))


def meanwhile(server: RunningServer, work: Callable[[HttpHost], object]) -> threading.Thread:
    """`work` with a client of its own, beside the call of the test."""

    def act() -> None:
        with HttpHost(f"{server.url}/mcp", server.token) as other:
            other.initialize()
            work(other)

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_run_that_ends_the_shell_fails_and_says_all_it_knows(host: Host, session: str) -> None:
    told = fail(host, "wsh_run_command", session=session, input="echo last words; exit 3", format="plain")
    assert (told["code"], told["reason"], told["exit_code"]) == ("SESSION_EXITED", "session_exited", 3)
    assert (told["finished_by"], told["running"], told["session"]) == ("exit", False, session)
    assert "last words" in told["output"]
    assert "last words" in told["screen"]["lines"]
    assert {"generation", "title", "cwd", "message", "hint"} <= set(told)


def test_a_plain_exit_fails_with_its_status(host: Host, session: str) -> None:
    told = fail(host, "wsh_run_command", session=session, input="exit 3")
    assert (told["code"], told["exit_code"], told["finished_by"]) == ("SESSION_EXITED", 3, "exit")


def test_a_wait_that_did_not_ask_for_the_exit_fails_with_it(host: Host, session: str) -> None:
    for wanted in ({}, {"text": "never printed"}, {"until": ["input_wanted", "command"]}):
        made = call(host, "wsh_create_session", command="sh -c 'sleep 0.2; exit 5'")["session"]
        told = fail(host, "wsh_await_quiesce", session=made, timeout_ms=60_000, max_wait_ms=120_000, **wanted)
        assert (told["code"], told["ended_by"], told["exit_code"], told["running"]) == (
            "SESSION_EXITED",
            "exit",
            5,
            False,
        ), wanted
        assert "generation" in told
        call(host, "wsh_manage_session", session=made, action="kill")


def test_a_wait_that_asked_for_the_exit_gets_it_as_its_answer(host: Host, session: str) -> None:
    call(host, "wsh_send_input", session=session, input="exit 4\r")
    told = call(host, "wsh_await_quiesce", session=session, until=["exit"], max_wait_ms=60_000)
    assert (told["ended_by"], told["exit_code"], told["running"]) == ("exit", 4, False)
    late = fail(host, "wsh_await_quiesce", session=session)
    assert (late["code"], late["exit_code"]) == ("SESSION_EXITED", 4)


def test_what_was_printed_before_the_end_still_answers_a_wait_for_it(host: Host, session: str) -> None:
    call(host, "wsh_send_input", session=session, input="echo found-$((40+2)); exit\r")
    call(host, "wsh_await_quiesce", session=session, until=["exit"], max_wait_ms=60_000)
    told = call(host, "wsh_await_quiesce", session=session, text="found-42", max_wait_ms=60_000)
    assert (told["ended_by"], told["matched"]) == ("text", "found-42")


def test_a_session_that_is_killed_under_a_run_fails_it(server: RunningServer, host: Host, session: str) -> None:
    def kill(other: HttpHost) -> None:
        wait_until(lambda: "sleep" in "".join(read(other, session)), "the command's echo")
        call(other, "wsh_manage_session", session=session, action="kill")

    killer = meanwhile(server, kill)
    told = fail(host, "wsh_run_command", session=session, input="sleep 600", max_wait_ms=120_000)
    killer.join()
    assert (told["code"], told["session"], told["running"]) == ("SESSION_EXITED", session, False)


def test_a_session_that_is_killed_under_a_wait_fails_it_alike(server: RunningServer, host: Host) -> None:
    def try_once() -> Json:
        name = call(host, "wsh_create_session", command="cat")["session"]
        killer = meanwhile(server, lambda other: call(other, "wsh_manage_session", session=name, action="kill"))
        answer = host.call("wsh_await_quiesce", {"session": name, "timeout_ms": 120_000, "max_wait_ms": 120_000})
        killer.join()
        return answer

    # Nothing shows that a call waits; where the kill came first, there was none.
    answers = (try_once() for _ in range(100))
    told = failure(next(answer for answer in answers if "result" in answer))
    assert (told["code"], told["running"]) == ("SESSION_EXITED", False)


def read(host: Host, session: str) -> list[str]:
    lines: list[str] = call(host, "wsh_get_screen", session=session, format="plain")["lines"]
    return lines


def test_a_wait_for_keys_ends_with_the_session(server: RunningServer, host: Host, session: str) -> None:
    call(host, "wsh_input_mode", session=session, mode="capture")
    ender = meanwhile(server, lambda other: call(other, "wsh_send_input", session=session, input="exit 6\r"))
    told = fail(host, "wsh_input_mode", session=session, wait_ms=120_000)
    ender.join()
    assert (told["code"], told["exit_code"], told["mode"]) == ("SESSION_EXITED", 6, "capture")


def test_a_wait_for_keys_of_a_session_that_has_ended_ends_at_once(host: Host, session: str) -> None:
    call(host, "wsh_input_mode", session=session, mode="capture")
    call(host, "wsh_send_input", session=session, input="exit 7\r")
    call(host, "wsh_await_quiesce", session=session, until=["exit"], max_wait_ms=60_000)
    told = fail(host, "wsh_input_mode", session=session, wait_ms=300_000)
    assert (told["code"], told["exit_code"], told["mode"]) == ("SESSION_EXITED", 7, "capture")
    assert call(host, "wsh_input_mode", session=session)["mode"] == "capture"


def test_a_wait_for_keys_without_a_capture_is_refused(host: Host, session: str) -> None:
    for more in ({}, {"mode": "release"}, {"unfocus": True}):
        error = host.call("wsh_input_mode", {"session": session, "wait_ms": 50, **more})["error"]
        assert error["code"] == -32602 and "wait_ms" in error["message"], more
    assert call(host, "wsh_input_mode", session=session)["mode"] == "passthrough"
    assert call(host, "wsh_input_mode", session=session, mode="capture", wait_ms=50)["captured_by_you"] is True


def test_a_capture_that_somebody_took_back_is_told_and_not_refused(
    server: RunningServer, host: Host, session: str
) -> None:
    call(host, "wsh_input_mode", session=session, mode="capture")
    with HttpHost(f"{server.url}/mcp", server.token) as owner:
        owner.initialize()
        call(owner, "wsh_input_mode", session=session, mode="release")
    told = call(host, "wsh_input_mode", session=session, wait_ms=50)
    assert (told["mode"], told["captured_by_you"]) == ("passthrough", False)
    error = host.call("wsh_input_mode", {"session": session, "wait_ms": 50})["error"]
    assert error["code"] == -32602


@pytest.mark.parametrize("kind", ["overlay", "panel"])
def test_a_list_of_elements_ignores_every_other_field(host: Host, session: str, kind: str) -> None:
    spans = [{"text": "x"}]
    made = call(host, f"wsh_{kind}", session=session, spans=spans)["id"]
    for more in ({"id": "nobody"}, {"height": 3, "z": 9, "spans": spans, "background": "red"}, {"id": made, "z": 77}):
        listed = call(host, f"wsh_{kind}", session=session, list=True, **more)[f"{kind}s"]
        assert [entry["id"] for entry in listed] == [made] and listed[0]["z"] != 77, more


@pytest.mark.torture
def test_the_caller_hears_of_a_changed_list_before_its_answer(server: RunningServer, torture: bool) -> None:
    """Clients that close when they have their answer choke on what comes after it."""
    changed = "notifications/resources/list_changed"
    with open_host(server, "stdio") as host:
        assert isinstance(host, StdioHost)
        for _ in range(20 if torture else 5):
            host.seen.clear()
            made = call(host, "wsh_create_session", command="cat")["session"]
            assert [m["method"] for m in host.seen].count(changed) == 1, host.seen
            host.seen.clear()
            call(host, "wsh_manage_session", session=made, action="kill")
            assert [m["method"] for m in host.seen].count(changed) == 1, host.seen
        host.seen.clear()
        for _ in range(5):
            call(host, "wsh_list_sessions")
        assert changed not in [m["method"] for m in host.seen]


@pytest.mark.parametrize(("tool", "more"), [("execute_command", {"command": "true"}), ("workspace_status", {})])
def test_a_timeout_is_taken_in_both_spellings_and_once(host: Host, tool: str, more: Json) -> None:
    for spelling in ({"timeoutMs": 0}, {"timeout_ms": 0}):
        assert fail(host, tool, **more, **spelling)["code"] == "INVALID_REQUEST"
    both = fail(host, tool, **more, timeoutMs=50_000, timeout_ms=50_000)
    assert both["code"] == "INVALID_REQUEST" and "timeout" in both["message"]
    if tool == "workspace_status":
        assert "git" in call(host, tool, timeout_ms=50_000)


def test_every_property_of_every_schema_has_a_type(host: Host) -> None:
    """Some clients drop, or refuse, what has none."""
    untyped: list[str] = []

    def look(schema: Any, where: str) -> None:
        for name, entry in schema.get("properties", {}).items():
            if "type" not in entry:
                untyped.append(f"{where}.{name}")
            look(entry, f"{where}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                look(schema[key], f"{where}[]")
                if "type" not in schema[key] and "anyOf" not in schema[key]:
                    untyped.append(f"{where}[]")

    for tool in host.request("tools/list")["result"]["tools"]:
        look(tool["inputSchema"], tool["name"])
        look(tool.get("outputSchema", {}), f"{tool['name']} ->")
    assert not untyped
