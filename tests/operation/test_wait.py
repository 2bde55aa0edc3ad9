"""What a wait counts from, in every door: the caller's last input, that of a run included."""

from __future__ import annotations

from tests.support.http.talk import talk
from tests.support.serving import running_server
from wsh.wire.system.place import Places


def test_a_text_printed_since_the_callers_last_input_ends_the_wait_at_once(places: Places) -> None:
    with running_server(places) as server:
        server.request("POST", "/sessions", {"name": "s", "command": "bash --norc --noprofile"})
        run = server.request("POST", "/sessions/s/run", {"input": "echo ready-$((40+2))"})
        assert run.status == 200, run
        # Printed before this wait began, and after the input that it waits on.
        assert server.get("/sessions/s/idle?text=ready-42&max_wait_ms=60000")["ended_by"] == "text"
        with talk(server, "/ws/json") as client:
            # Another caller has typed nothing here: for that one it counts from now on.
            waiting = {"text": "ready-42", "max_wait_ms": 200}
            assert client.fail("await_idle", waiting, session="s") == "idle_timeout"
            client.ask("send_input", {"data": "echo again-$((40+2))\r"}, session="s")
            client.ask("await_idle", {"timeout_ms": 300, "fresh": True}, session="s")
            found = client.ask("await_idle", {"text": "again-42", "max_wait_ms": 60_000}, session="s")
            assert found["ended_by"] == "text"
