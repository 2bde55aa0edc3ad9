"""One request to this user's server, straight to its unix socket.

Commands are short-lived and ask one thing after the other, so a blocking socket does, and neither an event loop nor the typed client is
imported. What takes more than a second says so on a terminal's stderr.
"""

from __future__ import annotations

import os
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket

from wsh.wire.json.text import read_json, write_json
from wsh.wire.system.runtime_path import server_name, server_socket, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

ANSWER_S = 5.0
"""A server that gives no sign of life for so long is stopped or stuck; a busy one answers `/health`."""
_LOOK_S = 0.05

_REPEATABLE = ("GET", "PUT", "PATCH")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class _Lost(Exception):
    """The connection ended before anything was answered, as with a server that is killed."""


def quote(text: str) -> str:
    """Percent-encodes everything but unreserved characters."""
    raw = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)


def session_path(name: str, rest: str = "") -> str:
    return f"/sessions/{quote(name)}{rest}"


def is_server_there() -> bool:
    """False where certainly no server runs and no keeper has sessions: reading commands then say that there is nothing."""
    return os.path.exists(server_socket(os.environ)) or is_keeper_there()


def is_any_kept() -> bool:
    """Whether a session has left a folder, of a program that runs or has ended."""
    return os.path.isdir(os.path.join(state_folder(os.environ), "sessions", server_name(os.environ)))


def is_keeper_there() -> bool:
    """Whether a keeper listens, and so holds what a server left. Looks at the kernel's list, and does not disturb it."""
    path = server_socket(os.environ).removesuffix(".sock") + ".keeper.sock"
    try:
        with open("/proc/net/unix", "rb") as table:
            return os.fsencode(path) in (line.split(None, 7)[-1].rstrip(b"\n") for line in table)
    except OSError:
        return False


def call(
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    json_body: object = None,
    body: bytes | None = None,
    raw: bool = False,
    start: bool = True,
    doing: str = "waiting",
    timeout_s: float | None = None,
    answer_s: float | None = None,
) -> Any:
    """The server's decoded answer (its bytes, with `raw`), or its error raised.

    `timeout_s` is how long the server may be silent before it counts as gone. `answer_s` is how long it may give no sign of life: half of
    that for the answer, then half for its health; after a sign of health the answer is awaited on. Raises ServerSilent. With `start`, an ephemeral server is started when none runs; without, ServerGone is raised.
    """
    headers = ""
    if json_body is not None:
        body = write_json(json_body).encode()
        headers = "content-type: application/json\r\n"
    elif body is not None:
        headers = "content-type: application/octet-stream\r\n"
    pairs = "&".join(f"{quote(k)}={quote(_text(v))}" for k, v in (query or {}).items() if v is not None)
    head = (
        f"{method} {path}{'?' + pairs if pairs else ''} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}"
    )
    if body is not None or method != "GET":
        head += f"content-length: {len(body or b'')}\r\n"
    stop = _tell_while_waiting(doing) if doing and sys.stderr.isatty() else None
    try:
        request = f"{head}\r\n".encode("latin-1") + (body or b"")
        try:
            status, kind, data = _exchange(_connect(start, timeout_s, answer_s), request, answer_s)
        except _Lost as problem:
            if not start or method not in _REPEATABLE:
                raise _gone(str(problem)) from None
            status, kind, data = _repeat(request, timeout_s, answer_s)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        if stop is not None:
            stop()
    if status >= 400:
        raise _error(data, status)
    if raw:
        return data
    return read_json(data) if "json" in kind else data or None


def _repeat(request: bytes, timeout_s: float | None, answer_s: float | None) -> tuple[int, str, bytes]:
    """To the next server: what was asked does no harm twice."""
    try:
        return _exchange(_connect(True, timeout_s, answer_s), request, answer_s)
    except _Lost as problem:
        raise _gone(str(problem)) from None


def _connect(start: bool, timeout_s: float | None, answer_s: float | None) -> Socket:
    path = server_socket(os.environ)
    if answer_s is not None:
        timeout_s = answer_s / 2
    connection = Socket(AF_UNIX, SOCK_STREAM)
    try:
        if answer_s is None:
            connection.connect(path)
        else:
            _connect_within(connection, path, answer_s)
        connection.settimeout(timeout_s)
        return connection
    except TimeoutError:
        connection.close()
        raise _silent() from None
    except OSError as problem:
        if not start:
            connection.close()
            if isinstance(problem, FileNotFoundError | ConnectionRefusedError):
                raise _none_runs() from None
            raise _gone(f"{path}: {problem.strerror or problem}") from None
    import asyncio

    from wsh.client.launch import ensure_server

    asyncio.run(ensure_server())
    try:
        connection.connect(path)
    except OSError as problem:
        connection.close()
        raise _gone(f"{path}: {problem.strerror or problem}") from None
    connection.settimeout(timeout_s)
    return connection


