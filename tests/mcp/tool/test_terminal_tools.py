"""The fourteen tools on real sessions, through every transport and both protocol eras."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.mcp.host import HttpHost, StdioHost, failure, structured
from tests.support.mcp.live import KINDS, live_server, open_host
from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_until
from wsh.mcp.tool.terminal import spell_run

Host = HttpHost | StdioHost
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with live_server(tmp_path_factory.mktemp("tools")) as running:
        yield running


@pytest.fixture(scope="module", params=KINDS)
def host(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[Host]:
    with open_host(server, request.param) as opened:
        yield opened


@pytest.fixture
def session(host: Host) -> Iterator[str]:
    """A bash of this test's own, with its first prompt shown."""
    name = open_session(host)
    yield name
    host.call("wsh_manage_session", {"session": name, "action": "kill"})  # if it is still there


@pytest.fixture(scope="module")
def untouched(server: RunningServer) -> str:
    """A bash for the many tests that leave it as it is."""
    made = server.request("POST", "/sessions", {"name": "untouched", "command": "bash --norc"})
    assert made.status == 201, made
    return "untouched"


def open_session(host: Host, **more: Any) -> str:
    made = call(host, "wsh_create_session", **{"command": "bash --norc", **more})
    name: str = made["session"]
    if "command" not in more:
        call(host, "wsh_await_quiesce", session=name, until=["prompt"], max_wait_ms=60_000)
    return name


def call(host: Host, tool: str, /, **arguments: Any) -> Json:
    return structured(host.call(tool, arguments))


def fail(host: Host, tool: str, /, **arguments: Any) -> Json:
    return failure(host.call(tool, arguments))


def refuse(host: Host, tool: str, /, **arguments: Any) -> Json:
    error: Json = host.call(tool, arguments)["error"]
    assert error["code"] == -32602
    return error


def list_names(host: Host) -> list[str]:
    return [entry["name"] for entry in call(host, "wsh_list_sessions")["sessions"]]


def run(host: Host, session: str, command: str, **more: Any) -> Json:
    return call(host, "wsh_run_command", session=session, input=command, format="plain", **more)


def read(host: Host, session: str) -> list[str]:
    lines: list[str] = call(host, "wsh_get_screen", session=session, format="plain")["lines"]
    return lines


# the life of a session


def test_a_session_is_listed_until_it_is_killed(host: Host) -> None:
    name = open_session(host)
    entry = next(e for e in call(host, "wsh_list_sessions")["sessions"] if e["name"] == name)
    assert entry["running"] is True and entry["rows"] == 24 and entry["cols"] == 80
    assert call(host, "wsh_manage_session", session=name, action="kill") == {"success": True}
    assert name not in list_names(host)
    assert not os.path.exists(f"/proc/{entry['pid']}")


def test_a_list_is_an_array_as_text(host: Host, untouched: str) -> None:
    result = host.call("wsh_list_sessions")["result"]
    assert isinstance(json.loads(result["content"][0]["text"]), list)


def test_every_parameter_of_a_new_session_takes_effect(host: Host, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("cwd"))
    made = call(
        host,
        "wsh_create_session",
        name="made-to-order",
        command="sh -c 'pwd; echo $COLOUR; stty size; cat'",
        rows=10,
        cols=40,
        cwd=folder,
        env={"COLOUR": "teal"},
        tags=["b", "a"],
    )
    try:
        assert (made["session"], made["rows"], made["cols"], made["tags"]) == ("made-to-order", 10, 40, ["a", "b"])
        call(host, "wsh_await_quiesce", session="made-to-order", until=["input_wanted"])
        text = "".join(line.ljust(40) for line in read(host, "made-to-order")).replace(" ", "")
        assert f"{folder}teal1040" in text
        tagged = call(host, "wsh_list_sessions", tag="a")["sessions"]
        assert [entry["name"] for entry in tagged] == ["made-to-order"]
    finally:
        call(host, "wsh_manage_session", session="made-to-order", action="kill")


def test_a_taken_name_is_refused(host: Host, untouched: str) -> None:
    error = refuse(host, "wsh_create_session", name=untouched)
    assert untouched in error["message"] and error["data"]["reason"] == "session_name_conflict"


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "no/slash"},
        {"name": ""},
        {"rows": 0},
        {"cols": 1001},
        {"rows": "24"},
        {"command": "no-such-program-anywhere"},
        {"cwd": "/no/such/folder"},
        {"env": {"A=B": "c"}},
        {"env": {"A": 1}},
        {"tags": ["a b"]},
        {"colour": "red"},
    ],
)
def test_a_session_that_cannot_be_is_refused_and_nothing_is_left(host: Host, bad: Json) -> None:
    before = list_names(host)
    refuse(host, "wsh_create_session", **bad)
    assert list_names(host) == before


