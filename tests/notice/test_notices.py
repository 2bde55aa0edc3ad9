"""What is told, by which channel, in which words; that it is told once, also over deaths of the server; and who may hear it."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.test_inbox import ASK, SHELL, make, run, wsh
from tests.http.test_inbox import places as places
from tests.http.test_server_approval import ask, shown
from tests.http.test_wake import kill, make_reader, screen, type_keys
from tests.support.notice.receiver import Receiver
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


def environ(receiver: Receiver, **more: str) -> dict[str, str]:
    return {
        "WSH_APPROVALS_SERVER": "true",
        "WSH_NOTIFY_WEBHOOK": f"{receiver.url}/hook?token=sesame",
        "WSH_NOTIFY_PRESENT_S": "0",
        "WSH_NOTIFY_RETRY_S": "0.05",
        "WSH_NOTIFY_PUSH_LOOPBACK": "true",
        "DBUS_SESSION_BUS_ADDRESS": "",
    } | more


@pytest.fixture
def server(places: Places, receiver: Receiver) -> Iterator[RunningServer]:
    with running_server(places, environ=environ(receiver), check_left=False) as running:
        yield running


def hooks(receiver: Receiver) -> list[tuple[str, str | None]]:
    return [(one["kind"], one["session"]) for one in receiver.json("/hook?token=sesame")]


def wait_for(receiver: Receiver, *expected: tuple[str, str | None]) -> None:
    wait_until(lambda: sorted(hooks(receiver), key=str) == sorted(expected, key=str), seen=lambda: hooks(receiver))


def notices(server: RunningServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get("/notices?limit=1000")["notices"]
    return found


def told(server: RunningServer, kind: str) -> dict[str, str]:
    """The newest notice of that kind: its state by channel."""
    found = [one for one in notices(server) if one["kind"] == kind]
    return {one["channel"]: one["state"] for one in found[-1]["deliveries"]} if found else {}


def set_rules(server: RunningServer, *rules: dict[str, Any]) -> None:
    answer = server.request("PUT", "/notices/rules", {"rules": list(rules)})
    assert answer.status == 200, answer


def subscribe(server: RunningServer, receiver: Receiver) -> str:
    """The server's key."""
    assert server.request("POST", "/push/subscriptions", receiver.subscription()).status == 201
    return str(server.get("/push/key")["key"])


def test_each_kind_is_told_once_and_without_what_was_typed_or_printed(
    server: RunningServer, receiver: Receiver
) -> None:
    kinds = ["request", "hidden", "asks", "failed", "finished", "exited", "quiet", "told"]
    set_rules(
        server,
        {"on": [kind for kind in kinds if kind != "quiet"], "to": ["webhook"]},
        {"on": ["quiet"], "to": ["webhook"], "after_s": 0.5},
    )
    make(server, "asker", ASK, "asks")
    make(server, "secret", "sh -c 'stty -echo; printf \"password: \"; read answer'", "hidden")
    make(server, "work", SHELL, "idle")
    make(server, "still", "sleep 1000", "running")
    make(server, "broken", SHELL, "idle")
    run(server, "broken", "echo some; sh -c 'exit 3'")
    run(server, "work", "printf '\\033]9;the build is green\\007'; printf '\\033]777;notify;Deploy;went well\\033\\\\'")
    make(server, "gone", "sh -c 'echo bye; exit 4'", "exited")
    shown(server, ask(server, "touch", "sesame-file"))
    wait_for(
        receiver,
        ("asks", "asker"),
        ("hidden", "secret"),
        ("failed", "broken"),
        ("finished", "work"),
        ("told", "work"),
        ("told", "work"),
        ("quiet", "still"),
        ("exited", "gone"),
        ("request", None),
    )
    # Somebody types an answer without completing it: that is the same question.
    type_keys(server, "asker", b"ye")
    wait_until(lambda: "ye" in screen(server, "asker"))
    run(server, "broken", "true; sh -c 'exit 5'")
    wait_until(lambda: hooks(receiver).count(("failed", "broken")) == 2, seen=lambda: hooks(receiver))
    assert hooks(receiver).count(("asks", "asker")) == 1
    everything = b"".join(one.body for one in receiver.taken)
    assert not any(word in everything for word in (b"sesame", b"password", b"go on?", b"green", b"went well", b"bye"))
    texts = {one["kind"]: one["text"] for one in notices(server)}
    assert texts["asks"] == "go on? [y/N]" and texts["told"] == "Deploy: went well"
    assert {one["headers"]["idempotency-key"] for one in [vars(t) for t in receiver.taken]} >= {
        one["id"] for one in notices(server) if one["kind"] == "told"
    }
    shown_by = wsh("notify", "list").stdout
    assert "webhook sent" in shown_by and "sesame-file" in shown_by


