"""What the owner sees of approvals, policy, audit and clients, and nobody else."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.bridge.program import running_desktop
from tests.serving import RunningServer, wait_for

ASK: dict[str, Any] = {
    "action": "execute",
    "invocation": {"mode": "interactive", "intent": "execute_command"},
    "execution": {"command": "echo", "args": ["asked for"]},
    "runtime": {"timeout_ms": 4000, "cwd": "/usr"},
}


def test_a_request_is_shown_while_it_waits_and_afterwards_with_its_end(server: RunningServer) -> None:
    answers: list[Any] = []

    def waiting() -> list[Any]:
        return [one for one in server.get("/approvals")["requests"] if one["state"] == "waiting"]

    with running_desktop(server.places.desktop_info, "ignore"):
        asking = threading.Thread(target=lambda: answers.append(server.request("POST", "/terminal", ASK).json))
        asking.start()
        wait_for(lambda: bool(waiting()), "the request waits")
        (shown,) = waiting()
        asking.join(20)
    assert (shown["state"], shown["kind"], shown["command"], shown["cwd"]) == (
        "waiting",
        "run",
        "echo 'asked for'",
        "/usr",
    )
    assert shown["asker"] and shown["since"] <= time.time() and 3 < shown["deadline"] - shown["since"] <= 4
    ended = server.get("/approvals")["requests"][0]
    assert ended["state"] != "waiting" and ended["ended"] >= ended["since"]
    assert shown["trace_id"] == ended["trace_id"] == answers[0]["correlation"]["trace_id"]
    entries = server.get("/audit?limit=2")["entries"]
    assert [entry["kind"] for entry in entries] == ["decision", "approval"]
    assert entries[-1]["trace_id"] == shown["trace_id"]


def test_a_broken_policy_is_shown_with_its_warning(server: RunningServer) -> None:
    shipped = server.get("/policy")
    assert shipped["warning"] is None and shipped["rules"] and not shipped["exists"]
    file = server.places.policy_file
    file.write_text("this is = not [a policy")
    try:
        file.chmod(0o600)
        broken = server.get("/policy")
    finally:
        file.unlink()
    assert broken["exists"] and "cannot be used" in broken["warning"]


def test_only_the_owner_sees_any_of_it(server: RunningServer) -> None:
    for path in ("/approvals", "/policy", "/audit", "/clients"):
        refused = server.request("GET", path, headers={"wsh-role": "agent"})
        assert (refused.status, refused.code) == (403, "forbidden"), path
        assert server.request("GET", path, token=None).status == 401
    assert server.request("GET", "/audit?limit=0").status == 400
    assert server.get("/clients") == {"clients": []}
