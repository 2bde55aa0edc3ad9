"""Shapes of the public API that its page and recipes use, beside our own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.http.talk import talk
from tests.support.serving import RunningServer

Open = Callable[..., str]


def test_lifecycle_events_carry_their_facts_as_params_too(server: RunningServer) -> None:
    with talk(server, "/ws/json") as client:
        client.ask("create_session", {"name": "life-one", "command": "cat", "tags": ["x"]})
        created = client.event("session_created")
        assert set(created["params"]) == {"name", "pid", "command", "rows", "cols", "clients", "tags", "server"}
        assert (created["params"]["name"], created["params"]["tags"], created["name"]) == (
            "life-one",
            ["x"],
            "life-one",
        )
        assert created["params"]["pid"] == created["info"]["pid"] > 0
        client.ask("update_tags", {"session": "life-one", "add": ["y"], "remove": ["x"]})
        tagged = client.event("session_tags_changed")
        assert tagged["params"] == {"name": "life-one", "tags": ["y"]} and tagged["added"] == ["y"]
        client.ask("rename_session", {"session": "life-one", "new_name": "life-two"})
        renamed = client.event("session_renamed")
        assert (
            renamed["params"] == {"old_name": "life-one", "new_name": "life-two"} and renamed["new_name"] == "life-two"
        )
        client.ask("kill_session", {"session": "life-two"})
        gone = client.event("session_destroyed")
        assert gone["params"] == {"name": "life-two"} and "exit_code" in gone


def test_sessions_are_listed_by_several_tags(server: RunningServer, open_session: Open) -> None:
    with talk(server, "/ws/json") as client:
        a, b, c = (open_session("cat") for _ in range(3))
        for name, tag in ((a, "red"), (b, "blue"), (c, "green")):
            client.ask("update_tags", {"session": name, "add": [tag]})
        assert {s["name"] for s in client.ask("list_sessions", {"tag": ["red", "blue"]})} == {a, b}
        assert {s["name"] for s in client.ask("list_sessions", {"tag": "red,green"})} == {a, c}
        assert len(client.ask("list_sessions", {"tag": []})) >= 3
        assert client.fail("list_sessions", {"tag": ["a b"]}) == "invalid_tag"


def test_the_servers_mode_is_told_where_none_is_given(server: RunningServer) -> None:
    with talk(server, "/ws/json") as client:
        for wanted in (False, True):
            assert client.ask("set_server_mode", {"persistent": wanted}) == {"persistent": wanted}
            assert client.ask("set_server_mode", {}) == {"persistent": wanted}
            assert client.ask("set_server_mode") == {"persistent": wanted}


def test_quiesce_ms_of_a_subscription_is_its_idle_timeout(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    with talk(server, "/ws/json") as client:
        client.ask("subscribe", {"events": ["lines"], "quiesce_ms": 30, "format": "plain"}, session=name)
        assert client.event("idle")["session"] == name


@pytest.mark.parametrize("kind", ["overlay", "panel"])
@pytest.mark.parametrize("colour", ["red", "#102030", {"indexed": 3}, {"rgb": {"r": 1, "g": 2, "b": 3}}])
def test_a_background_may_stand_in_an_object(
    server: RunningServer, open_session: Open, kind: str, colour: object
) -> None:
    place = {"x": 0, "y": 0, "width": 3} if kind == "overlay" else {"position": "top"}
    name = open_session("cat")
    with talk(server, "/ws/json") as client:
        shape = {**place, "height": 1, "spans": [{"text": "x"}]}
        plain = client.ask(f"create_{kind}", {**shape, "background": colour}, session=name)["id"]
        wrapped = client.ask(f"create_{kind}", {**shape, "background": {"bg": colour}}, session=name)["id"]
        shown = [client.ask(f"get_{kind}", {"id": id}, session=name)["background"] for id in (plain, wrapped)]
        assert shown[0] == shown[1]
        client.ask(f"patch_{kind}", {"id": plain, "background": {"bg": "blue"}}, session=name)
        assert client.ask(f"get_{kind}", {"id": plain}, session=name)["background"] == {"indexed": 4}
        assert client.fail(f"patch_{kind}", {"id": plain, "background": {"bg": "no colour"}}, session=name)
