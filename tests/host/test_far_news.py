"""What happens on another machine is found, told and answered here, and says from where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.host.conftest import Net
from tests.support.mcp.host import HttpHost
from tests.support.waiting import wait_until
from wsh.wire.token_file import TokenFile

pytestmark = pytest.mark.accept


def _open(net: Net, name: str) -> str:
    made = net.server.request("POST", "/sessions", {"name": name, "command": "bash --norc --noprofile"})
    assert made.status == 201, made
    return "/sessions/" + name.replace("/", "%2F")


def search(net: Net, asked: dict[str, object]) -> dict[str, Any] | None:
    """None where a machine was too busy to be searched in time, which the answer tells."""
    answer: dict[str, Any] = net.server.request("POST", "/workspace/search", asked).json
    return None if any(one["code"] == "HOST_NOT_SEARCHED" for one in answer["warnings"]) else answer


def test_transcripts_of_other_machines_are_searched_and_shown(net: Net) -> None:
    path = _open(net, "near/find")
    body = {"input": "echo zebra-$((6*7))", "format": "plain"}
    assert net.server.request("POST", f"{path}/run", body).json["exit_code"] == 0

    def find(**more: object) -> list[dict[str, Any]]:
        asked = {"query": "zebra-42", "match": "literal", "mode": "transcripts", **more}
        answer = wait_until(lambda: search(net, asked), "an answer of all machines")
        assert answer is not None
        return list(answer["hits"])

    (hit,) = wait_until(find, "the transcript")
    assert hit["transcript"]["session"] == "near/find" and hit["transcript"]["host"] == "near"
    assert [one["id"] for one in find(session=["near/find"])] == [hit["id"]]
    assert find(session=["far/find"]) == [] and find(session=["find"]) == []
    shown = net.server.request("POST", "/workspace/show_file", {"id": hit["id"]}).json
    assert "zebra-42" in shown["text"] and shown["transcript"]["session"] == "near/find"
    assert net.server.request("DELETE", path).status == 204


def test_the_inbox_and_a_request_of_another_machine_are_seen_and_answered_here(net: Net) -> None:
    path = _open(net, "near/ask")
    net.server.request("POST", f"{path}/input", b"read -sp 'Secret? ' x; echo got-$x\r")
    wait_until(lambda: "Secret?" in json.dumps(net.server.get(f"{path}/screen?format=plain")["lines"]), "the prompt")

    def inbox() -> list[dict[str, Any]]:
        return [one for one in net.server.get("/inbox")["items"] if one["session"] == "near/ask"]

    (entry,) = wait_until(inbox, "the entry")
    assert entry["host"] == "near" and entry["id"].startswith("near/")
    agent = TokenFile(net.server.places.tokens).add_agent("asker")
    refused = net.server.request("POST", f"{path}/input", b"hush\r", token=agent)
    assert refused.code == "hidden_prompt", refused

    def requests() -> list[dict[str, Any]]:
        return [r for r in net.server.get("/approvals")["requests"] if r["host"] == "near" and r["answerable"]]

    (request,) = wait_until(requests, "the request")
    assert request["id"].startswith("near/")
    assert any(one["request_id"] == request["id"] for one in inbox())
    answer = {"digest": request["digest"], "decision": "decline"}
    address = "/approvals/" + request["id"].replace("/", "%2F")
    assert net.server.request("POST", address, answer).status == 200
    assert net.server.request("POST", address, answer).code == "approval_settled"
    assert net.server.request("DELETE", path).status == 204


def test_what_a_program_says_there_is_a_notice_here_also_after_a_cut(net: Net) -> None:
    path = _open(net, "near/say")

    def told(text: str) -> list[dict[str, Any]]:
        return [one for one in net.server.get("/notices")["notices"] if one["text"] == text]

    net.server.request("POST", f"{path}/input", b"printf '\\e]9;first\\a'\r")
    (notice,) = wait_until(lambda: told("first"), "the notice")
    assert notice["session"] == "near/say" and notice["host"] == "near" and "near/say" in notice["title"]
    machine = net.ssh.machines["near"]
    net.server.request(
        "POST", f"{path}/input", b"while [ ! -e $HOME/say ]; do sleep 0.05; done; printf '\\e]9;second\\a'\r"
    )
    machine.stop()
    try:
        wait_until(lambda: not net.host("near")["online"], "the host to be away")
        (machine.folder / "home" / "say").touch()
    finally:
        machine.start()
    assert len(wait_until(lambda: told("second"), "the notice of the time between")) == 1
    assert len(told("first")) == 1
    assert net.server.request("DELETE", path).status == 204


def test_an_mcp_client_reads_far_resources_and_hears_how_a_far_run_goes(net: Net) -> None:
    path = _open(net, "near/mcp")
    with HttpHost(f"{net.server.url}/mcp", net.server.token) as host:
        host.initialize()
        arguments = {
            "session": "near/mcp",
            "input": "for i in 1 2 3 4; do echo step-$i; sleep 0.3; done",
            "max_wait_ms": 60_000,
        }
        host.call("wsh_run_command", arguments, progressToken="tok")
        told = [m["params"]["message"] for m in host.seen if m.get("method") == "notifications/progress"]
        assert any("step-" in one for one in told), told
        uri = "wsh://sessions/near%2Fmcp/screen"
        read = host.request("resources/read", {"uri": uri})["result"]["contents"][0]["text"]
        assert "step-4" in read
        listed = host.request("resources/read", {"uri": "wsh://sessions"})["result"]["contents"][0]["text"]
        assert "near/mcp" in listed
    assert net.server.request("DELETE", path).status == 204
