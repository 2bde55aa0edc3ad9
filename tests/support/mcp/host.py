"""MCP hosts for tests: one that speaks raw lines to a `wsh mcp` process, one that speaks raw HTTP.

Both give back exactly what was on the wire. `request` waits for the answer to one id and keeps everything else that
came in `seen`, in order.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx2

from tests.support.waiting import HANG_S
from tests.support.warm import WarmPopen

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "raw-test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]


def envelope(params: Mapping[str, Any] | None) -> Json:
    """`params` as a modern request carries them."""
    given = dict(params or {})
    return given | {"_meta": {**ENVELOPE, **given.get("_meta", {})}}


class StdioHost:
    """A `wsh mcp` process with pipes. Use as a context manager; the process is gone afterwards."""

    def __init__(
        self,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        command: Sequence[str] | None = None,
        modern: bool = False,
    ) -> None:
        self.modern = modern
        self.process = WarmPopen(
            list(command or [sys.executable, "-m", "wsh.cli.main", "mcp", *args]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self.seen: list[Json] = []
        self.errors = bytearray()
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._next = 0
        targets = (self._read, self._read_errors)
        self._threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_raw(json.dumps(message).encode() + b"\n")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    def receive(self, timeout: float = HANG_S) -> Json:
        """The next message, whatever it is."""
        line = self._lines.get(timeout=timeout)
        if line is None:
            raise EOFError(f"wsh mcp ended: {self.errors.decode()}")
        message: Json = json.loads(line)
        return message

    def start_request(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> Any:
        if id is None:
            self._next += 1
            id = self._next
        body = envelope(params) if self.modern else dict(params or {})
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": body})
        return id

    def wait_for(self, wanted: Callable[[Json], bool], timeout: float = HANG_S) -> Json:
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing of it came; seen: {self.seen[-5:]}")
            try:
                message = self.receive(left)
            except queue.Empty:
                continue
            if wanted(message):
                return message
            self.seen.append(message)

    def wait_answer(self, id: Any, timeout: float = HANG_S) -> Json:
        return self.wait_for(lambda m: m.get("id") == id and "method" not in m, timeout)

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float = HANG_S) -> Json:
        return self.wait_answer(self.start_request(method, params), timeout)

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float = HANG_S, **meta: Any
    ) -> Json:
        params: Json = {"name": name, "arguments": dict(arguments or {})}
        if meta:
            params["_meta"] = meta
        return self.request("tools/call", params, timeout=timeout)

    def initialize(self, version: str = LEGACY) -> Json:
        answer = self.request(
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw-test", "version": "1"}},
        )
        self.notify("notifications/initialized")
        return answer

    def close(self, timeout: float = HANG_S) -> int:
        """Close stdin and wait for the end; the status."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._join()
        return status

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(HANG_S)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.close()
        elif self.process.stdin is not None and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
            self._join()


class HttpHost:
    """Streamable HTTP, one request at a time (plus listening threads), either era."""

    def __init__(self, url: str, token: str | None = None, *, modern: bool = False) -> None:
        self.url = url
        self.modern = modern
        self.session: str | None = None
        self.version: str | None = None
        self.seen: list[Json] = []
        self._token = token
        self._next = 0
        self.client = httpx2.Client(
            timeout=60, trust_env=False, verify=False
        )  # no certificates are read: it is plain HTTP

    def headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if self.modern:
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": str(message.get("method"))}
            params = message.get("params") or {}
            name = params.get("uri") if message.get("method") == "resources/read" else params.get("name")
            if isinstance(name, str):
                headers["mcp-name"] = name
        else:
            if self.session:
                headers["mcp-session-id"] = self.session
            if self.version:
                headers["mcp-protocol-version"] = self.version
        return headers

    def post(self, message: Mapping[str, Any]) -> httpx2.Response:
        return self.client.post(self.url, content=json.dumps(message), headers=self.headers(message))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        response = self.post({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})
        assert response.status_code == 202, response.text

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> Json:
        if id is None:
            self._next += 1
            id = self._next
        body = envelope(params) if self.modern else dict(params or {})
        response = self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": body})
        if method == "initialize":
            self.session = response.headers.get("mcp-session-id")
        answer: Json | None = None
        for message in parse_body(response):
            if message.get("id") == id and "method" not in message:
                answer = message
            else:
                self.seen.append(message)
        if answer is None:
            raise AssertionError(f"no answer: {response.status_code} {response.text!r}")
        return answer

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        params: Json = {"name": name, "arguments": dict(arguments or {})}
        if meta:
            params["_meta"] = meta
        return self.request("tools/call", params)

    def initialize(self, version: str = LEGACY) -> Json:
        answer = self.request(
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw-test", "version": "1"}},
        )
        self.version = answer["result"]["protocolVersion"]
        self.notify("notifications/initialized")
        return answer

    def close(self) -> None:
        if self.session:
            self.client.delete(self.url, headers=self.headers({}))
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse_body(response: httpx2.Response) -> list[Json]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return list(parse_events(response.text.split("\n")))
    if not response.content:
        return []
    message: Json = response.json()
    return [message]


def parse_events(lines: Sequence[str] | Iterator[str]) -> Iterator[Json]:
    for line in lines:
        if line.startswith("data:") and line[5:].strip():
            yield json.loads(line[5:])


def structured(answer: Json) -> Json:
    """The result of a successful call, with text and structure compared."""
    assert "result" in answer, answer
    result = answer["result"]
    assert not result.get("isError"), result
    text = json.loads(result["content"][0]["text"])
    content: Json = result["structuredContent"]
    assert text == content or text in content.values(), (text, content)
    return content


def failure(answer: Json) -> Json:
    """The payload of an `isError` result."""
    assert "result" in answer, answer
    result = answer["result"]
    assert result["isError"] is True, result
    payload: Json = json.loads(result["content"][0]["text"])
    assert result["structuredContent"] == payload
    return payload
