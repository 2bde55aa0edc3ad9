"""Streamable HTTP: what clients send around their messages."""

from __future__ import annotations

from tests.support.mcp.door import RunningDoor
from tests.support.mcp.host import HttpHost, parse_events
from tests.support.waiting import wait_until


def test_a_stream_that_is_asked_to_go_on_after_an_event_begins_anew(http: HttpHost, door: RunningDoor) -> None:
    """Events have no ids here, and clients repeat ids of another server."""
    headers = {**http.headers({}), "accept": "text/event-stream", "last-event-id": "zzz"}
    with http.client.stream("GET", http.url, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        index = door.shelf.shelf
        assert index is not None
        wait_until(lambda: index.wanted, what="the end of the handshake")
        door.loop.call_soon_threadsafe(index.note_list)
        assert next(parse_events(response.iter_lines()))["method"] == "notifications/resources/list_changed"
