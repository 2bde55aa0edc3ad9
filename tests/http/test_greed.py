"""One caller cannot take what others need: waits, WebSockets with their subscriptions, overlays and panels are counted per caller."""

from __future__ import annotations

import contextlib
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.serving import running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile

FEW = {"WSH_SERVER_MAX_WAITS": "3", "WSH_SERVER_MAX_SOCKETS": "3", "WSH_SESSION_MAX_ELEMENTS": "3"}


def test_a_greedy_agent_is_refused_and_the_owner_goes_on(places: Places) -> None:
    with running_server(places, environ=FEW) as server, contextlib.ExitStack() as stack:
        agent = TokenFile(places.tokens).add_agent("greedy")
        assert server.request("POST", "/sessions", {"name": "s", "command": "cat"}).status == 201

        for kind in ("overlay", "panel"):
            body = {"x": 0, "y": 0, "width": 2, "height": 1, "spans": []}
            if kind == "panel":
                body = {"position": "bottom", "height": 1, "spans": []}
            made = [server.request("POST", f"/sessions/s/{kind}", body, token=agent) for _ in range(4)]
            assert [reply.status for reply in made] == [201, 201, 201, 429], made
            other = {"Wsh-Role": "agent", "Wsh-Agent": "another-name"}
            assert server.request("POST", f"/sessions/s/{kind}", body, token=agent, headers=other).status == 429
            assert server.request("POST", f"/sessions/s/{kind}", body).status == 201
            gone = made[0].json["id"]
            assert server.request("DELETE", f"/sessions/s/{kind}/{gone}", token=agent).status == 204
            assert server.request("POST", f"/sessions/s/{kind}", body, token=agent).status == 201

        head = {"Authorization": f"Bearer {agent}"}
        sockets = [stack.enter_context(connect(f"{server.ws_url}/ws/json", additional_headers=head)) for _ in range(3)]
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{server.ws_url}/ws/json", additional_headers=head)
        assert refused.value.response.status_code == 429
        stack.enter_context(connect(f"{server.ws_url}/ws/json", additional_headers=server.auth))
        sockets[0].close()

        def reconnects() -> bool:
            try:
                stack.enter_context(connect(f"{server.ws_url}/ws/json", additional_headers=head))
            except InvalidStatus:
                return False
            return True

        wait_until(reconnects, "the place of the socket that was closed")

        path = "/sessions/s/idle?text=never&max_wait_ms=60000"
        statuses: list[int] = []

        def wait(token: str) -> None:
            statuses.append(server.request("GET", path, token=token, timeout=120).status)

        waiting = [threading.Thread(target=wait, args=(agent,)) for _ in range(4)]
        for thread in waiting:
            thread.start()
        wait_until(lambda: 429 in statuses, "the refusal of one wait too many")
        assert server.request("GET", "/sessions/s/idle?timeout_ms=0").status == 200
        assert server.request("DELETE", "/sessions/s").status == 204
        for thread in waiting:
            thread.join(60)
        assert statuses.count(429) == 1 and len(statuses) == 4