def test_a_request_is_pushed_sealed_for_the_browser_and_says_only_that_something_waits(
    server: RunningServer, receiver: Receiver, places: Places
) -> None:
    key = subscribe(server, receiver)
    answer = ask(server, "touch", "sesame-file")
    wait_until(lambda: receiver.pushes(key), "a push", seen=lambda: notices(server))
    (push,) = receiver.pushes(key)
    assert push["id"] == f"request.{answer['result']['approval_id']}" and push["kind"] == "request"
    assert "sesame" not in json.dumps(push) and set(push) == {"id", "kind", "text", "since"}
    assert receiver.taken[-1].headers["urgency"] == "high"
    assert stat.S_IMODE(places.push.stat().st_mode) == 0o600 and stat.S_IMODE(places.outbox.stat().st_mode) == 0o600
    listed = server.get("/push/subscriptions")
    assert listed["available"] and listed["subscriptions"][0]["service"] == "127.0.0.1"
    assert "/push/1" not in json.dumps(listed)
    receiver.status = 410
    assert server.request("POST", "/notices/test", {"channel": "push"}).json["deliveries"][0]["state"] == "failed"
    wait_until(lambda: not server.get("/push/subscriptions")["subscriptions"], "the gone browser to be forgotten")


def test_a_browser_that_has_a_push_is_not_sent_it_again_because_another_one_refuses(
    server: RunningServer, receiver: Receiver
) -> None:
    set_rules(server, {"on": ["asks"], "to": ["push"]})
    subscribe(server, receiver)
    receiver.statuses["/push/2"] = 503
    assert server.request("POST", "/push/subscriptions", receiver.subscription("/push/2")).status == 201
    make(server, "asker", ASK, "asks")
    wait_until(lambda: len(receiver.refused) >= 3, "three tries")
    receiver.statuses.clear()
    wait_until(lambda: told(server, "asks") == {"push": "sent"}, seen=lambda: notices(server))
    assert [one.path for one in receiver.taken] == ["/push/1", "/push/2"]


def test_a_shell_that_was_left_has_exited_and_not_failed(server: RunningServer, receiver: Receiver) -> None:
    set_rules(server, {"on": ["failed"], "to": ["webhook"]}, {"on": ["exited"], "to": ["page"]})
    for name, typed in (("left", b"exit 3\r"), ("killed", b"kill -9 $$\r")):
        make(server, name, SHELL, "idle")
        type_keys(server, name, typed)
    wait_until(lambda: len(notices(server)) == 2, seen=lambda: notices(server))
    by = {one["session"]: {each["channel"] for each in one["deliveries"]} for one in notices(server)}
    assert by == {"left": {"page"}, "killed": {"page", "webhook"}}