def _connect_within(connection: Socket, path: str, limit_s: float) -> None:
    """Raises TimeoutError where the server accepts nobody, so that its queue of connections stays full."""
    deadline = time.monotonic() + limit_s
    connection.setblocking(False)
    while True:
        try:
            connection.connect(path)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(_LOOK_S)


def _is_healthy(limit_s: float) -> bool:
    """Whether the server gives a sign of life. True also for one that is gone: the connection to it tells that."""
    probe = Socket(AF_UNIX, SOCK_STREAM)
    try:
        _connect_within(probe, server_socket(os.environ), limit_s)
        probe.settimeout(limit_s)
        probe.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        probe.recv(1)
    except TimeoutError:
        return False
    except OSError:
        pass
    finally:
        probe.close()
    return True


def check_health() -> None:
    """Raises ServerSilent where the server gives no sign of life."""
    if not _is_healthy(ANSWER_S / 2):
        raise _silent()


def _receive(connection: Socket, answer_s: float | None) -> bytes:
    while True:
        try:
            return connection.recv(1 << 18)
        except TimeoutError:
            if answer_s is None:
                raise
            if not _is_healthy(answer_s / 2):
                raise _silent() from None


def _exchange(connection: Socket, request: bytes, answer_s: float | None) -> tuple[int, str, bytes]:
    """Status, content type and body of the answer."""
    received = bytearray()
    try:
        connection.sendall(request)
        while part := _receive(connection, answer_s):
            received += part
    except ConnectionError as problem:
        if not received:
            raise _Lost(problem.strerror or str(problem)) from None
    except OSError as problem:
        if not received:
            raise _gone(problem.strerror or str(problem)) from None
    finally:
        connection.close()
    if not received:
        raise _Lost("the connection was closed")
    head, separator, body = bytes(received).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    try:
        status = int(lines[0].split(None, 2)[1])
    except (IndexError, ValueError):
        raise _gone("something that is not a wsh server answered") from None
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b"".join(_chunks(body))
    elif not separator or len(body) < int(headers.get("content-length", 0)):
        raise _gone("the connection was closed inside an answer")
    return status, headers.get("content-type", ""), body


def _chunks(body: bytes) -> Iterator[bytes]:
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        try:
            size = int(body[at:end].split(b";")[0], 16)
        except ValueError:
            raise _gone("the connection was closed inside an answer") from None
        if size == 0:
            return
        yield body[end + 2 : end + 2 + size]
        at = end + 4 + size


def _gone(why: str) -> Exception:
    from wsh.wire.error import ServerGone

    return ServerGone(why)


def _silent() -> Exception:
    from wsh.wire.error import ServerSilent

    try:
        with open(server_socket(os.environ).removesuffix(".sock") + ".json", "rb") as file:
            pid = int(read_json(file.read())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return ServerSilent(None)
    return ServerSilent(pid)


def _none_runs() -> Exception:
    from wsh.cli.kept import find_held
    from wsh.wire.error import ServerGone

    if is_keeper_there() and find_held():
        return ServerGone(
            "it has ended",
            "The sessions go on: their keeper holds them, and nothing is lost. `wsh attach` brings them back with a new server, and so does `wsh server`.",
        )
    return ServerGone("none runs", "`wsh new` starts one with a session, `wsh server` one that stays.")


def _error(data: bytes, status: int) -> Exception:
    from wsh.wire.error import InternalError, from_wire

    try:
        error = read_json(data)["error"]
        return from_wire(error if isinstance(error, dict) else {"code": str(error), "message": str(error)})
    except (ValueError, KeyError, TypeError):
        return InternalError(f"The server answered with status {status}.")


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _tell_while_waiting(doing: str) -> Callable[[], None]:
    """Writes "doing… n s" on stderr once a second from the first second on; the result ends that."""
    import signal

    passed = 0

    def tell(number: int, frame: object) -> None:
        nonlocal passed
        passed += 1
        sys.stderr.write(f"\r\x1b[2K{doing}… {passed} s")
        sys.stderr.flush()

    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)

    def stop() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if passed:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    return stop
