"""One question to the server beside the viewer's own connection, answered before anything else happens here."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote, urlencode

from wsh.wire.error import ServerGone, from_wire
from wsh.wire.json.object import JsonObject

_PATIENCE_S = 10.0


class _Connection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.sock.settimeout(_PATIENCE_S)
        self.sock.connect(str(self._path))


class Questions:
    """Questions about sessions. Each raises what the server refuses with, or ServerGone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def list_sessions(self) -> list[JsonObject]:
        found = self._get("/sessions")
        return [dict(one) for one in found] if isinstance(found, list) else []

    def read_screen(self, session: str) -> JsonObject:
        return self._get_object(f"/sessions/{quote(session, safe='')}/screen?format=plain")

    def read_lines(self, session: str, first: int, count: int) -> JsonObject:
        asked = urlencode({"format": "plain", "since_line": first, "limit": count})
        return self._get_object(f"/sessions/{quote(session, safe='')}/scrollback?{asked}")

    def _get_object(self, target: str) -> JsonObject:
        found = self._get(target)
        if not isinstance(found, dict):
            raise ServerGone("it answered with something else")
        return found

    def _get(self, target: str) -> object:
        connection = _Connection(self._path)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            found: object = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as problem:
            raise ServerGone(str(problem) or "it does not answer") from None
        finally:
            connection.close()
        if answer.status >= 400:
            error = found.get("error") if isinstance(found, dict) else None
            raise (
                from_wire(error) if isinstance(error, dict) else ServerGone(f"it answered with status {answer.status}")
            )
        return found
