"""A whole server, a secret typed through every door, and then a search through everything that was written."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support.http.talk import talk
from tests.support.serving import RunningServer, running_server
from tests.support.warm import WarmPopen
from wsh.wire.system.place import Places

SECRET = "correct-horse-41"
ASK = "python3 -c \"import getpass; print('length', len(getpass.getpass('[sudo] password for me: ')))\""


def call_mcp(server: RunningServer, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Tool calls through `wsh mcp`, as an agent's host makes them."""
    lines: list[dict[str, Any]] = [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    with WarmPopen(
        [sys.executable, "-m", "wsh.cli.main", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        results = []
        for number, (name, arguments) in enumerate(calls, 1):
            params = {"name": name, "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while (answer := json.loads(process.stdout.readline())).get("id") != number:
                pass
            results.append(answer["result"]["structuredContent"])
        process.stdin.close()
        process.wait(60)
    return results


def test_a_secret_typed_through_any_door_is_found_in_no_file(places: Places) -> None:
    # An agent types it, too, as where the user allows that.
    with running_server(places, environ={"WSH_APPROVALS_HIDDEN_INPUT": "allow"}) as server:
        server.request("POST", "/sessions", {"name": "s", "command": "bash --norc"})

        def ask() -> None:
            asked = server.request("POST", "/sessions/s/run", {"input": ASK, "timeout_ms": 300})
            assert asked.json["finished_by"] == "prompt", asked
            assert server.get("/sessions/s/state")["hidden_prompt"] == "yes"

        ask()
        done = server.request("POST", "/sessions/s/run", {"input": SECRET, "timeout_ms": 60_000}).json
        assert (done["finished_by"], done["exit_code"]) == ("command", 0) and "length 16" in done["output"]
        ask()
        assert server.request("POST", "/sessions/s/input", f"{SECRET}\r".encode()).status == 204
        server.get("/sessions/s/idle?prompt=true&max_wait_ms=60000")
        with talk(server, "/sessions/s/ws/json") as client:
            client.ask("subscribe", {"events": ["lines", "input", "commands", "activity"]})
            ask()
            client.ask("send_input", {"data": f"{SECRET}\r"})
            told = client.event("command_finished", timeout=60)
            assert told["command"]["exit_code"] == 0
            assert SECRET not in json.dumps(list(client.events))
        ran, asked, typed = call_mcp(
            server,
            ("wsh_run_command", {"session": "s", "input": "read -s word", "timeout_ms": 300}),
            ("wsh_run_command", {"session": "s", "input": SECRET}),
            ("wsh_run_command", {"session": "s", "input": "echo ${#word}"}),
        )
        assert (ran["finished_by"], asked["finished_by"], typed["output"]) == ("prompt", "command", "16")
        commands = server.get("/sessions/s/commands")
        assert len(commands) == 5 and SECRET not in json.dumps(commands)
        server.stop()
        written = [path for path in places.state.parent.parent.rglob("*") if path.is_file()]
        assert any("journal" in path.name for path in written)
        assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
        assert SECRET not in server.output.read_text()
