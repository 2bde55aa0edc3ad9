"""Streamable HTTP: what clients send around their messages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support.mcp.door import RunningDoor
from tests.support.mcp.host import LEGACY, HttpHost, failure, parse_events, structured
from tests.support.waiting import HANG_S, wait_until


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


def test_an_id_that_is_in_use_is_refused_and_the_first_request_has_its_answer(
    http: HttpHost, door: RunningDoor
) -> None:
    call = {"name": "slow", "arguments": {"ms": 60_000, "key": "first"}}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(http.request, "tools/call", call, id=7)
        wait_until(lambda: door.log.started == ["first"])
        again = http.post({"jsonrpc": "2.0", "id": "7", "method": "ping"})
        assert again.status_code == 400
        assert again.json()["error"]["code"] == -32600 and "in use" in again.json()["error"]["message"]
        http.notify("$/cancelRequest", {"id": 7})
        assert failure(first.result(HANG_S))["code"] == "CANCELLED"
    assert "result" in http.request("ping", id=7)


def test_the_end_of_a_session_is_told_also_if_its_client_never_said_that_the_handshake_is_over(
    door: RunningDoor,
) -> None:
    with HttpHost(door.url) as host:
        start = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "terse", "version": "1"}}
        host.version = host.request("initialize", start)["result"]["protocolVersion"]
        owner = structured(host.call("echo", {"text": "hello"}))["caller"]
        assert [client["client"] for client in door.endpoint.door.list_clients()] == ["terse"]
    wait_until(lambda: owner in door.log.ended_owners)
    assert door.endpoint.door.list_clients() == []
