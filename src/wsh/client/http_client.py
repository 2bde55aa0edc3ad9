"""HTTP/1.1 to a wsh server, over its unix socket or TCP, with the standard library alone.

The command line and the stdio pump must start in milliseconds, so neither an HTTP library nor a model library is imported here.
It speaks what our own server speaks: content-length or chunked bodies, keep-alive, and streams that end with the connection.
A `HttpClient` keeps idle connections for the next request; each request under way has a connection to itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from wsh.wire.error import ServerGone

_LONGEST_HEAD = 256 * 1024


@dataclass(frozen=True)
class ServerTarget:
    """Where a server is: a unix socket, or a URL with a token."""

    socket: Path | None = None
    url: str | None = None
    token: str | None = None

    @property
    def name(self) -> str:
        return str(self.socket) if self.socket is not None else str(self.url)


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    _body: AsyncIterator[bytes]

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self._body])

    def stream(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self._body


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def close(self) -> None:
        self.writer.close()


class HttpClient:
    def __init__(self, target: ServerTarget) -> None:
        self.target = target
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        parts = urlsplit(target.url or "http://localhost")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or "localhost"
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2] if target.socket is None else "localhost"

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Response:
        """Send a request; the answer's head has arrived when this returns. Raises ServerGone."""
        while True:
            connection, reused = await self._take()
            self._open.add(connection)
            try:
                connection.writer.write(self._encode(method, path, headers or {}, body))
                await connection.writer.drain()
                status, found = await self._read_head(connection)
            except (OSError, asyncio.IncompleteReadError, EOFError) as problem:
                self._drop(connection)
                if reused and method in {"GET", "HEAD"}:
                    continue  # the server closed an idle connection; a request that changes nothing may go again
                raise ServerGone(str(problem) or type(problem).__name__) from None
            except BaseException:
                self._drop(connection)
                raise
            return Response(status, found, self._body(connection, method, status, found))

    async def aclose(self) -> None:
        for connection in [*self._idle, *self._open]:
            connection.close()
        self._idle.clear()
        self._open.clear()

    async def _take(self) -> tuple[_Connection, bool]:
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection, True
            connection.close()
        return await self._connect(), False

    async def _connect(self) -> _Connection:
        try:
            if self.target.socket is not None:
                streams = await asyncio.open_unix_connection(str(self.target.socket))
            else:
                context = ssl.create_default_context() if self._secure else None
                streams = await asyncio.open_connection(self._host, self._port, ssl=context)
        except OSError as problem:
            raise ServerGone(f"{self.target.name}: {problem.strerror or problem}") from None
        return _Connection(*streams)

    def _encode(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", f"host: {self._authority}"]
        if self.target.token:
            lines.append(f"authorization: Bearer {self.target.token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            lines.append(f"content-length: {len(body or b'')}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")

    async def _read_head(self, connection: _Connection) -> tuple[int, dict[str, str]]:
        line = await connection.reader.readline()
        if not line:
            raise EOFError("the connection was closed")
        try:
            status = int(line.split(None, 2)[1])
        except (IndexError, ValueError):
            raise ServerGone("something that is not a wsh server answered") from None
        headers: dict[str, str] = {}
        size = len(line)
        while (line := await connection.reader.readline()) not in (b"\r\n", b"\n", b""):
            size += len(line)
            if size > _LONGEST_HEAD:
                raise ServerGone("the answer's head is too large")
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return status, headers

    async def _body(
        self, connection: _Connection, method: str, status: int, headers: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        whole = False
        try:
            if method == "HEAD" or status in {204, 304}:
                whole = True
            elif "chunked" in headers.get("transfer-encoding", "").lower():
                while size := int((await connection.reader.readline()).split(b";")[0] or b"0", 16):
                    yield await connection.reader.readexactly(size)
                    await connection.reader.readexactly(2)
                await connection.reader.readline()
                whole = True
            elif "content-length" in headers:
                left = int(headers["content-length"])
                while left:
                    chunk = await connection.reader.read(min(left, 1 << 20))
                    if not chunk:
                        raise ServerGone("the connection was closed inside an answer")
                    left -= len(chunk)
                    yield chunk
                whole = True
            else:
                while chunk := await connection.reader.read(1 << 16):
                    yield chunk
        except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
            raise ServerGone(f"the answer broke off: {problem}") from None
        finally:
            if whole and headers.get("connection", "").lower() != "close":
                self._open.discard(connection)
                self._idle.append(connection)
            else:
                self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.close()