def test_a_renamed_session_answers_to_its_new_name_alone(host: Host, session: str) -> None:
    call(host, "wsh_manage_session", session=session, action="rename", new_name="renamed")
    try:
        assert "renamed" in list_names(host)
        refuse(host, "wsh_get_screen", session=session)
        refuse(host, "wsh_manage_session", session="renamed", action="rename")
        refuse(host, "wsh_manage_session", session="renamed", action="kill", new_name="x")
    finally:
        call(host, "wsh_manage_session", session="renamed", action="rename", new_name=session)


def test_detach_leaves_the_program_running(host: Host, session: str) -> None:
    assert call(host, "wsh_manage_session", session=session, action="detach")["success"] is True
    assert call(host, "wsh_list_sessions", session=session)["running"] is True


def test_the_details_of_one_session_are_an_object(host: Host, untouched: str) -> None:
    entry = call(host, "wsh_list_sessions", session=untouched)
    assert entry["name"] == untouched and entry["command"] == "bash --norc" and entry["pid"] > 0
    refuse(host, "wsh_list_sessions", session="nobody")
    refuse(host, "wsh_list_sessions", session=untouched, tag="x")


# the loop


def test_a_command_comes_back_with_its_output_and_status(host: Host, session: str) -> None:
    ran = run(host, session, "echo hello")
    assert "hello" in ran["screen"]["lines"]
    assert (ran["output"], ran["exit_code"], ran["finished_by"]) == ("hello", 0, "command")
    assert {"lines", "cursor", "rows", "cols", "mode"} <= set(ran["screen"])
    assert isinstance(ran["generation"], int)


def test_a_slow_command_is_waited_for(host: Host, session: str) -> None:
    ran = run(host, session, "sleep 0.4; echo late", timeout_ms=100)
    assert "late" in ran["screen"]["lines"] and ran["output"] == "late"


def test_a_command_past_its_deadline_is_a_failed_result_and_goes_on(host: Host, session: str) -> None:
    payload = fail(
        host, "wsh_run_command", session=session, input="sleep 1; echo over", max_wait_ms=150, format="plain"
    )
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 150)
    assert payload["screen"]["lines"] and payload["hint"]
    ended = call(host, "wsh_await_quiesce", session=session, until=["command"], generation=payload["generation"])
    assert ended["ended_by"] == "command"
    assert "over" in read(host, session)


def test_a_failing_command_is_a_result(host: Host, session: str) -> None:
    assert run(host, session, "false")["exit_code"] == 1


def test_commands_one_after_another_each_show_their_own_screen(host: Host, session: str) -> None:
    for number in range(4):
        ran = run(host, session, f"clear; echo step-{number}")
        assert f"step-{number}" in ran["screen"]["lines"]
        assert ran["output"].endswith(f"step-{number}")


def test_enter_can_be_left_out(host: Host, session: str) -> None:
    ran = run(host, session, "echo not-ye", enter=False, timeout_ms=200)
    assert ran["finished_by"] in {"quiet", "prompt"} and ran.get("exit_code") is None
    refused = fail(host, "wsh_run_command", session=session, input="t")
    assert (refused["code"], refused["text"], refused["own"]) == ("LINE_IN_USE", "echo not-ye", True)
    call(host, "wsh_send_input", session=session, input="t\r")
    call(host, "wsh_await_quiesce", session=session, until=["command"])
    assert "not-yet" in read(host, session)


def test_long_output_is_cut_in_the_middle_and_says_so(host: Host, session: str) -> None:
    ran = run(host, session, "seq 1 2000", max_output_bytes=200)
    assert ran["output"].startswith("1\n") and ran["output"].endswith("2000")
    assert ran["output_omitted"]["bytes"] > 0 and len(ran["output"]) < 600
    uri = f"wsh://sessions/{session}/commands/{ran['command_id']}"
    whole = json.loads(host.request("resources/read", {"uri": uri})["result"]["contents"][0]["text"])
    assert whole["output"].split() == [str(n) for n in range(1, 2001)]


def test_output_that_is_cut_names_the_resource_of_a_command_only_where_there_is_one() -> None:
    cut = {"truncated": {"omitted_bytes": 9, "omitted_lines": 1}}
    assert spell_run(cut)["output_omitted"] == {"bytes": 9, "lines": 1, "read": "wsh_get_scrollback"}
    of_command = spell_run(cut | {"command_id": 7})["output_omitted"]
    assert isinstance(of_command, dict) and "resource of this command_id" in of_command["read"]


def test_starting_a_full_screen_program_is_a_success(host: Host, session: str) -> None:
    ran = run(host, session, "vim -u NONE -n", timeout_ms=300)
    assert ran["finished_by"] == "prompt" and ran["screen"]["mode"] == "alt"
    assert run(host, session, ":q!", timeout_ms=300)["screen"]["mode"] == "normal"


