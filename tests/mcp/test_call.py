"""What every tool gets from the door: one answer each, in the dialect of its family."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.mcp.door import RunningDoor, serve
from tests.support.mcp.host import HttpHost, StdioHost, envelope, failure, structured
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import customize
from wsh.mcp.server import to_result
from wsh.wire.system.place import Places
from wsh.wire.tool import ToolOutcome

Host = HttpHost | StdioHost


def test_a_result_is_the_same_json_as_text_and_as_structure(any_host: Host) -> None:
    result = any_host.call("echo", {"text": "héllo\n\u2028"})["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"]["text"] == "héllo\n\u2028"
    assert not result["isError"]


def test_bad_arguments_of_a_terminal_tool_are_an_rpc_error_that_names_each_field(any_host: Host) -> None:
    error = any_host.call("echo", {"txt": 1})["error"]
    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"
    by_path = {problem["path"]: problem for problem in error["data"]["errors"]}
    assert by_path["text"]["message"] == "is required"
    assert by_path["txt"]["hint"] == "Did you mean 'text'?"


def test_half_of_a_surrogate_pair_is_a_bad_argument(stdio: StdioHost) -> None:
    """Over HTTP it does not even parse."""
    error = stdio.call("echo", {"text": "a\ud800"})["error"]
    assert (error["code"], error["data"]["errors"][0]["path"]) == (-32602, "text")


def test_what_is_not_utf_8_in_a_result_is_replaced() -> None:
    """As the name of a folder may be."""
    result = to_result(ToolOutcome({"cwd": "/a\udcff", "same": ["\udcff", 1]}))
    assert json.loads(result.content[0].model_dump()["text"]) == {"cwd": "/a\ufffd", "same": ["\ufffd", 1]}
    result.model_dump_json()


def test_bad_arguments_of_an_exec_tool_are_a_failed_result(any_host: Host) -> None:
    payload = failure(any_host.call("picky_exec", {"text": "c"}))
    assert payload["code"] == "INVALID_REQUEST"
    assert "one of 'a', 'b'" in payload["message"]


def test_an_unknown_tool_is_an_rpc_error_with_a_suggestion(any_host: Host) -> None:
    error = any_host.call("ecko")["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_REQUEST")
    assert error["data"]["hint"] == "Did you mean 'echo'?"


@pytest.mark.parametrize("family", ["terminal", "exec"])
def test_an_unexpected_exception_leaves_without_its_text(any_host: Host, family: str) -> None:
    answer = any_host.call(f"broken_{family}")
    assert "secret" not in json.dumps(answer)
    if family == "terminal":
        assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (-32603, "INTERNAL")
    else:
        assert failure(answer)["code"] == "INTERNAL"


def test_a_call_past_its_deadline_is_stopped_and_says_so(any_host: Host, door: RunningDoor) -> None:
    payload = failure(any_host.call("slow", {"ms": 30_000, "timeout_ms": 80, "key": "t"}))
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 80)
    assert door.log.stopped == ["t"]


def test_any_call_takes_a_deadline_in_its_meta(any_host: Host, door: RunningDoor) -> None:
    payload = failure(any_host.call("slow", {"ms": 30_000}, **{"wsh/timeoutMs": 60}))
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 60)
    assert failure(any_host.call("slow", {"ms": 1}, **{"wsh/timeoutMs": 0}))["code"] == "INVALID_REQUEST"


def test_a_deadline_in_the_meta_reaches_a_tool_that_takes_one_and_its_own_argument_wins(any_host: Host) -> None:
    assert structured(any_host.call("slow", {"ms": 1}))["timeout_ms"] is None
    assert structured(any_host.call("slow", {"ms": 1}, **{"wsh/timeoutMs": 70_000}))["timeout_ms"] == 70_000
    own = any_host.call("slow", {"ms": 1, "timeout_ms": 60_000}, **{"wsh/timeoutMs": 70_000})
    assert structured(own)["timeout_ms"] == 60_000


def test_a_deadline_in_the_meta_that_the_tool_does_not_take_is_refused_by_that_name(any_host: Host) -> None:
    refused = failure(any_host.call("slow", {"ms": 1}, **{"wsh/timeoutMs": 80_000_000}))
    assert refused["code"] == "INVALID_REQUEST"
    assert [problem["path"] for problem in refused["errors"]] == ["_meta.wsh/timeoutMs"]


@pytest.mark.parametrize("as_sent", [7, "7", 7.0])
def test_a_cancelled_call_is_answered_once_with_cancelled(stdio: StdioHost, door: RunningDoor, as_sent: Any) -> None:
    stdio.start_request("tools/call", {"name": "slow", "arguments": {"ms": 30_000, "key": "c"}}, id=7)
    wait_until(lambda: door.log.started == ["c"])
    stdio.notify("$/cancelRequest", {"id": as_sent})
    payload = failure(stdio.wait_answer(7))
    assert payload["code"] == "CANCELLED"
    assert door.log.stopped == ["c"], "the work is over before the answer is out"
    structured(stdio.call("echo", {"text": "alive"}))
    assert not stdio.seen


def test_a_call_cancelled_the_mcp_way_is_stopped_and_not_answered(stdio: StdioHost, door: RunningDoor) -> None:
    stdio.start_request("tools/call", {"name": "slow", "arguments": {"ms": 30_000, "key": "m"}}, id="m")
    wait_until(lambda: door.log.started == ["m"], "the call's beginning: one that is cancelled before never runs")
    stdio.notify("notifications/cancelled", {"requestId": "m"})
    wait_until(lambda: door.log.stopped == ["m"])
    structured(stdio.call("echo", {"text": "alive"}))
    assert not stdio.seen
    assert door.under_way() == 0


def test_a_modern_call_on_stdio_can_be_cancelled_both_ways(door: RunningDoor) -> None:
    with StdioHost() as host:
        call = {"name": "slow", "arguments": {"ms": 30_000, "key": "x"}}
        host.start_request("tools/call", envelope(call), id=1)
        wait_until(lambda: len(door.log.started) == 1)
        host.notify("$/cancelRequest", {"id": "1"})
        assert failure(host.wait_answer(1))["code"] == "CANCELLED"
        host.start_request("tools/call", envelope(call), id=2)
        wait_until(lambda: len(door.log.started) == 2)
        host.notify("notifications/cancelled", {"requestId": 2})
        wait_until(lambda: len(door.log.stopped) == 2)
        host.request("tools/call", envelope({"name": "echo", "arguments": {"text": "alive"}}))
        assert not host.seen


def test_a_legacy_http_call_can_be_cancelled_by_another_post(http: HttpHost, door: RunningDoor) -> None:
    answers: list[Any] = []
    call = {"name": "slow", "arguments": {"ms": 30_000, "key": "h"}}
    caller = threading.Thread(target=lambda: answers.append(http.request("tools/call", call, id="h")))
    caller.start()
    wait_until(lambda: door.log.started == ["h"])
    with HttpHost(http.url) as other:
        other.session, other.version = http.session, http.version
        other.notify("$/cancelRequest", {"id": "h"})
        other.session = None
    caller.join(HANG_S)
    assert failure(answers[0])["code"] == "CANCELLED"


def test_a_modern_http_call_can_be_cancelled_by_its_token(door: RunningDoor) -> None:
    answers: list[Any] = []
    with HttpHost(door.url, modern=True) as host, HttpHost(door.url, modern=True) as other:
        call = {"name": "slow", "arguments": {"ms": 30_000, "key": "h"}}
        caller = threading.Thread(target=lambda: answers.append(host.request("tools/call", call, id=3)))
        caller.start()
        wait_until(lambda: door.log.started == ["h"])
        other.notify("$/cancelRequest", {"id": "3"})
        caller.join(HANG_S)
    assert failure(answers[0])["code"] == "CANCELLED"


def test_a_modern_http_client_that_goes_away_cancels_its_call(door: RunningDoor) -> None:
    with HttpHost(door.url, modern=True) as host:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call = {"name": "slow", "arguments": {"ms": 30_000, "key": "gone"}}
        message = body | {"params": envelope(call)}
        with pytest.raises(httpx2.TimeoutException):
            host.client.post(host.url, content=json.dumps(message), headers=host.headers(message), timeout=0.3)
    wait_until(lambda: door.log.stopped == ["gone"])
    wait_until(lambda: door.under_way() == 0)


def test_a_host_that_closes_stdin_cancels_what_is_under_way(door: RunningDoor, tmp_path: Path) -> None:
    brief = customize(tmp_path, "import wsh.client.stdio_proxy\nwsh.client.stdio_proxy.DRAIN_S = 0.5")
    with StdioHost(env=brief) as host:
        host.initialize()
        host.start_request("tools/call", {"name": "slow", "arguments": {"ms": 60_000, "key": "eof"}})
        wait_until(lambda: door.log.started == ["eof"])
        assert host.close() == 0
    wait_until(lambda: door.log.stopped == ["eof"])
    wait_until(lambda: door.under_way() == 0)


def test_a_full_queue_refuses_at_once_and_reads_still_go_through(places: Places) -> None:
    with serve(places, queue_size=64) as door, StdioHost() as host:
        host.initialize()
        for number in range(64):
            host.start_request("tools/call", {"name": "slow", "arguments": {"ms": 60_000}}, id=f"q{number}")
        wait_until(lambda: len(door.log.started) == 64)
        payload = failure(host.call("slow", {"ms": 60_000}))
        assert payload["code"] == "QUEUE_OVERLOADED"
        assert structured(host.call("echo", {"text": "a read"}))["text"] == "a read"
        host.notify("$/cancelRequest", {"id": "q5"})
        assert failure(host.wait_answer("q5"))["code"] == "CANCELLED"
        structured(host.call("slow", {"ms": 1}))
        for number in range(64):
            host.notify("notifications/cancelled", {"requestId": f"q{number}"})


def test_an_id_that_is_in_use_is_refused_and_the_first_call_lives_on(stdio: StdioHost) -> None:
    stdio.start_request("tools/call", {"name": "slow", "arguments": {"ms": 300}}, id=5)
    stdio.start_request("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id="5")
    assert stdio.wait_for(lambda m: m.get("id") == "5")["error"]["code"] == -32600
    assert structured(stdio.wait_answer(5))["slept"] == 300


def test_progress_is_throttled_carries_its_fields_and_ends_with_the_answer(any_host: Host) -> None:
    began = time.monotonic()
    any_host.call("chatter", {"lines": 130, "pause_ms": 10}, progressToken="tok")
    took_s = time.monotonic() - began
    notes = [m["params"] for m in any_host.seen if m.get("method") == "notifications/progress"]
    # Nothing may follow the answer; another call would bring it along.
    any_host.call("echo", {"text": "x"})
    assert len([m for m in any_host.seen if m.get("method") == "notifications/progress"]) == len(notes)
    assert 2 <= len(notes) <= took_s * 4 + 2, "four in a second, and the last"
    assert [n["progress"] for n in notes] == sorted({n["progress"] for n in notes})
    for note in notes:
        assert note["progressToken"] == "tok"
        assert (note["tool"], note["stream"], note["phase"]) == ("chatter", "stdout", "index")
        assert note["id"] and note["ts"].endswith("Z") and note["message"].startswith("line ")
    assert [n["message"] for n in notes] != [f"line {i}" for i in range(len(notes))], "the latest wins"


def test_nothing_is_reported_to_a_caller_that_gave_no_token(stdio: StdioHost) -> None:
    structured(stdio.call("chatter", {"lines": 5, "pause_ms": 5}))
    assert not stdio.seen


def test_a_whole_number_may_be_written_as_a_decimal(any_host: Host) -> None:
    assert structured(any_host.call("slow", {"ms": 1.0}))["slept"] == 1


def test_arguments_with_very_many_values_are_refused(stdio: StdioHost) -> None:
    answer = stdio.call("echo", {"text": [{"a": 1}] * 200_000})
    assert answer["error"]["code"] == -32602


def test_ten_megabytes_of_argument_are_taken(any_host: Host) -> None:
    text = "x" * 10_000_000
    assert structured(any_host.call("echo", {"text": text}))["text"] == text
