"""The MCP door: reading a screen against a trivial tool over HTTP, and how soon `wsh mcp` answers its first request."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from typing import Any

from tests.support.serving import RunningServer, running_server

from bench.private import private_places
from bench.row import Row, at_most, at_most_ratio, median
from wsh.wire.system.place import Places

READS = 150
STARTS = 7

PAINTER = """
import sys
for n, _ in enumerate(sys.stdin):
    rows = (f"\\x1b[{r};1H\\x1b[3{(r + n) % 8}m{n:08d} " + "word \\x1b[1mbold\\x1b[22m " * 5 for r in range(1, 24))
    sys.stdout.write("".join(rows))
    sys.stdout.flush()
"""
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def run() -> list[Row]:
    with private_places() as places:
        return [*_reads(places), *_short_calls(places), *_first_answers(places)]


class _Client:
    """One kept-alive connection with an MCP session."""

    def __init__(self, server: RunningServer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self._headers = {
            **server.auth,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._next = 0
        answer = self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
        self._headers |= {
            "Mcp-Session-Id": str(answer.getheader("mcp-session-id")),
            "Mcp-Protocol-Version": "2025-11-25",
        }
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _post(self, message: dict[str, Any]) -> http.client.HTTPResponse:
        self._connection.request("POST", "/mcp", json.dumps(message), self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status < 300 and b'"isError":true' not in body and b'"error":' not in body, body[:500]
        return answer

    def time(self, tool: str, **arguments: Any) -> float:
        """Milliseconds until the whole answer is here."""
        self._next += 1
        call = {"name": tool, "arguments": arguments}
        began = time.perf_counter()
        self._post({"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": call})
        return (time.perf_counter() - began) * 1000


def _reads(places: Places) -> list[Row]:
    """Each read finds a screen that changed since the last one: a full one, coloured."""
    with running_server(places) as server:
        painter = places.state.parent / "painter.py"
        painter.write_text(PAINTER)
        made = server.request("POST", "/sessions", {"name": "s", "command": f"{sys.executable} -u {painter}"})
        assert made.status == 201, made
        client = _Client(server)
        times: dict[str, list[float]] = {"trivial": [], "plain": [], "styled": []}
        for _ in range(20):
            client.time("wsh_get_screen", session="s", format="styled")
        for _ in range(READS):
            for name, taken in times.items():
                client.time("wsh_send_input", session="s", input="\n")
                client.time("wsh_await_quiesce", session="s", timeout_ms=10)
                if name == "trivial":
                    taken.append(client.time("wsh_screen_mode", session="s"))
                else:
                    taken.append(client.time("wsh_get_screen", session="s", format=name))
    peer = median(times["trivial"])
    trivial = "wsh_screen_mode"
    return [
        at_most_ratio("mcp", "wsh_get_screen plain, p50", median(times["plain"]), peer, "ms", trivial, 1.5),
        at_most_ratio("mcp", "wsh_get_screen styled, p50", median(times["styled"]), peer, "ms", trivial, 2),
    ]


def _first_answers(places: Places) -> list[Row]:
    with running_server(places):
        warm = [_first_answers_of_one()[0] for _ in range(STARTS)]
    cold, tools = [], []
    for _ in range(STARTS):
        first, listed = _first_answers_of_one()
        cold.append(first)
        tools.append(listed)
        subprocess.run([*WSH, "stop"], check=True, capture_output=True)
    start = median([_interpreter_start() for _ in range(STARTS)])
    title = "wsh mcp: the list of tools, a server must be started"
    return [
        at_most("mcp", "wsh mcp: first answer, a server runs", median(warm), 0.5, "s"),
        Row("mcp", title, median(tools), "s", median(tools) / start, "none", True, "the interpreter's start", start),
        at_most_ratio(
            "mcp",
            "wsh mcp: first answer, a server must be started",
            median(cold),
            start,
            "s",
            "the interpreter's start",
            25,
        ),
    ]


def _interpreter_start() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    return time.perf_counter() - began


ANSWERER = """
import json, sys
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        result = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"mode": "normal"}, "isError": False}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\\n")
        sys.stdout.buffer.flush()
"""


class _Host:
    """The client's side of a program that speaks MCP on its pipes."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._next = 0
        self.time("initialize", HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def time(self, method: str, params: dict[str, Any]) -> float:
        assert self.process.stdout is not None
        self._next += 1
        began = time.perf_counter()
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while json.loads(self.process.stdout.readline()).get("id") != self._next:
            pass
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(15)


def _short_calls(places: Places) -> list[Row]:
    """The shortest call there is, against a program that answers from memory."""
    with running_server(places) as server:
        made = server.request("POST", "/sessions", {"name": "t", "command": "cat"})
        assert made.status == 201, made
        ours, theirs = _Host([*WSH, "mcp"]), _Host([sys.executable, "-S", "-c", ANSWERER])
        call = {"name": "wsh_screen_mode", "arguments": {"session": "t"}}
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(500):
            times["ours"].append(ours.time("tools/call", call))
            times["theirs"].append(theirs.time("tools/call", call))
        ours.close()
        theirs.close()
    value, peer = (median(found[100:]) for found in times.values())
    return [at_most_ratio("mcp", "trivial call over stdio, p50", value, peer, "ms", "a hand-written answerer", 5)]


WSH = [sys.executable, "-m", "wsh.cli.main"]


def _first_answers_of_one() -> tuple[float, float]:
    """Seconds from starting `wsh mcp` to the answer to `initialize`, which was written at once, and to the list of tools."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}) + "\n"
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
    wanted = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}) + "\n"
    began = time.perf_counter()
    with subprocess.Popen([*WSH, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(request.encode())
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        taken = time.perf_counter() - began
        assert answer["result"]["serverInfo"]["name"] == "wsh", answer
        process.stdin.write((initialized + wanted).encode())
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        listed = time.perf_counter() - began
        process.stdin.close()
        process.wait(15)
    return taken, listed