# single steps


def test_send_wait_and_read_give_what_run_command_gives(host: Host, session: str) -> None:
    run(host, session, "clear")
    sent = call(host, "wsh_send_input", session=session, input="echo by-steps\r")
    assert sent["success"] is True
    call(host, "wsh_await_quiesce", session=session, timeout_ms=300, generation=sent["generation"])
    # On a busy machine a shell may well be silent for so long between the echo and the output.
    wait_until(lambda: "by-steps" in read(host, session), "the output", seen=lambda: read(host, session))


def test_input_may_be_bytes_in_base64(host: Host, session: str) -> None:
    raw = base64.b64encode("echo b64-ünï\r".encode()).decode()
    sent = call(host, "wsh_send_input", session=session, input=raw, encoding="base64")
    call(host, "wsh_await_quiesce", session=session, until=["command"], generation=sent["generation"])
    assert "b64-ünï" in read(host, session)
    refuse(host, "wsh_send_input", session=session, input="###", encoding="base64")


def test_input_may_be_names_of_keys(host: Host, session: str) -> None:
    call(host, "wsh_send_input", session=session, input="sleep 60\r")
    call(host, "wsh_await_quiesce", session=session, timeout_ms=150)
    sent = call(host, "wsh_send_input", session=session, input="ctrl+c", encoding="keys")
    ended = call(host, "wsh_await_quiesce", session=session, until=["command"], generation=sent["generation"])
    assert ended["ended_by"] == "command"
    error = refuse(host, "wsh_send_input", session=session, input="ctrl+nonsense", encoding="keys")
    assert "key" in error["message"]
    refuse(host, "wsh_send_input", session=session, input="x", encoding="utf16")
    refuse(host, "wsh_send_input", session=session, input="")


def test_scrollback_is_paged_from_the_newest_line_back(host: Host, session: str) -> None:
    run(host, session, "clear; seq 1 300")
    first = call(host, "wsh_get_scrollback", session=session, limit=5, offset=1, format="plain")
    assert first["lines"] == ["296", "297", "298", "299", "300"]
    second = call(host, "wsh_get_scrollback", session=session, limit=5, offset=6, format="plain")
    assert second["lines"] == ["291", "292", "293", "294", "295"]
    assert first["total"] == second["total"] >= 300
    since = call(host, "wsh_get_scrollback", session=session, since_line=first["first_line"], limit=2, format="plain")
    assert since["lines"] == ["296", "297"]
    assert call(host, "wsh_get_scrollback", session=session, limit=0)["lines"] == []
    assert len(call(host, "wsh_get_scrollback", session=session)["lines"]) == 100
    refuse(host, "wsh_get_scrollback", session=session, offset=-1)
    refuse(host, "wsh_get_scrollback", session=session, offset=1, since_line=1)


def test_a_full_scrollback_keeps_ten_thousand_lines_and_counts_them_all(host: Host, session: str) -> None:
    run(host, session, "seq 1 12000", max_wait_ms=60_000)
    page = call(host, "wsh_get_scrollback", session=session, limit=100_000, format="plain")
    assert page["total"] == len(page["lines"])
    assert 10_000 <= page["total"] <= 10_100
    assert page["total_lines"] >= 12_000
    assert page["lines"][-2] == "12000"


def test_a_deadline_in_the_meta_is_that_of_a_run_and_of_a_wait(host: Host, session: str) -> None:
    meta = {"wsh/timeoutMs": 300}
    waiting = failure(host.call("wsh_await_quiesce", {"session": session, "text": "zzz"}, **meta))
    assert (waiting["code"], waiting["timeoutMs"]) == ("TOOL_TIMEOUT", 300)
    assert waiting["reason"], "the wait ended by itself; it was not stopped"
    run_it = {"session": session, "input": "sleep 3; echo over", "format": "plain"}
    payload = failure(host.call("wsh_run_command", run_it, **meta))
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 300)
    assert payload["screen"]["lines"] and payload["command_id"]


def test_a_wait_with_the_current_generation_waits_for_something_new(host: Host, session: str) -> None:
    call(host, "wsh_await_quiesce", session=session, until=["prompt"])
    now = call(host, "wsh_await_quiesce", session=session, timeout_ms=100)["generation"]
    payload = fail(host, "wsh_await_quiesce", session=session, timeout_ms=50, generation=now, max_wait_ms=250)
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 250)
    call(host, "wsh_send_input", session=session, input="echo news\r")
    newer = call(host, "wsh_await_quiesce", session=session, timeout_ms=100, generation=now)["generation"]
    assert newer > now
    assert "news" in read(host, session)


