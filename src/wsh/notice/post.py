"""One POST to somebody else's server: https, or plain http on this machine; no redirects; bounded in time and size."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult, urlsplit

from wsh.wire.error import InvalidRequest

_TRY_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


class Undelivered(Exception):
    """The notice did not arrive. `again`: a later try may succeed, and nothing of this one can have been taken."""

    def __init__(self, why: str, *, again: bool, gone: bool = False, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.again, self.gone, self.after_s = again, gone, after_s


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_url(url: str, *, loopback: bool, plain: bool = False) -> SplitResult:
    """Raises InvalidRequest unless it is https, or http where that was permitted: on this machine, or anywhere."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.username is not None or any(ord(sign) <= 32 or ord(sign) > 126 for sign in url):
        raise InvalidRequest("That is no address of a server.", hint="It looks like https://example.org/path.")
    permitted = parts.scheme == "https" or (parts.scheme == "http" and (plain or (loopback and is_loopback(host))))
    if not permitted or (is_loopback(host) and not loopback):
        raise InvalidRequest("The address must begin with https://.", hint="Plain http would show it to the network.")
    return parts


def post(parts: SplitResult, headers: Mapping[str, str], body: bytes, timeout_s: float) -> None:
    """Blocking. Returns when the other side has said yes; raises Undelivered. What it says besides is not read."""
    assert parts.hostname is not None
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    try:
        try:
            connection.connect()
        except (OSError, ssl.SSLError) as problem:
            raise Undelivered(f"no connection: {_describe(problem)}", again=True) from None
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with _cut_after(connection, timeout_s):
                connection.request("POST", path, body, dict(headers))
                answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            raise Undelivered(f"the answer did not come: {_describe(problem)}", again=False) from None
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        later = answer.headers.get("Retry-After", "")
        raise Undelivered(
            f"it answered {answer.status}",
            again=answer.status in _TRY_LATER,
            gone=answer.status in (404, 410),
            after_s=float(later) if later.isdecimal() and len(later) < 6 else 0.0,
        )


@contextmanager
def _cut_after(connection: http.client.HTTPConnection, limit_s: float) -> Iterator[None]:
    """Ends what is waited for when time is up. A socket's own limit begins anew with every byte that comes."""
    late = False

    def cut() -> None:
        nonlocal late
        late = True
        if (sock := connection.sock) is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which the other thread is using

    timer = threading.Timer(limit_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if late:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


def _describe(problem: Exception) -> str:
    if isinstance(problem, socket.timeout | TimeoutError):
        return "it took too long"
    return getattr(problem, "strerror", None) or type(problem).__name__
