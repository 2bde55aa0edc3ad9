"""When rules apply: silences by the length that each rule names, and what ends once the rule is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.test_inbox import make
from tests.http.test_inbox import places as places
from tests.notice.test_notices import environ, notices, set_rules
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