def test_a_wait_names_the_condition_that_ended_it(host: Host, session: str) -> None:
    call(host, "wsh_send_input", session=session, input="sleep 0.2; echo found-7; cat\r")
    ended = call(host, "wsh_await_quiesce", session=session, regex="found-[0-9]+")
    assert (ended["ended_by"], ended["matched"]) == ("regex", "found-7")
    ended = call(host, "wsh_await_quiesce", session=session, until=["input_wanted", "exit"])
    assert ended["ended_by"] == "input_wanted"
    call(host, "wsh_send_input", session=session, input="ctrl+d", encoding="keys")
    assert call(host, "wsh_await_quiesce", session=session, until=["prompt"])["ended_by"] == "prompt"
    call(host, "wsh_send_input", session=session, input="echo some text\r")
    assert call(host, "wsh_await_quiesce", session=session, text="some text")["ended_by"] == "text"
    refuse(host, "wsh_await_quiesce", session=session, until=["never"])
    refuse(host, "wsh_await_quiesce", session=session, regex="(")
    refuse(host, "wsh_await_quiesce", session=session, timeout_ms=-1)


def test_plain_lines_are_texts_and_styled_lines_are_spans(host: Host, session: str) -> None:
    run(host, session, "clear; printf '\\e[1;31mred\\e[0m plain\\n'")
    styled = call(host, "wsh_get_screen", session=session)
    line = next(line for line in styled["lines"] if line and line[0]["text"].startswith("red"))
    assert line[0]["fg"] == {"indexed": 1} and line[0]["bold"] is True
    assert "red plain" in read(host, session)
    assert styled["cursor"]["visible"] is True and styled["running"] is True
    refuse(host, "wsh_get_screen", session=session, format="html")


def test_unicode_goes_in_and_comes_out(host: Host, session: str) -> None:
    text = "ünïcödé 漢字 🙂 e\u0301"
    assert run(host, session, f"echo '{text}'")["output"] == text


def test_a_very_large_screen_is_well_formed(host: Host) -> None:
    name = open_session(host, rows=200, cols=500)
    try:
        call(host, "wsh_await_quiesce", session=name, until=["prompt"])
        run(host, name, "for i in $(seq 1 250); do printf '\\e[3%dm%0400d\\e[0m\\n' $((i % 8)) $i; done")
        screen = call(host, "wsh_get_screen", session=name)
        assert len(screen["lines"]) == 200
        assert sum(bool(line) for line in screen["lines"]) > 190
    finally:
        call(host, "wsh_manage_session", session=name, action="kill")


def test_a_session_whose_program_ended_stays_readable_and_takes_no_input(host: Host, session: str) -> None:
    fail(host, "wsh_run_command", session=session, input="echo last words; exit 3")
    assert "last words" in read(host, session)
    for tool, more in (("wsh_send_input", {"input": "x"}), ("wsh_run_command", {"input": "x"})):
        payload = fail(host, tool, session=session, **more)
        assert (payload["code"], payload["exit_code"]) == ("SESSION_EXITED", 3)
    ended = call(host, "wsh_await_quiesce", session=session, until=["exit"])
    assert ended["ended_by"] == "exit" and ended["exit_code"] == 3


