"""A full disk costs what would have been written, is told as such in every door, and is over when there is room again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.support.serving import RunningServer, running_server
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.waiting import wait_until
from tests.support.warm import WarmPopen
from wsh.wire.system.place import Places

WAIT_S = 60.0
HEADLESS = {
    "action": "execute",
    "invocation": {"mode": "headless", "intent": "execute_command"},
    "execution": {"command": "pwd"},
}


def call_tool(server: RunningServer, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call over `wsh mcp`: the structured result, or the data of an error."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
    ]
    process = WarmPopen(
        [sys.executable, "-m", "wsh.cli.main", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        for line in lines:
            process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        for answer in map(json.loads, process.stdout):
            if answer.get("id") == 2:
                if "error" in answer:
                    return {"isError": True, **answer["error"]["data"]}
                result = answer["result"]
                return {"isError": result.get("isError", False), **result["structuredContent"]}
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(WAIT_S)
    raise AssertionError("no answer")


async def ask_socket(server: RunningServer, method: str, params: dict[str, Any]) -> dict[str, Any]:
    async with connect(f"{server.ws_url}/ws/json", additional_headers=server.auth) as socket:
        await socket.send(json.dumps({"id": 1, "method": method, "params": params}))
        while True:
            said: dict[str, Any] = json.loads(await socket.recv())
            if said.get("id") == 1:
                return said


def journal_of(server: RunningServer, name: str) -> str:
    return str(server.get(f"/sessions/{name}")["journal"])


def fill(disk: SmallDisk, what: str) -> None:
    {"space": disk.fill, "inodes": disk.fill_inodes, "writing": disk.protect}[what]()


@pytest.mark.parametrize("what", ["space", "inodes", "writing"])
async def test_a_disk_that_is_full_at_the_start_is_told_in_every_door_and_used_when_there_is_room(
    places: Places, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOWED_COMMANDS", "true")
    with small_disk(places) as disk:
        fill(disk, what)
        with running_server(places, environ=disk.enter(tmp_path), expect_alive=True) as server:
            # terminals work, and say that nothing of them is kept
            made = server.request("POST", "/sessions", {"name": "a", "command": "bash --norc"})
            assert made.status == 201, made
            if (
                what == "inodes"
            ):  # a folder needs no space: with that alone missing, the first byte that is printed shows it
                assert made.json["journal"] == "full"
            ran = server.request("POST", "/sessions/a/run", {"input": "echo on a full disk"})
            assert ran.status == 200 and ran.json["output"].strip() == "on a full disk", ran
            wait_until(lambda: journal_of(server, "a") == "full", "the journal's state")
            warnings = server.get("/server/info")["warnings"]
            assert any("session a" in text for text in warnings), warnings
            socket = await ask_socket(server, "list_sessions", {})
            assert [info["journal"] for info in socket["result"]] == ["full"], socket

            # MCP works; what must be written first is refused in words that say why
            listed = call_tool(server, "wsh_list_sessions", {})
            assert not listed["isError"], listed
            executed = call_tool(server, "execute_command", {"command": "true"})
            assert (executed["isError"], executed["code"]) == (True, "DISK_FULL"), executed
            refused = server.request("POST", "/terminal", HEADLESS)
            assert refused.status == 507, json.dumps(refused.json)
            assert refused.json["error"]["details"]["reason"] == "disk_full", refused
            contract = call_tool(server, "memory_terminal_interactive", HEADLESS)
            assert contract["error"]["code"] != "PM_TERM_INTERNAL", contract
            assert contract["error"]["details"]["lacking"] == what, contract
            (places.config.parent / "workspace").mkdir()
            (places.config.parent / "workspace" / "a.py").write_text("def f(): pass\n")
            wanted = {"workspace": str(places.config.parent / "workspace")}
            built = server.request("POST", "/workspace/index_build", wanted)
            assert (built.status, built.code) == (507, "disk_full"), built
            status = server.request("POST", "/workspace/index_status", wanted)
            assert status.status == 200 and status.json["transcripts"] is None, status
            assert "Traceback" not in server.output.read_text()

            disk.free()
            executed = call_tool(server, "execute_command", {"command": "true"})
            assert not executed["isError"], executed
            assert server.request("POST", "/terminal", HEADLESS).status == 200
            assert server.request("POST", "/workspace/index_build", wanted).status == 200

            def kept() -> bool:
                server.request("POST", "/sessions/a/run", {"input": "echo there is room"})
                return journal_of(server, "a") == "ok"

            wait_until(kept, "the journal to go on")
            wait_until(lambda: any("/snapshot." in name for name in disk.list_files()), "a snapshot")
            wait_until(lambda: not server.get("/server/info")["warnings"], "the warnings to go")
            found = call_tool(server, "search", {"query": "full", "mode": "transcripts"})
            assert [hit["transcript"]["session"] for hit in found["hits"]], found


def test_a_disk_that_fills_later_loses_no_transcript_and_no_index(places: Places, tmp_path: Path) -> None:
    with small_disk(places) as disk, running_server(places, environ=disk.enter(tmp_path), expect_alive=True) as server:
        server.request("POST", "/sessions", {"name": "a", "command": "bash --norc"})
        server.request("POST", "/sessions/a/run", {"input": "echo before"})
        wait_until(lambda: bool(hits(server, "before")), "the first transcript")
        disk.fill()
        server.request("POST", "/sessions/a/run", {"input": "echo meanwhile; seq 1000"})
        assert hits(server, "before"), "what was there can be searched on a full disk"
        wait_until(lambda: bool(server.get("/server/info")["warnings"]), "a warning")
        disk.free()
        wait_until(lambda: bool(hits(server, "meanwhile")), "what was printed on the full disk")
        assert hits(server, "before")


def test_what_was_written_before_the_disk_became_read_only_stands_in_the_way_of_nothing(
    places: Places, tmp_path: Path
) -> None:
    with small_disk(places) as disk:
        environ = disk.enter(tmp_path)
        with running_server(places, environ=environ) as server:
            server.request("POST", "/sessions", {"name": "a", "command": "bash --norc"})
            server.request("POST", "/sessions/a/run", {"input": "echo before"})
            wait_until(lambda: bool(hits(server, "before")), "the first transcript")
            assert server.request("POST", "/terminal", HEADLESS).status == 200
        disk.protect()
        with running_server(places, environ=environ, expect_alive=True) as server:
            refused = server.request("POST", "/terminal", HEADLESS)
            assert refused.status == 507, json.dumps(refused.json)
            assert refused.json["error"]["details"]["lacking"] == "writing", refused
            assert "is read-only" in json.dumps(refused.json), refused
            assert server.request("POST", "/sessions", {"name": "b", "command": "cat"}).status == 201
            assert "Traceback" not in server.output.read_text()
            disk.free()
            assert server.request("POST", "/terminal", HEADLESS).status == 200


def hits(server: RunningServer, query: str) -> list[Any]:
    reply = server.request("POST", "/workspace/search", {"query": query, "mode": "transcripts"})
    assert reply.status == 200, reply
    found: list[Any] = reply.json["hits"]
    return found