def test_a_push_service_that_does_not_answer_holds_up_no_later_push_to_another(
    places: Places, receiver: Receiver
) -> None:
    with (
        running_server(places, environ=environ(receiver, WSH_NOTIFY_TIMEOUT_S="300"), check_left=False) as server,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        set_rules(server, {"on": ["asks"], "to": ["push"]})
        subscribe(server, receiver)
        one = receiver.subscription() | {"endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}/push"}
        assert server.request("POST", "/push/subscriptions", one).status == 201
        make(server, "first", ASK, "asks")
        wait_until(lambda: len(receiver.taken) == 1, "the first push", seen=lambda: notices(server))
        make(server, "second", ASK, "asks")
        wait_until(lambda: len(receiver.taken) == 2, "the second push", seen=lambda: notices(server))


def test_push_services_that_do_not_answer_hold_up_nothing_but_their_pushes(places: Places, receiver: Receiver) -> None:
    more = {"WSH_NOTIFY_TIMEOUT_S": "300", "WSH_NOTIFY_MAX_SUBSCRIPTIONS": "50"}
    with (
        running_server(places, environ=environ(receiver, **more), check_left=False) as server,
        socket.create_server(("127.0.0.1", 0), backlog=50) as silent,
    ):
        set_rules(server, {"on": ["asks"], "to": ["push"]})
        for number in range(40):  # more than the server has threads for all its other work
            one = receiver.subscription()
            one["endpoint"] = f"http://127.0.0.1:{silent.getsockname()[1]}/push/{number}"
            assert server.request("POST", "/push/subscriptions", one).status == 201
        make(server, "asker", ASK, "asks")
        wait_until(lambda: told(server, "asks") == {"push": "sending"}, seen=lambda: notices(server))
        shown(server, ask(server, "true"))


def test_what_refuses_is_tried_again_with_growing_pauses_and_what_is_over_is_not(
    server: RunningServer, receiver: Receiver
) -> None:
    receiver.status = 503
    make(server, "asker", ASK, "asks")
    wait_until(lambda: len(receiver.refused) >= 3, "three tries")
    assert told(server, "asks")["webhook"] in ("due", "sending")
    type_keys(server, "asker", b"y\r")
    wait_until(lambda: told(server, "asks")["webhook"] == "over", seen=lambda: notices(server))
    receiver.status = 201
    make(server, "other", ASK, "asks")
    wait_for(receiver, ("asks", "other"))


def test_who_typed_a_moment_ago_is_not_told_and_who_left_is(places: Places, receiver: Receiver) -> None:
    with running_server(places, environ=environ(receiver, WSH_NOTIFY_PRESENT_S="3600"), check_left=False) as server:
        make(server, "work", SHELL, "idle")
        type_keys(server, "work", b"read answer\r")
        wait_until(lambda: told(server, "asks") == {"page": "sent", "webhook": "due"}, seen=lambda: notices(server))
        type_keys(server, "work", b"yes\r")
        make(server, "left", ASK, "asks")
        wait_for(receiver, ("asks", "left"))


def test_a_person_at_a_session_is_there_also_where_an_agent_typed_last(places: Places, receiver: Receiver) -> None:
    with running_server(places, environ=environ(receiver, WSH_NOTIFY_PRESENT_S="3600"), check_left=False) as server:
        make(server, "shared", SHELL, "idle")
        make(server, "agents", SHELL, "idle")
        type_keys(server, "shared", b"true\r")
        for name in ("shared", "agents"):
            agent = {"wsh-role": "agent"}
            assert server.request("POST", f"/sessions/{name}/input", b"read answer\r", headers=agent).status < 300
        wait_for(receiver, ("asks", "agents"))
        wait_until(lambda: len(notices(server)) == 2, seen=lambda: notices(server))
        states = {one["session"]: {d["channel"]: d["state"] for d in one["deliveries"]} for one in notices(server)}
        assert states["shared"] == {"page": "sent", "webhook": "due"}


def test_a_session_that_tells_too_much_is_held_to_its_share(places: Places, receiver: Receiver) -> None:
    with running_server(places, environ=environ(receiver, WSH_NOTIFY_PER_MINUTE="3"), check_left=False) as server:
        make(server, "work", SHELL, "idle")
        run(server, "work", "for i in 1 2 3 4 5 6; do printf '\\033]9;ding %s\\007' $i; done")
        wait_until(lambda: len(notices(server)) == 6, seen=lambda: notices(server))
        wait_until(lambda: len(hooks(receiver)) == 3, seen=lambda: hooks(receiver))
        held = [one for one in notices(server) for each in one["deliveries"] if each["state"] == "held"]
        assert len(held) == 3
        assert [one["text"] for one in notices(server)] == [f"ding {i}" for i in range(1, 7)]


def test_a_rule_types_a_line_into_the_session_that_it_names_and_only_there(
    server: RunningServer, receiver: Receiver
) -> None:
    make_reader(server, "agent")
    make(server, "build", SHELL, "idle")
    make(server, "other", SHELL, "idle")
    assert wsh("notify", "add", "--on", "failed", "--to", "line").returncode == 2
    words = ("--session", "bui*", "--into", "agent", "--line", "The build failed; look at it.")
    assert wsh("notify", "add", "--on", "failed", "--to", "line", *words).returncode == 0
    assert "bui*" in wsh("notify").stdout
    run(server, "other", "sh -c 'exit 2'")
    run(server, "build", "sh -c 'exit 2'")
    wait_until(lambda: "The build failed; look at it." in screen(server, "agent"), seen=lambda: screen(server, "agent"))
    wait_until(lambda: told(server, "failed") == {"line": "sent"}, seen=lambda: notices(server))
    assert screen(server, "agent").count("The build failed") == 1
    assert wsh("notify", "remove", "4").returncode == 0 and wsh("notify", "remove", "9").returncode == 1
    assert "agent" not in wsh("notify").stdout
    assert wsh("notify", "reset").returncode == 0 and server.get("/notices/rules")["usual"]


def test_a_broken_file_of_rules_leaves_the_rules_before_it(server: RunningServer, places: Places) -> None:
    set_rules(server, {"on": ["asks"], "to": ["page"]})
    for text in ("[[rule]]\non = 7\n", "{", '[[rule]]\non = ["asks"]\nto = ["line"]\n', "other = 1\n"):
        places.notify_file.write_text(text)
        found = server.get("/notices/rules")
        assert [rule["on"] for rule in found["rules"]] == [["asks"]] and "notify.toml" in found["warning"], text
    places.notify_file.write_text('[[rule]]\non = ["told"]\nto = ["page"]\n')
    assert server.get("/notices/rules")["warning"] is None


def test_a_rule_of_a_line_that_a_person_wrote_stays_as_it_is_when_others_come_and_go(
    server: RunningServer, places: Places
) -> None:
    own = '[[rule]]\non = ["failed"]\nto = ["line"]\ninto = "{}"\nline = "look at it"\n'
    make(server, "agent", SHELL, "idle")
    for session in ("agent", "not-there"):
        places.notify_file.parent.mkdir(mode=0o700, exist_ok=True)
        places.notify_file.write_text(own.format(session))
        assert wsh("notify", "add", "--on", "told", "--to", "page").returncode == 0
        assert [(one["into"], one["front"]) for one in server.get("/notices/rules")["rules"]] == [(session, 0), ("", 0)]


def test_a_broken_file_of_rules_is_not_written_over(server: RunningServer, places: Places) -> None:
    broken = '[[rule]]\non = ["told"]\nto = ["page"]\n\n[[rule]\n'
    places.notify_file.parent.mkdir(mode=0o700, exist_ok=True)
    places.notify_file.write_text(broken)
    added = wsh("notify", "add", "--on", "asks", "--to", "page")
    assert added.returncode == 2 and "notify.toml cannot be used" in added.stderr and "reset" in added.stderr
    assert places.notify_file.read_text() == broken
    assert wsh("notify", "reset").returncode == 0
    assert wsh("notify", "add", "--on", "asks", "--to", "page").returncode == 0


def test_what_cannot_be_is_refused_and_agents_hear_nothing(server: RunningServer, receiver: Receiver) -> None:
    agent = {"wsh-role": "agent"}
    for method, path in (
        ("GET", "/notices"),
        ("GET", "/notices/rules"),
        ("GET", "/push/key"),
        ("GET", "/push/subscriptions"),
        ("DELETE", "/push/subscriptions/x"),
    ):
        assert server.request(method, path, headers=agent).status == 403, path
    good = receiver.subscription()
    assert server.request("POST", "/push/subscriptions", good, headers=agent).status == 403
    for endpoint in (
        "http://example.org/x",
        "https://user@example.org/",
        "ftp://127.0.0.1/",
        "https://a b/",
        "https://",
    ):
        answer = server.request("POST", "/push/subscriptions", good | {"endpoint": endpoint})
        assert answer.code == "invalid_request", endpoint
    keys = {"p256dh": "AAAA", "auth": good["keys"]["auth"]}
    assert server.request("POST", "/push/subscriptions", good | {"keys": keys}).code == "invalid_request"
    for rule in (
        {"on": [], "to": ["page"]},
        {"on": ["never"], "to": ["page"]},
        {"on": ["asks"], "to": ["line"], "into": "none", "line": "x\ny"},
        {"on": ["asks"], "to": ["page"], "into": "x", "line": "x"},
    ):
        assert server.request("PUT", "/notices/rules", {"rules": [rule]}).code == "invalid_request", rule
    answer = server.request("POST", "/notices/test", {"channel": "desktop"})
    assert answer.code == "invalid_request" and "no desktop" in answer.json["error"]["message"]
    assert "webhook" in wsh("notify", "test").stdout
    assert receiver.json("/hook?token=sesame")[-1]["kind"] == "told"


def test_loopback_is_no_place_for_push_unless_set(places: Places, receiver: Receiver) -> None:
    plain = environ(receiver, WSH_NOTIFY_PUSH_LOOPBACK="false", WSH_NOTIFY_WEBHOOK="http://example.org/x")
    with running_server(places, environ=plain) as server:
        answer = server.request("POST", "/push/subscriptions", receiver.subscription())
        assert answer.code == "invalid_request" and "https" in answer.json["error"]["message"]
        sent = server.request("POST", "/notices/test", {"channel": "webhook"}).json["deliveries"][0]
        assert sent["state"] == "failed" and "https" in sent["why"]


def _under_kills(places: Places, receiver: Receiver, kills: int) -> None:
    """Programs ask, send messages and fail while the server is killed again and again; what was due reaches the browser once by its id."""
    server = start_server(places, environ=environ(receiver))
    key = subscribe(server, receiver)
    rules = {"on": ["asks", "told", "failed"], "to": ["page", "push", "webhook"]}
    set_rules(server, rules)
    make(server, "work", SHELL, "idle")
    made = 0
    try:
        for round in range(kills):
            script = f"printf '\\033]9;message {round}\\007'; sh -c 'exit 7'; sleep 0.0{round % 7}; sh -c 'exit 8'"
            # An agent types: a person who does so has seen what came before.
            typed = script.encode() + b"\r"
            agent = {"wsh-role": "agent"}
            assert server.request("POST", "/sessions/work/input", typed, headers=agent).status < 300
            made += 1
            # Killed at another moment each time: while it is heard, written, sent, or after all that.
            threading.Event().wait((round * 37 % 100) / 500)
            kill(server)
            server = start_server(places, environ=environ(receiver))
        make(server, "asker", ASK, "asks")
        wanted = {f"message {n}" for n in range(kills)}
        wait_until(lambda: {one["text"] for one in notices(server)} >= wanted, seen=lambda: notices(server))
        wait_until(
            lambda: sum(one["kind"] == "failed" for one in notices(server)) == made, seen=lambda: notices(server)
        )
        wait_until(lambda: told(server, "asks").get("push") == "sent", seen=lambda: notices(server))
        wait_until(
            lambda: all(d["state"] not in ("due", "sending") for one in notices(server) for d in one["deliveries"]),
            seen=lambda: notices(server),
        )
        ids = [one["id"] for one in notices(server)]
        texts = [one["text"] for one in notices(server) if one["kind"] == "told"]
        assert len(ids) == len(set(ids)) and len(texts) == kills, "each happening is one notice"
        assert {one["id"] for one in receiver.pushes(key)} == set(ids), "every notice was pushed"
        hooked = [one["id"] for one in receiver.json("/hook?token=sesame")]
        assert len(hooked) == len(set(hooked)), "the webhook got each at most once"
        unknown = {
            one["id"]
            for one in notices(server)
            for d in one["deliveries"]
            if (d["channel"], d["state"]) == ("webhook", "unknown")
        }
        assert set(ids) - set(hooked) <= unknown, "what the webhook did not get is told to be unknown"
    finally:
        kill(server)
        with running_server(places, check_left=False):
            pass


@pytest.mark.torture
def test_kills_of_the_server_double_nothing_and_lose_nothing(places: Places, receiver: Receiver, torture: bool) -> None:
    _under_kills(places, receiver, 50 if torture else 4)


def test_a_question_that_ended_while_no_server_ran_is_not_told(places: Places, receiver: Receiver) -> None:
    receiver.status = 503
    server = start_server(places, environ=environ(receiver, WSH_NOTIFY_RETRY_S="3600"))
    try:
        make(server, "asker", ASK, "asks")
        wait_until(lambda: receiver.refused and told(server, "asks")["webhook"] == "due", "a try")
        reader = server.get("/sessions/asker")["pid"]
    finally:
        kill(server)
    os.kill(reader, signal.SIGKILL)
    kept = json.loads(places.outbox.read_bytes())
    kept["notices"][0]["deliveries"]["webhook"]["next_at"] = 0.0
    places.outbox.write_text(json.dumps(kept))
    receiver.status = 201
    with running_server(places, environ=environ(receiver), check_left=False) as after:
        wait_until(lambda: told(after, "asks")["webhook"] == "over", seen=lambda: notices(after))
        assert ("asks", "asker") not in hooks(receiver)


BROKEN = """{"floor": 1, "seq": %s, "heard": {}, "notices": [{"seq": 1, "id": "told.1", "kind": "told", "since": 1.0, "made": 1.0,
 "title": "t", "deliveries": {"webhook": {"state": "due", "tries": 0, "next_at": %s, "why": ""}}}]}"""


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"{}",
        b"[]",
        b'{"floor": 1, "seq": 1, "heard": {}, "notices": [{}]}',
        (BROKEN % ("Infinity", "0.0")).encode(),
        (BROKEN % (1, '"soon"')).encode(),
    ],
)
def test_a_broken_outbox_costs_nothing_but_what_was_due(places: Places, receiver: Receiver, content: bytes) -> None:
    places.outbox.parent.mkdir(parents=True, mode=0o700)
    places.outbox.write_bytes(content)
    places.push.write_bytes(content)
    with running_server(places, environ=environ(receiver), check_left=False) as server:
        make(server, "asker", ASK, "asks")
        wait_for(receiver, ("asks", "asker"))