def test_calls_on_one_session_at_once_do_not_mix(server: RunningServer, host: Host, session: str) -> None:
    outputs: list[str] = []

    def work(number: int) -> None:
        with open_host(server, "http") as mine:
            outputs.append(run(mine, session, f"echo start-{number}; sleep 0.05; echo end-{number}")["output"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outputs) == [f"start-{n}\nend-{n}" for n in range(4)]


def test_three_sessions_are_independent(host: Host) -> None:
    names = [open_session(host) for _ in range(3)]
    try:
        for name in names:
            run(host, name, f"clear; who={name}; echo i-am-$who")
        for name in names:
            lines = read(host, name)
            assert f"i-am-{name}" in lines
            assert not [line for line in lines for other in names if other != name and f"i-am-{other}" == line]
        call(host, "wsh_manage_session", session=names[0], action="kill")
        assert names[0] not in list_names(host)
        assert run(host, names[1], "echo $who")["output"] == names[1]
    finally:
        for name in names[1:]:
            call(host, "wsh_manage_session", session=name, action="kill")


# overlays and panels


def test_an_overlay_is_made_listed_changed_and_removed(host: Host, session: str) -> None:
    made = call(host, "wsh_overlay", session=session, x=2, y=3, z=9, width=20, height=2, background="blue",
                spans=[{"text": "one", "fg": "#ff0000", "bold": True}])  # fmt: skip
    assert (made["x"], made["y"], made["z"], made["width"], made["height"]) == (2, 3, 9, 20, 2)
    assert made["background"] == {"indexed": 4} and made["visible"] is True
    (listed,) = call(host, "wsh_overlay", session=session, list=True)["overlays"]
    assert listed == made
    changed = call(host, "wsh_overlay", session=session, id=made["id"], spans=[{"text": "two"}], x=5, y=6, z=1)
    assert changed["spans"] == [{"text": "two"}] and (changed["x"], changed["y"], changed["z"]) == (5, 6, 1)
    assert (changed["width"], changed["height"]) == (20, 2), "what was not given stays"
    assert call(host, "wsh_remove_overlay", session=session, id=made["id"]) == {"success": True}
    assert call(host, "wsh_overlay", session=session, list=True)["overlays"] == []


def test_an_overlay_without_a_size_is_as_large_as_its_text(host: Host, session: str) -> None:
    made = call(host, "wsh_overlay", session=session, spans=[{"text": "漢字\nlonger"}])
    assert (made["x"], made["y"], made["width"], made["height"]) == (0, 0, 6, 2)
    call(host, "wsh_remove_overlay", session=session)


@pytest.mark.parametrize(("tool", "many"), [("wsh_overlay", "overlays"), ("wsh_panel", "panels")])
def test_one_element_is_removed_by_id_and_all_without(host: Host, session: str, tool: str, many: str) -> None:
    ids = [call(host, tool, session=session, spans=[{"text": str(n)}])["id"] for n in range(3)]
    remove = tool.replace("wsh_", "wsh_remove_")
    call(host, remove, session=session, id=ids[1])
    assert [e["id"] for e in call(host, tool, session=session, list=True)[many]] == [ids[0], ids[2]]
    assert refuse(host, remove, session=session, id=ids[1])["data"]["code"] == "NOT_FOUND"
    call(host, remove, session=session)
    assert call(host, tool, session=session, list=True)[many] == []


@pytest.mark.parametrize("tool", ["wsh_overlay", "wsh_panel", "wsh_remove_overlay", "wsh_remove_panel"])
def test_elements_of_nobody_and_unknown_elements_are_refused(host: Host, untouched: str, tool: str) -> None:
    assert refuse(host, tool, session="nobody")["data"]["reason"] == "session_not_found"
    assert refuse(host, tool, session=untouched, id="nothing")["data"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    "bad",
    [
        {"spans": [{"text": 1}]},
        {"spans": [{"bold": True}]},
        {"spans": [{"text": "x", "color": "red"}]},
        {"spans": "text"},
        {"background": "mauve-ish"},
        {"background": "#12"},
        {"height": 0},
        {"height": 1001},
        {"z": 1.5},
        {"focusable": "yes"},
        {"list": "yes"},
        {"opacity": 1},
    ],
)
@pytest.mark.parametrize("tool", ["wsh_overlay", "wsh_panel"])
def test_an_element_that_cannot_be_is_refused(host: Host, untouched: str, tool: str, bad: Json) -> None:
    error = refuse(host, tool, session=untouched, **bad)
    assert next(iter(bad)) in json.dumps(error)


def test_a_panel_takes_its_rows_from_the_program(host: Host, session: str) -> None:
    top = call(host, "wsh_panel", session=session, position="top", height=3, spans=[{"text": "top"}])
    bottom = call(host, "wsh_panel", session=session, position="bottom", height=2, z=5, spans=[{"text": "bottom"}])
    assert (top["position"], bottom["position"]) == ("top", "bottom") and bottom["z"] == 5
    assert call(host, "wsh_get_screen", session=session)["rows"] == 24 - 5
    assert run(host, session, "stty size")["output"] == "19 80"
    moved = call(host, "wsh_panel", session=session, id=top["id"], position="bottom", height=1)
    assert (moved["position"], moved["height"], moved["spans"]) == ("bottom", 1, [{"text": "top"}])
    call(host, "wsh_remove_panel", session=session)
    assert run(host, session, "stty size")["output"] == "24 80"


def test_a_panel_that_does_not_fit_is_kept_unseen(host: Host, session: str) -> None:
    call(host, "wsh_panel", session=session, height=20, spans=[])
    assert call(host, "wsh_panel", session=session, height=20, z=-1, spans=[])["visible"] is False
    call(host, "wsh_remove_panel", session=session)


# keys and screens


def test_keys_are_captured_and_given_back(host: Host, session: str) -> None:
    assert call(host, "wsh_input_mode", session=session)["mode"] == "passthrough"
    assert call(host, "wsh_input_mode", session=session, mode="capture")["mode"] == "capture"
    assert call(host, "wsh_input_mode", session=session)["mode"] == "capture"
    assert run(host, session, "echo agents pass")["output"] == "agents pass"
    assert call(host, "wsh_input_mode", session=session, mode="release")["mode"] == "passthrough"
    refuse(host, "wsh_input_mode", session=session, mode="grab")


def test_focus_goes_to_an_element_and_away(host: Host, session: str) -> None:
    overlay = call(host, "wsh_overlay", session=session, spans=[{"text": "choose"}])["id"]
    panel = call(host, "wsh_panel", session=session, spans=[{"text": "or here"}])["id"]
    deaf = call(host, "wsh_panel", session=session, spans=[{"text": "not here"}], focusable=False)["id"]
    seen = call(host, "wsh_input_mode", session=session, mode="capture", focus=overlay)
    assert (seen["mode"], seen["focused_element"]) == ("capture", overlay)
    assert call(host, "wsh_input_mode", session=session, focus=panel)["focused_element"] == panel
    assert "focused_element" not in call(host, "wsh_input_mode", session=session, unfocus=True)
    refuse(host, "wsh_input_mode", session=session, focus=overlay, unfocus=True)
    assert refuse(host, "wsh_input_mode", session=session, focus=deaf)["data"]["reason"] == "not_focusable"
    call(host, "wsh_input_mode", session=session, mode="release")
    error = refuse(host, "wsh_input_mode", session=session, mode="capture", focus="nothing")
    assert error["data"]["code"] == "NOT_FOUND"
    assert call(host, "wsh_input_mode", session=session)["mode"] == "passthrough", "a failed call changes nothing"


def test_waiting_for_keys_ends_when_nobody_presses_any(host: Host, session: str) -> None:
    call(host, "wsh_input_mode", session=session, mode="capture")
    started = time.monotonic()
    seen = call(host, "wsh_input_mode", session=session, wait_ms=200)
    assert seen["events"] == [] and time.monotonic() - started > 0.15
    call(host, "wsh_input_mode", session=session, mode="release")


def test_a_capture_belongs_to_whoever_made_it(server: RunningServer, session: str, host: Host) -> None:
    with open_host(server, "stdio") as other:
        call(other, "wsh_input_mode", session=session, mode="capture")
        answer = host.call("wsh_input_mode", {"session": session, "mode": "capture"})["result"]
        assert answer["isError"] is True
        assert call(host, "wsh_input_mode", session=session)["mode"] == "capture"
    wait_until(lambda: call(host, "wsh_input_mode", session=session)["mode"] == "passthrough", what="the lease to end")


def test_an_agent_can_have_an_alternate_screen_of_its_own(host: Host, session: str) -> None:
    assert call(host, "wsh_screen_mode", session=session) == {"mode": "normal"}
    below = call(host, "wsh_overlay", session=session, spans=[{"text": "normal"}])["id"]
    assert call(host, "wsh_screen_mode", session=session, action="enter_alt") == {"mode": "alt"}
    assert call(host, "wsh_get_screen", session=session)["mode"] == "alt"
    above = call(host, "wsh_overlay", session=session, spans=[{"text": "alt"}])["id"]
    shown = {e["id"]: e["visible"] for e in call(host, "wsh_overlay", session=session, list=True)["overlays"]}
    assert shown == {below: False, above: True}
    assert fail(host, "wsh_screen_mode", session=session, action="enter_alt")["reason"] == "already_in_alt_screen"
    assert call(host, "wsh_screen_mode", session=session, action="exit_alt") == {"mode": "normal"}
    assert [e["id"] for e in call(host, "wsh_overlay", session=session, list=True)["overlays"]] == [below]
    assert fail(host, "wsh_screen_mode", session=session, action="exit_alt")["reason"] == "not_in_alt_screen"
    refuse(host, "wsh_screen_mode", session=session, action="leave")


# what is read


def test_resources_hold_what_the_tools_give(host: Host, session: str) -> None:
    run(host, session, "clear; seq 1 150; printf '\\e[32mgreen\\e[0m\\n'")

    def read_json(uri: str) -> Any:
        content = host.request("resources/read", {"uri": uri})["result"]["contents"][0]
        assert content["mimeType"] == "application/json" and content["uri"] == uri
        return json.loads(content["text"])

    assert read_json("wsh://sessions") == call(host, "wsh_list_sessions")["sessions"]
    screen = read_json(f"wsh://sessions/{session}/screen")
    assert screen == call(host, "wsh_get_screen", session=session)
    back = read_json(f"wsh://sessions/{session}/scrollback")
    assert back == call(host, "wsh_get_scrollback", session=session) and len(back["lines"]) == 100
    commands = read_json(f"wsh://sessions/{session}/commands")
    assert commands[-1]["exit_code"] == 0 and "seq" in commands[-1]["command"]


@pytest.mark.parametrize(
    "uri", ["wsh://sessions/nobody/screen", "wsh://sessions/nobody/other", "wsh://nothing", "file:///etc/passwd"]
)
def test_a_resource_that_is_not_there_is_refused(host: Host, uri: str) -> None:
    error = host.request("resources/read", {"uri": uri})["error"]
    assert error["code"] == -32602


def test_resources_and_templates_are_listed(host: Host, untouched: str) -> None:
    uris = [entry["uri"] for entry in host.request("resources/list")["result"]["resources"]]
    assert uris[0] == "wsh://sessions"
    assert {f"wsh://sessions/{untouched}/screen", f"wsh://sessions/{untouched}/scrollback"} <= set(uris)
    templates = host.request("resources/templates/list")["result"]["resourceTemplates"]
    listed = [entry["uriTemplate"] for entry in templates]
    assert listed[:2] == ["wsh://sessions/{name}/screen", "wsh://sessions/{name}/scrollback"]


def test_session_names_are_completed(host: Host, untouched: str) -> None:
    ref = {"type": "ref/resource", "uri": "wsh://sessions/{name}/screen"}
    asked = {"ref": ref, "argument": {"name": "name", "value": untouched[:3]}}
    assert untouched in host.request("completion/complete", asked)["result"]["completion"]["values"]


def test_all_prompts_are_listed_and_read(host: Host) -> None:
    listed = host.request("prompts/list")["result"]["prompts"]
    assert len(listed) == 9 and listed[0]["name"] == "wsh:core"
    for entry in listed:
        messages = host.request("prompts/get", {"name": entry["name"]})["result"]["messages"]
        assert messages[0]["content"]["text"].startswith("# ")
    core = host.request("prompts/get", {"name": "wsh:core"})["result"]["messages"][0]["content"]["text"]
    assert "wsh_run_command" in core and "curl" not in core
    assert host.request("prompts/get", {"name": "wsh:nothing"})["error"]["code"] == -32602


def test_the_list_of_tools_is_the_same_every_time_and_carries_its_versions(host: Host) -> None:
    first = host.request("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in first][:14] == [
        "wsh_create_session",
        "wsh_list_sessions",
        "wsh_manage_session",
        "wsh_send_input",
        "wsh_get_screen",
        "wsh_get_scrollback",
        "wsh_await_quiesce",
        "wsh_run_command",
        "wsh_overlay",
        "wsh_remove_overlay",
        "wsh_panel",
        "wsh_remove_panel",
        "wsh_input_mode",
        "wsh_screen_mode",
    ]
    assert host.request("tools/list")["result"]["tools"] == first
    for tool in first:
        assert type(tool["schemaVersion"]) is int and tool["toolingVersion"]
        assert tool["_meta"]["wsh/schemaVersion"] == tool["_meta"]["schemaVersion"] == tool["schemaVersion"]
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["description"] and tool["annotations"]["readOnlyHint"] in (True, False)


# what a caller hears


def hear(host: Host, method: str, timeout: float = HANG_S) -> Json:
    """The next notification of this kind, also one that came while another answer was awaited."""
    assert isinstance(host, StdioHost)
    for message in host.seen:
        if message.get("method") == method:
            host.seen.remove(message)
            return message
    return host.wait_for(lambda message: message.get("method") == method, timeout)


def test_a_legacy_host_hears_of_sessions_and_of_output_it_subscribed_to(server: RunningServer) -> None:
    with open_host(server, "stdio") as host:
        name = open_session(host)
        hear(host, "notifications/resources/list_changed")
        uri = f"wsh://sessions/{name}/screen"
        assert host.request("resources/subscribe", {"uri": uri})["result"] == {}
        started = time.monotonic()
        run(host, name, "for i in $(seq 1 150); do echo $i; sleep 0.01; done")
        seconds = time.monotonic() - started
        assert isinstance(host, StdioHost)
        updates = [hear(host, "notifications/resources/updated")]
        updates += [m for m in host.seen if m.get("method") == "notifications/resources/updated"]
        assert len(updates) <= seconds * 5 + 3, "coalesced"
        assert {m["params"]["uri"] for m in updates} == {uri}
        host.request("resources/unsubscribe", {"uri": uri})
        host.seen.clear()
        call(host, "wsh_manage_session", session=name, action="kill")
        hear(host, "notifications/resources/list_changed")
        assert not [m for m in host.seen if m.get("method") == "notifications/resources/updated"]


def test_a_modern_host_hears_what_it_listens_for(server: RunningServer) -> None:
    with open_host(server, "stdio-modern") as host:
        assert isinstance(host, StdioHost)
        name = open_session(host)
        uri = f"wsh://sessions/{name}/screen"
        wanted = {"resourcesListChanged": True, "resourceSubscriptions": [uri]}
        host.start_request("subscriptions/listen", {"notifications": wanted}, id="ear")
        hear(host, "notifications/subscriptions/acknowledged")
        run(host, name, "echo news")
        hear(host, "notifications/resources/updated")
        call(host, "wsh_manage_session", session=name, action="kill")
        hear(host, "notifications/resources/list_changed")
        host.notify("notifications/cancelled", {"requestId": "ear"})


def test_a_subscription_to_nothing_is_refused(server: RunningServer) -> None:
    with open_host(server, "http") as host:
        nobody = {"uri": "wsh://sessions/nobody/screen"}
        refused = host.request("resources/subscribe", nobody)["error"]
        assert refused == host.request("resources/read", nobody)["error"]
        assert refused["code"] == -32602 and "no session named 'nobody'" in refused["message"]
        assert host.request("resources/subscribe", {"uri": "test://x"})["error"]["code"] == -32602


def test_a_long_command_reports_its_newest_line(server: RunningServer) -> None:
    with open_host(server, "stdio") as host:
        assert isinstance(host, StdioHost)
        name = open_session(host)
        arguments = {"session": name, "input": "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.15; done"}
        host.call("wsh_run_command", arguments, progressToken=99)
        notes = [m["params"] for m in host.seen if m.get("method") == "notifications/progress"]
        assert 2 <= len(notes) <= 7
        assert {note["progressToken"] for note in notes} == {99}
        assert {note["stream"] for note in notes} == {"stdout"}
        assert [note for note in notes if note["message"].startswith("line ")]
        call(host, "wsh_manage_session", session=name, action="kill")


def test_a_cancelled_wait_leaves_the_session_alone(server: RunningServer) -> None:
    with open_host(server, "stdio") as host:
        assert isinstance(host, StdioHost)
        name = open_session(host)
        arguments = {"session": name, "input": "sleep 0.5; echo survived"}
        host.start_request("tools/call", {"name": "wsh_run_command", "arguments": arguments}, id="w")
        wait_until(lambda: any("survived" in line for line in read(host, name)), what="the command to be typed")
        host.notify("$/cancelRequest", {"id": "w"})
        assert failure(host.wait_answer("w"))["code"] == "CANCELLED"
        call(host, "wsh_await_quiesce", session=name, text="survived")
        call(host, "wsh_manage_session", session=name, action="kill")


def test_after_a_run_states_are_true_and_its_own_events_count(host: Host, session: str) -> None:
    run(host, session, "echo printed-by-the-run")
    for until in (["prompt"], ["prompt", "quiet"]):
        ended = call(host, "wsh_await_quiesce", session=session, until=until, timeout_ms=60_000, max_wait_ms=60_000)
        assert ended["ended_by"] == "prompt"
    ended = call(host, "wsh_await_quiesce", session=session, until=["command", "quiet"], max_wait_ms=60_000)
    assert ended["ended_by"] == "command"
    ended = call(host, "wsh_await_quiesce", session=session, text="printed-by-the-run", max_wait_ms=60_000)
    assert ended["ended_by"] == "text"
    ended = call(host, "wsh_await_quiesce", session=session, until=["quiet"], timeout_ms=50, max_wait_ms=60_000)
    assert ended["ended_by"] == "quiet"
    # what came before the last input does not count
    run(host, session, "true")
    late = fail(host, "wsh_await_quiesce", session=session, text="printed-by-the-run", max_wait_ms=200)
    assert late["code"] == "TOOL_TIMEOUT"


def test_a_prompt_from_before_the_input_is_none(host: Host, session: str) -> None:
    run(host, session, "true")
    call(host, "wsh_send_input", session=session, input="sleep 0.3; echo slept\r")
    ended = call(host, "wsh_await_quiesce", session=session, until=["prompt"], max_wait_ms=60_000)
    assert ended["ended_by"] == "prompt" and "slept" in read(host, session)


def test_a_line_that_another_has_typed_is_not_gone_on_with(host: Host, session: str, server: RunningServer) -> None:
    run(host, session, "true")
    assert server.request("POST", f"/sessions/{session}/input", b"echo rm -rf important-").status == 204
    for tool in ("wsh_run_command", "wsh_send_input"):
        refused = fail(host, tool, session=session, input="ls\r")
        assert (refused["code"], refused["text"]) == ("LINE_IN_USE", "echo rm -rf important-")
        assert refused["typed_by"] == {"kind": "person", "id": "owner"} and refused["typed_at"]
    ran = run(host, session, "echo clean", clear_line=True)
    assert (ran["output"], ran["exit_code"]) == ("clean", 0)
    assert ran["cleared_line"]["put_back"] == "yes" and ran["cleared_line"]["text"] == "echo rm -rf important-"
    assert server.request("POST", f"/sessions/{session}/input", b"files\r").status == 204
    call(host, "wsh_await_quiesce", session=session, text="rm -rf important-files", generation=0, max_wait_ms=60_000)
