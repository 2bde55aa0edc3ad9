"""When rules apply: silences by the length that each rule names, and what ends once the rule is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.test_inbox import SHELL, make, run
from tests.http.test_inbox import places as places
from tests.notice.test_notices import environ, notices, set_rules, wait_for
from tests.support.notice.receiver import Receiver
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


@pytest.fixture
def server(places: Places, receiver: Receiver) -> Iterator[RunningServer]:
    with running_server(places, environ=environ(receiver), check_left=False) as running:
        yield running


def channels(server: RunningServer, kind: str) -> list[list[str]]:
    """Of each notice of that kind, oldest first."""
    return [[each["channel"] for each in one["deliveries"]] for one in notices(server) if one["kind"] == kind]


def test_each_rule_of_a_silence_is_told_at_its_own_length(server: RunningServer) -> None:
    set_rules(
        server,
        {"on": ["quiet"], "to": ["page"], "after_s": 0.3},
        {"on": ["quiet"], "to": ["webhook"], "after_s": 0.6},
        {"on": ["quiet"], "to": ["push", "webhook", "page"]},
    )
    make(server, "still", "sleep 1000", "running")
    wait_until(lambda: len(channels(server, "quiet")) == 2, "two notices", seen=lambda: notices(server))
    assert channels(server, "quiet") == [["page"], ["webhook"]], "and none of five minutes"


def test_a_question_is_told_at_once_where_a_rule_waits_for_a_silence(
    server: RunningServer, receiver: Receiver, tmp_path: Path
) -> None:
    set_rules(server, {"on": ["quiet"], "to": ["page"], "after_s": 3600}, {"on": ["asks", "quiet"], "to": ["webhook"]})
    go = tmp_path / "go"
    script = f"until [ -e {go} ]; do sleep 0.1; done; printf 'go on? '; read answer"
    make(server, "work", f'sh -c "{script}"', "running")
    wait_until(lambda: server.get("/sessions/work")["last_activity_ms"] > 1500, "some silence")
    go.touch()
    wait_for(receiver, ("asks", "work"))


def test_new_rules_tell_of_what_ends_from_then_on_and_of_silences_that_last_already(server: RunningServer) -> None:
    def failed() -> list[Any]:
        return [one["exit_code"] for one in notices(server) if one["kind"] == "failed"]

    set_rules(server, {"on": ["request"], "to": ["page"]})
    make(server, "still", "sleep 1000", "running")
    make(server, "work", SHELL, "idle")
    for status in (3, 4):
        run(server, "work", f"sh -c 'exit {status}'")
    # Nobody looks at the session again by itself by then.
    wait_until(lambda: server.get("/sessions/still")["last_activity_ms"] > 1500, "some silence")
    set_rules(
        server, {"on": ["failed"], "to": ["page"]}, {"on": ["quiet"], "to": ["page"], "session": "still", "after_s": 1}
    )
    wait_until(lambda: channels(server, "quiet") == [["page"]], "the silence", seen=lambda: notices(server))
    run(server, "work", "sh -c 'exit 5'")
    wait_until(failed, "the failure")
    assert failed() == [5]
    # Nor do the usual rules tell of what other rules had left out.
    set_rules(server, {"on": ["request"], "to": ["page"]})
    run(server, "work", "sh -c 'exit 6'")
    set_rules(server, {"on": ["failed"], "to": ["page"]})
    run(server, "work", "sh -c 'exit 7'")
    wait_until(lambda: len(failed()) > 1, "the failure")
    assert failed() == [5, 7]
