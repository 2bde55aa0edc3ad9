"""The typed client of a wsh server.

    async with wsh.connect() as server:
        session = await server.open("bash")
        result = await session.run("make test")
        print(result.exit_code, result.output)

It raises the errors of `wsh.wire.error`, as the server raised them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from wsh.client.http_client import HttpClient, ServerTarget
from wsh.client.model import RunReply, ScreenReply, ScrollbackReply, SessionReply, WaitReply, from_wire
from wsh.wire.error import InternalError
from wsh.wire.error import from_wire as error_from_wire
from wsh.wire.system.place import find_places

Format: TypeAlias = Literal["styled", "plain"]
_INPUT_PIECE_BYTES = 512 * 1024
"""Below what a server takes as one body by default."""


@asynccontextmanager
async def connect(
    url: str | None = None, token: str | None = None, *, socket: Path | None = None, start: bool = True
) -> AsyncIterator[Server]:
    """A server: the one at `url`, or this user's own over its unix socket.

    If no server runs for this user, an ephemeral one is started unless `start` is false.
    """
    if url is None and socket is None:
        socket = find_places().socket
        if start:
            from wsh.client.launch import ensure_server

            await ensure_server()
    link = HttpClient(ServerTarget(socket=socket if url is None else None, url=url, token=token))
    try:
        yield Server(link)
    finally:
        await link.aclose()


class Server:
    def __init__(self, link: HttpClient) -> None:
        self._link = link

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        json_body: object = None,
        body: bytes | None = None,
        raw: bool = False,
    ) -> Any:
        """One request; the decoded answer (or its bytes, with `raw`), or the server's error raised."""
        headers = {}
        if json_body is not None:
            body = json.dumps(json_body).encode()
            headers["content-type"] = "application/json"
        elif body is not None:
            headers["content-type"] = "application/octet-stream"
        pairs = {k: _text(v) for k, v in (query or {}).items() if v is not None}
        target = f"{path}?{urlencode(pairs)}" if pairs else path
        response = await self._link.request(method, target, headers=headers, body=body)
        data = await response.read()
        if response.status >= 400:
            raise error_from_wire(_error_of(data, response.status))
        if raw:
            return data
        if not data:
            return None
        if "json" in response.headers.get("content-type", ""):
            return json.loads(data)
        return data

    async def health(self) -> bool:
        return bool((await self.call("GET", "/health"))["status"] == "ok")

    async def info(self) -> dict[str, object]:
        """Hostname, version and id of the server."""
        return dict(await self.call("GET", "/server/info"))

    async def list(self, tags: Sequence[str] = ()) -> list[SessionReply]:
        found = await self.call("GET", "/sessions", query={"tag": ",".join(tags) or None})
        return [from_wire(SessionReply, item) for item in found]

    async def open(
        self,
        command: str | None = None,
        *,
        name: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        tags: Sequence[str] = (),
    ) -> RemoteSession:
        """Create a session and return its handle."""
        asked = {"name": name, "command": command, "rows": rows, "cols": cols, "cwd": cwd}
        request: dict[str, object] = {k: v for k, v in asked.items() if v is not None}
        if env:
            request["env"] = dict(env)
        if tags:
            request["tags"] = [*tags]
        made = await self.call("POST", "/sessions", json_body=request)
        return RemoteSession(self, str(made["name"]))

    def session(self, name: str) -> RemoteSession:
        """A handle on a session by name. The first call fails if there is none."""
        return RemoteSession(self, name)


