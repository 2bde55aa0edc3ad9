"""Sessions over HTTP: every route called as a client calls it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.serving import Reply, RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.model.screen import IdleAnswer, Screen, Scrollback
from wsh.wire.model.session import SessionInfo
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile

Open = Callable[..., str]


def settle(server: RunningServer, name: str) -> None:
    """The program in front has shown what it had to show and waits for input."""
    reply = server.request("GET", f"/sessions/{name}/idle?input_wanted=true&max_wait_ms=120000")
    assert reply.status == 200, reply


def type_in(server: RunningServer, name: str, text: str) -> None:
    assert server.request("POST", f"/sessions/{name}/input", text.encode()).status == 204


def wait_for_text(server: RunningServer, name: str, text: str) -> None:
    def there() -> bool:
        return text in "\n".join(server.get(f"/sessions/{name}/screen?format=plain")["lines"])

    wait_until(there, f"{text!r} on the screen")


# life


def test_a_session_is_made_listed_read_and_killed(server: RunningServer) -> None:
    made = server.request("POST", "/sessions", {"name": "life", "command": "bash --norc", "rows": 10, "cols": 40})
    assert made.status == 201
    info = SessionInfo.model_validate(made.json)
    assert (info.name, info.rows, info.cols, info.running, info.exit_code) == ("life", 10, 40, True, None)
    assert info.pid and os.path.exists(f"/proc/{info.pid}")
    assert "life" in [one["name"] for one in server.get("/sessions")]
    assert server.get("/sessions/life")["command"] == "bash --norc"
    gone = server.request("DELETE", "/sessions/life")
    assert (gone.status, gone.body) == (204, b"")
    assert server.request("GET", "/sessions/life").code == "session_not_found"
    assert not os.path.exists(f"/proc/{info.pid}")


def test_a_session_without_a_name_gets_a_readable_one(server: RunningServer) -> None:
    reply = server.request("POST", "/sessions", {})
    assert reply.status == 201 and "-" in reply.json["name"]
    assert server.request("DELETE", f"/sessions/{reply.json['name']}").status == 204


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "a b"}, 400, "invalid_session_name"),
        ({"name": "a/b"}, 404, "host_not_found"),
        ({"name": ""}, 400, "invalid_session_name"),
        ({"name": "."}, 400, "invalid_session_name"),
        ({"name": "x" * 65}, 400, "invalid_session_name"),
        ({"name": "x" * 5000}, 400, "invalid_session_name"),
        ({"name": "Ångström"}, 400, "invalid_session_name"),
        ({"rows": 0}, 400, "invalid_request"),
        ({"cols": 1001}, 400, "invalid_request"),
        ({"rows": "24"}, 400, "invalid_request"),
        ({"rows": True}, 400, "invalid_request"),
        ({"command": "no-such-program-here"}, 400, "program_not_found"),
        ({"command": ""}, 400, "invalid_request"),
        ({"cwd": "/no/such/folder"}, 400, "cwd_not_found"),
        ({"env": {"A=B": "c"}}, 400, "invalid_env"),
        ({"env": {"A": 1}}, 400, "invalid_request"),
        ({"tags": ["no blanks"]}, 400, "invalid_tag"),
        ({"shell": "bash"}, 400, "invalid_request"),
        ([], 400, "invalid_request"),
    ],
)
def test_what_cannot_be_started_is_said_and_nothing_is_half_made(
    server: RunningServer, body: Any, status: int, code: str
) -> None:
    before = len(server.get("/sessions"))
    reply = server.request("POST", "/sessions", body)
    assert (reply.status, reply.code) == (status, code), reply
    assert reply.json["error"]["message"]
    assert len(server.get("/sessions")) == before


def test_a_taken_name_is_a_conflict(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    reply = server.request("POST", "/sessions", {"name": name})
    assert (reply.status, reply.code) == (409, "session_name_conflict")


def test_cwd_and_environment_reach_the_program(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'pwd; echo $WORD; sleep 60'", cwd="/usr", env={"WORD": "been here"})
    wait_for_text(server, name, "been here")
    assert server.get(f"/sessions/{name}/screen?format=plain")["lines"][:2] == ["/usr", "been here"]


def test_the_most_sessions_is_a_setting(places: Places) -> None:
    with running_server(places, "--max-sessions", "1") as server:
        assert server.request("POST", "/sessions", {"command": "sleep 60"}).status == 201
        reply = server.request("POST", "/sessions", {"command": "sleep 60"})
        assert (reply.status, reply.code) == (503, "max_sessions_reached")


def test_an_exited_session_stays_readable_and_refuses_input(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'echo last words; exit 7'")
    wait_until(lambda: not server.get(f"/sessions/{name}")["running"], "the exit")
    assert server.get(f"/sessions/{name}")["exit_code"] == 7
    assert server.get(f"/sessions/{name}/screen?format=plain")["lines"][0] == "last words"
    refused = server.request("POST", f"/sessions/{name}/input", b"x")
    assert (refused.status, refused.code) == (409, "session_exited")
    ended = server.get(f"/sessions/{name}/idle?timeout_ms=60000")
    assert ended["ended_by"] == "exit"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/detach"),
        ("GET", "/screen"),
        ("GET", "/scrollback"),
        ("GET", "/idle?timeout_ms=1"),
        ("POST", "/input"),
        ("GET", "/overlay"),
        ("DELETE", "/panel"),
        ("GET", "/input/mode"),
        ("POST", "/input/capture"),
        ("GET", "/screen_mode"),
    ],
)
def test_an_unknown_session_is_not_found_everywhere(server: RunningServer, method: str, path: str) -> None:
    reply = server.request(method, f"/sessions/nobody{path}")
    assert (reply.status, reply.code) == (404, "session_not_found")


# names and tags


def test_names_and_tags_change_together_or_not_at_all(server: RunningServer, open_session: Open) -> None:
    name, other = open_session(tags=["b", "a"]), open_session()
    assert server.get(f"/sessions/{name}")["tags"] == ["a", "b"]
    for change, code in (
        ({"name": other, "add_tags": ["c"]}, "session_name_conflict"),
        ({"name": "fine", "add_tags": ["not fine"]}, "invalid_tag"),
        ({"name": "not fine", "add_tags": ["c"]}, "invalid_session_name"),
        ({"name": "not/fine", "add_tags": ["c"]}, "invalid_session_name"),
        ({"add_tags": ["c"], "remove_tags": ["c"]}, "invalid_request"),
    ):
        assert server.request("PATCH", f"/sessions/{name}", change).code == code
        assert server.get(f"/sessions/{name}")["tags"] == ["a", "b"]
    changed = server.request(
        "PATCH", f"/sessions/{name}", {"name": f"{name}-new", "add_tags": ["c"], "remove_tags": ["a"]}
    )
    assert changed.status == 200 and (changed.json["name"], changed.json["tags"]) == (f"{name}-new", ["b", "c"])
    assert server.request("GET", f"/sessions/{name}").status == 404
    server.request("PATCH", f"/sessions/{name}-new", {"name": name})


def test_tags_select_sessions_any_of_them_will_do(server: RunningServer, open_session: Open) -> None:
    one, two, three = open_session(tags=["red"]), open_session(tags=["blue"]), open_session()
    found = {info["name"] for info in server.get("/sessions?tag=red,blue")}
    assert found == {one, two} and three not in found
    assert server.get("/sessions?tag=nobody-has-this") == []
    assert server.request("GET", "/sessions?tag=no%20good").code == "invalid_tag"
    assert server.request("GET", "/sessions?tags=red").code == "invalid_request"


# reading and typing


def test_what_is_typed_runs_and_is_read_back(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    type_in(server, name, "printf '\\033[1;31mred\\033[0m plain\\n'\r")
    wait_for_text(server, name, "red plain")
    plain = Screen.model_validate(server.get(f"/sessions/{name}/screen?format=plain"))
    assert plain.lines[1] == "red plain" and plain.mode == "normal"
    styled = Screen.model_validate(server.get(f"/sessions/{name}/screen"))
    line = styled.lines[1]
    assert not isinstance(line, str) and [span.text for span in line] == ["red", " plain"]
    assert line[0].bold and line[0].fg is not None
    assert server.request("GET", f"/sessions/{name}/screen?format=fancy").code == "invalid_format"
    film = server.request("GET", f"/sessions/{name}/recording?format=fancy")
    assert film.code == "invalid_format" and "'svg'" in film.json["error"]["hint"], film
    for path in ("scrollback?since_line=2&offset=3", "commands/1/output?search=a&regex=b"):
        both = server.request("GET", f"/sessions/{name}/{path}")
        assert both.code == "invalid_request" and "either" in both.json["error"]["message"], both


def test_any_bytes_of_any_type_are_input(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat -v")
    settle(server, name)
    for content_type in (
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "application/json",
    ):
        data = b"\x01\xff{\n"
        reply = server.request("POST", f"/sessions/{name}/input", data, headers={"Content-Type": content_type})
        assert reply.status == 204
    wait_for_text(server, name, "^AM-^?{")


def test_keys_are_pressed_by_name(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    type_in(server, name, "sleep 100\r")

    def sleeps() -> bool:
        front = server.get(f"/sessions/{name}/state")["foreground"]
        return front is not None and front["name"] == "sleep"

    wait_until(sleeps, "the program in front")
    assert server.request("POST", f"/sessions/{name}/keys", {"keys": ["ctrl+c", "h", "i", "enter"]}).status == 204
    wait_for_text(server, name, "^C")
    wait_for_text(server, name, "hi: command not found")
    assert server.request("POST", f"/sessions/{name}/keys", {"keys": ["hyper+nonsense"]}).code == "invalid_key"
    assert server.request("POST", f"/sessions/{name}/keys", {"keys": []}).code == "invalid_request"


def test_scrollback_counts_back_from_the_newest_line(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'seq 1000; sleep 100'")
    wait_for_text(server, name, "1000")
    page = Scrollback.model_validate(server.get(f"/sessions/{name}/scrollback?format=plain&limit=5"))
    assert page.lines == ["997", "998", "999", "1000", ""] and page.total == 1001 == page.total_lines
    page = Scrollback.model_validate(server.get(f"/sessions/{name}/scrollback?format=plain&limit=3&offset=10"))
    assert page.lines == ["989", "990", "991"] and page.first_line == 988
    since = server.get(f"/sessions/{name}/scrollback?format=plain&since_line=998&limit=100000")
    assert since["lines"] == ["999", "1000", ""] and since["first_line"] == 998
    for bad in ("offset=-1", "limit=x", "limit=1&limit=2", "since_line=-3", "unknown=1"):
        assert server.request("GET", f"/sessions/{name}/scrollback?{bad}").code == "invalid_request"


def test_resize_reaches_the_program(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    reply = server.request("POST", f"/sessions/{name}/resize", {"rows": 30, "cols": 100})
    assert reply.status == 200 and (reply.json["rows"], reply.json["cols"]) == (30, 100)
    type_in(server, name, "stty size\r")
    wait_for_text(server, name, "30 100")
    for bad in ({"rows": 0, "cols": 1}, {"rows": 1}, {"rows": 1, "cols": 1001}, {"rows": 1, "cols": 2, "x": 3}):
        assert server.request("POST", f"/sessions/{name}/resize", bad).code == "invalid_request"


# waiting


def test_idle_waits_for_silence_and_gives_the_screen(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    type_in(server, name, "for i in 1 2 3 4 5; do echo step $i; sleep 0.1; done\r")
    answer = IdleAnswer.model_validate(server.get(f"/sessions/{name}/idle?timeout_ms=1500&format=plain"))
    assert "step 5" in "\n".join(str(line) for line in answer.screen.lines)
    assert answer.ended_by == "quiet" and answer.last_activity_ms >= 1490
    alias = server.get(f"/sessions/{name}/quiesce?timeout_ms=1")
    assert alias["generation"] == answer.generation


def test_a_wait_past_its_deadline_is_408_and_stops_nothing(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'while :; do echo x; sleep 0.02; done'")
    began = time.monotonic()
    reply = server.request("GET", f"/sessions/{name}/idle?timeout_ms=50000&max_wait_ms=200")
    assert (reply.status, reply.code) == (408, "idle_timeout") and time.monotonic() - began > 0.15
    assert server.get(f"/sessions/{name}")["running"]


def test_a_known_generation_makes_the_wait_begin_with_new_output(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    first = server.get(f"/sessions/{name}/idle?timeout_ms=100")
    late = server.request(
        "GET", f"/sessions/{name}/idle?timeout_ms=50&max_wait_ms=300&last_generation={first['generation']}"
    )
    assert late.code == "idle_timeout"
    timer = threading.Timer(0.2, type_in, (server, name, "news\r"))
    timer.start()
    second = server.get(f"/sessions/{name}/idle?timeout_ms=50&last_generation={first['generation']}&format=plain")
    timer.join()
    assert second["generation"] > first["generation"] and "news" in second["screen"]["lines"]


def test_fresh_waits_for_a_whole_silence(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    settle(server, name)
    began = time.monotonic()
    server.get(f"/sessions/{name}/idle?timeout_ms=300&fresh=true")
    assert time.monotonic() - began >= 0.29


def test_a_wait_ends_with_a_text_or_a_match(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    type_in(server, name, "sleep 0.2; echo ready-$((40+2)); sleep 300\r")
    found = server.get(f"/sessions/{name}/idle?regex=ready-%5B0-9%5D%2B&max_wait_ms=60000")
    assert found["ended_by"] == "regex" and found["matched"] == "ready-42"
    assert server.request("GET", f"/sessions/{name}/idle?regex=%28").code == "invalid_pattern"
    assert server.request("GET", f"/sessions/{name}/idle").code == "invalid_request"
    assert server.request("GET", f"/sessions/{name}/idle?timeout_ms=soon").code == "invalid_request"


def test_killing_a_session_ends_the_waits_on_it(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'while :; do echo x; sleep 0.02; done'")
    replies: list[Reply] = []

    def wait() -> None:
        replies.append(server.request("GET", f"/sessions/{name}/idle?timeout_ms=60000&max_wait_ms=60000"))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    server.request("DELETE", f"/sessions/{name}")
    thread.join(60)
    assert replies and (replies[0].status in {200, 404})


def test_idle_over_all_sessions_takes_them_in_turn(server: RunningServer, open_session: Open) -> None:
    names = [open_session("cat", tags=["turn"]) for _ in range(2)]
    for name in names:
        settle(server, name)
    busy = open_session("sh -c 'for i in $(seq 30); do echo $i; sleep 0.02; done; exec cat'", tags=["turn"])
    answers: list[Any] = [{}]

    def ask() -> list[str]:
        last = "".join(f"&last_{key}={answers[-1][key]}" for key in ("session", "generation") if key in answers[-1])
        answers.append(server.get(f"/idle?timeout_ms=100&tag=turn{last}"))
        IdleAnswer.model_validate(answers[-1])
        return [answer["session"] for answer in answers[1:]]

    wait_until(lambda: busy in ask(), "the third: two idle sessions must not starve it", seen=ask)
    for _ in range(3):
        seen = ask()
    assert seen[:3] == [names[0], names[1], names[0]] or set(seen[:3]) == {*names, busy}
    assert set(seen[-3:]) == {*names, busy}


def test_idle_over_all_sessions_hears_of_one_that_starts_meanwhile(server: RunningServer, open_session: Open) -> None:
    flood = "sh -c 'while :; do echo x; sleep 0.02; done'"
    open_session(flood, tags=["late"])
    replies: list[Any] = []
    thread = threading.Thread(
        target=lambda: replies.append(server.get("/idle?timeout_ms=2000&tag=late&max_wait_ms=60000"))
    )
    thread.start()
    time.sleep(0.2)
    quiet = open_session("cat", tags=["late"])
    thread.join(60)
    assert replies and replies[0]["session"] == quiet


def test_idle_over_no_session_says_so(server: RunningServer, open_session: Open) -> None:
    reply = server.request("GET", "/idle?timeout_ms=10&tag=nobody-has-this")
    assert (reply.status, reply.code) == (404, "no_sessions")
    open_session("sh -c 'while :; do echo x; sleep 0.02; done'", tags=["noisy"])
    reply = server.request("GET", "/idle?timeout_ms=2000&max_wait_ms=200&tag=noisy")
    assert (reply.status, reply.code) == (408, "idle_timeout")


# roles


def test_agents_are_kept_out_while_a_person_has_taken_over(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    agent = TokenFile(server.places.tokens).add_agent("typist")
    path = f"/sessions/{name}"
    assert server.request("POST", f"{path}/take_over", token=agent).code == "forbidden"
    assert server.request("POST", f"{path}/take_over").status == 204
    refused = server.request("POST", f"{path}/input", b"x", token=agent)
    assert (refused.status, refused.code) == (409, "session_taken")
    assert server.request("POST", f"{path}/input", b"x").status == 204
    assert server.request("GET", f"{path}/screen", token=agent).status == 200
    assert server.request("POST", f"{path}/hand_back").status == 204
    assert server.request("POST", f"{path}/input", b"\r").status == 204
    assert server.request("POST", f"{path}/input", b"x", token=agent).status == 204


def test_large_input_passes_in_pieces_and_not_in_one(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'stty raw -echo; echo ready; wc -c'")
    wait_for_text(server, name, "ready")
    big = server.request("POST", f"/sessions/{name}/input", b"x" * (1024 * 1024 + 1))
    assert (big.status, big.code) == (413, "too_large")
    for _ in range(3):
        assert server.request("POST", f"/sessions/{name}/input", b"x" * 1_000_000).status == 204


def test_a_line_that_somebody_typed_is_refused_to_others(server: RunningServer, open_session: Open) -> None:
    name = open_session("bash --norc")
    agent = TokenFile(server.places.tokens).add_agent("liner")
    path = f"/sessions/{name}"
    assert server.request("GET", f"{path}/idle?prompt=true&max_wait_ms=60000").status == 200
    assert server.request("POST", f"{path}/input", b"echo half-", token=agent).status == 204
    refused = server.request("POST", f"{path}/run", {"input": "ls"})
    assert (refused.status, refused.code) == (409, "line_in_use")
    details = refused.json["error"]["details"]
    assert (details["text"], details["typed_by"]) == ("echo half-", {"kind": "agent", "id": "liner"})
    assert server.request("POST", f"{path}/input", b"x").code == "line_in_use"
    assert server.request("POST", f"{path}/input", b"line\r", token=agent).status == 204
    ran = server.request("POST", f"{path}/run", {"input": "echo free", "clear_line": True})
    assert ran.json["output"] == "free"


def test_a_command_tells_who_pressed_enter(server: RunningServer, open_session: Open) -> None:
    name = open_session("bash --norc")
    agent = TokenFile(server.places.tokens).add_agent("builder")
    path = f"/sessions/{name}"
    assert server.request("GET", f"{path}/idle?prompt=true&max_wait_ms=60000").status == 200
    assert server.request("POST", f"{path}/run", {"input": "true"}, token=agent).json["exit_code"] == 0
    assert server.request("POST", f"{path}/run", {"input": "false"}).json["exit_code"] == 1
    first, second = server.get(f"{path}/commands")
    assert first["author"] == {"kind": "agent", "id": "builder"} and first["started"] > 1_700_000_000
    assert second["author"]["kind"] == "person"