class RemoteSession:
    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self.name = name

    def path(self, rest: str = "") -> str:
        return f"/sessions/{quote(self.name, safe='')}{rest}"

    async def info(self) -> SessionReply:
        return from_wire(SessionReply, await self._server.call("GET", self.path()))

    async def send(self, data: str | bytes) -> None:
        """Type `data` as it is; nothing is added. What is longer than a body may be goes in pieces, one after the other."""
        raw = data.encode() if isinstance(data, str) else data
        for at in range(0, len(raw) or 1, _INPUT_PIECE_BYTES):
            await self._server.call("POST", self.path("/input"), body=raw[at : at + _INPUT_PIECE_BYTES])

    async def keys(self, *keys: str) -> None:
        """Press keys by name: "ctrl+c", "enter", "f5"."""
        await self._server.call("POST", self.path("/keys"), json_body={"keys": [*keys]})

    async def screen(self, format: Format = "plain") -> ScreenReply:
        return from_wire(ScreenReply, await self._server.call("GET", self.path("/screen"), query={"format": format}))

    async def scrollback(
        self, *, offset: int = 0, limit: int = 100, since_line: int | None = None, format: Format = "plain"
    ) -> ScrollbackReply:
        query = {"offset": offset, "limit": limit, "since_line": since_line, "format": format}
        return from_wire(ScrollbackReply, await self._server.call("GET", self.path("/scrollback"), query=query))

    async def run(
        self,
        command: str,
        *,
        enter: bool = True,
        timeout_ms: int = 2000,
        max_wait_ms: int = 30_000,
        max_output_bytes: int | None = None,
        format: Format = "plain",
        clear_line: bool = False,
        answer: bool = True,
        sandbox: Literal["off"] | None = None,
        reason: str | None = None,
    ) -> RunReply:
        """Type a command and wait until it ended. A deadline raises WaitTimeout; the command goes on.

        Raises LineInUse where somebody has typed something without Enter, unless `clear_line` is given. Without `answer` it is
        raised also where a command of the shell asks for something. With `sandbox` and a `reason` a person is asked to let it run without the session's sandbox, in a session of its own.
        """
        request: dict[str, object] = {
            "input": command,
            "enter": enter,
            "timeout_ms": timeout_ms,
            "max_wait_ms": max_wait_ms,
            "format": format,
            "clear_line": clear_line,
            "answer": answer,
        }
        if max_output_bytes is not None:
            request["max_output_bytes"] = max_output_bytes
        if sandbox is not None:
            request["sandbox"] = sandbox
        if reason is not None:
            request["reason"] = reason
        done = dict(await self._server.call("POST", self.path("/run"), json_body=request))
        done["screen"] = from_wire(ScreenReply, done["screen"])
        return from_wire(RunReply, done)

    async def wait(
        self,
        *,
        quiet_ms: int | None = None,
        text: str | None = None,
        regex: str | None = None,
        command: bool = False,
        prompt: bool = False,
        input_wanted: bool = False,
        exit: bool = False,
        generation: int | None = None,
        fresh: bool = False,
        max_wait_ms: int = 30_000,
        format: Format = "plain",
    ) -> WaitReply:
        """Wait for the first of the named conditions; `ended_by` says which it was."""
        query: dict[str, object] = {
            "timeout_ms": quiet_ms,
            "text": text,
            "regex": regex,
            "last_generation": generation,
            "max_wait_ms": max_wait_ms,
            "format": format,
        }
        flags = {"command": command, "prompt": prompt, "input_wanted": input_wanted, "exit": exit, "fresh": fresh}
        query |= {name: True for name, wanted in flags.items() if wanted}
        done = dict(await self._server.call("GET", self.path("/idle"), query=query))
        done["screen"] = from_wire(ScreenReply, done["screen"])
        return from_wire(WaitReply, done)

    async def resize(self, rows: int, cols: int) -> SessionReply:
        return from_wire(
            SessionReply, await self._server.call("POST", self.path("/resize"), json_body={"rows": rows, "cols": cols})
        )

    async def rename(self, name: str) -> SessionReply:
        renamed = from_wire(SessionReply, await self._server.call("PATCH", self.path(), json_body={"name": name}))
        self.name = renamed.name
        return renamed

    async def tag(self, add: Sequence[str] = (), remove: Sequence[str] = ()) -> SessionReply:
        change = {"add_tags": [*add], "remove_tags": [*remove]}
        return from_wire(SessionReply, await self._server.call("PATCH", self.path(), json_body=change))

    async def kill(self) -> None:
        """End its whole process tree and forget it."""
        await self._server.call("DELETE", self.path())

    async def detach(self) -> None:
        """Send every viewer away; the session goes on."""
        await self._server.call("POST", self.path("/detach"))

    async def commands(self) -> list[dict[str, object]]:
        return list(await self._server.call("GET", self.path("/commands")))

    async def state(self) -> dict[str, object]:
        """What the foreground program is and whether it waits for input."""
        return dict(await self._server.call("GET", self.path("/state")))


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _error_of(data: bytes, status: int) -> dict[str, object]:
    try:
        error = json.loads(data)["error"]
    except (ValueError, KeyError, TypeError):
        return InternalError(f"The server answered with status {status}.").to_wire()
    return error if isinstance(error, dict) else {"code": str(error), "message": str(error)}
