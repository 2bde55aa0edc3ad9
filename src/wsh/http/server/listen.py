"""Open the doors: the server's lock, its TCP and unix sockets, the runtime file, and the word to systemd.

Standard library only, so that a starting server listens before it imports anything heavy: a client that connects meanwhile
waits in the backlog instead of being refused. What is said on the sockets is not known here.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.http.server.activation import take_inherited
from wsh.wire.setting import SettingError
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places, ensure_private, read_boot_id, write_private

if TYPE_CHECKING:
    import ssl

BACKLOG = 2048
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_PORTS_TRIED = 200


class ServerRuns(Exception):
    """Another server of this name holds the lock."""


@dataclass
class Doors:
    """Listening sockets and their addresses. Its owner closes it."""

    host: str
    port: int
    tcp: list[socket.socket]
    unix: socket.socket
    places: Places
    tls: ssl.SSLContext | None = None
    lock_fd: int = -1
    moved_from: int | None = None
    """The port that was asked for and taken."""
    addresses: list[str] = field(default_factory=list)
    keeps_socket: bool = False
    """The unix socket belongs to a service manager, which goes on listening when we end."""

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def url(self) -> str:
        shown = "127.0.0.1" if self.host in {*_LOOPBACK, "0.0.0.0", "::", ""} else self.host
        return f"{self.scheme}://{_bracketed(shown)}:{self.port}"

    def write_runtime_info(self, **facts: object) -> None:
        info = {
            "url": self.url,
            "pid": os.getpid(),
            "port": self.port,
            "host": self.host,
            "socket": str(self.places.socket),
            "server": self.places.server,
            "boot": read_boot_id(),
            **facts,
        }
        write_private(self.places.runtime_info, json.dumps(info, indent=1).encode() + b"\n")

    def close(self) -> None:
        """Close the sockets, remove socket and runtime file, and release the lock last."""
        for sock in self.tcp:
            sock.close()
        if self.lock_fd >= 0:
            self.unix.close()
            left = [self.places.runtime_info] if self.keeps_socket else [self.places.socket, self.places.runtime_info]
            for path in left:
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
            drop_lock(self.places.lock, self.lock_fd)
            self.lock_fd = -1


def open_doors(places: Places, bind: str, tls: ssl.SSLContext | None = None) -> Doors:
    """Take the lock of this server's name and listen. Raises ServerRuns, SettingError or OSError."""
    host, port = parse_bind(bind)
    ensure_private(places.runtime)
    lock_fd = take_lock(places.lock, wait=False)
    if lock_fd is None:
        raise ServerRuns(f"a server named {places.server!r} runs already")
    given = take_inherited()
    tcp = [sock for sock in given if sock.family != socket.AF_UNIX]
    unix = next((sock for sock in given if sock.family == socket.AF_UNIX), None)
    keeps_socket = unix is not None
    try:
        if tcp:
            host, port = tcp[0].getsockname()[:2]
            bound = port
        else:
            tcp, bound = _listen_tcp(host, port)
        unix = unix or _listen_unix(places)
    except BaseException:
        for sock in tcp:
            sock.close()
        drop_lock(places.lock, lock_fd)
        raise
    moved = port if port and bound != port else None
    addresses = [str(sock.getsockname()[0]) for sock in tcp]
    return Doors(host, bound, tcp, unix, places, tls, lock_fd, moved, addresses, keeps_socket)


def parse_bind(bind: str) -> tuple[str, int]:
    """`HOST:PORT`, `[V6]:PORT`, `HOST` or `:PORT`."""
    host, colon, port = bind.strip().rpartition(":")
    if bind.strip().endswith("]") or not colon:
        host, port = bind.strip(), "8080"
    host = host.strip("[]")
    if not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in host and "[" not in bind):
        raise SettingError(f"server.bind must be HOST:PORT, not {bind!r}")
    return host or "127.0.0.1", int(port)


def load_tls(cert: str, key: str) -> ssl.SSLContext | None:
    """The TLS side of the TCP door; None where neither file is set."""
    if not cert and not key:
        return None
    if not cert or not key:
        raise SettingError("server.tls_cert and server.tls_key go together; one of them is missing")
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as problem:
        raise SettingError(f"the TLS certificate {cert} with the key {key} cannot be used: {problem}") from None
    return context


def notify_systemd(state: str) -> None:
    """Tell the service manager, if one asked to be told, about `READY=1`, `STOPPING=1` and the like."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            pass


def _listen_tcp(host: str, port: int) -> tuple[list[socket.socket], int]:
    """Sockets on `host`, on IPv4 and IPv6 both where `host` is a loopback name; the next free port if taken."""
    if host in _LOOPBACK:
        targets = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
        if host == "::1":
            targets.reverse()
    else:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except socket.gaierror as problem:
            raise SettingError(f"server.bind: the host {host!r} is not known: {problem.strerror}") from None
        targets = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
    last: OSError | None = None
    for candidate in range(port, min(port + _PORTS_TRIED, 65536)) if port else [0] * _PORTS_TRIED:
        opened: list[socket.socket] = []
        number = candidate
        try:
            for family, address in targets:
                try:
                    opened.append(_bind(family, address, number))
                except OSError as problem:
                    # A machine without IPv6 is served on IPv4 alone; a port taken on either is taken.
                    if problem.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT} and len(targets) > 1:
                        last = problem
                        continue
                    raise
                number = opened[0].getsockname()[1]
            if not opened:
                raise last or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
            return opened, number
        except OSError as problem:
            for sock in opened:
                sock.close()
            last = problem
            if problem.errno != errno.EADDRINUSE:
                raise
    assert last is not None
    raise last


def _bind(family: int, address: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # Past connections in TIME_WAIT must not push a restarted server to another port.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _listen_unix(places: Places) -> socket.socket:
    """The unix socket, mode 0600. Whatever lies at its path is a leftover, since we hold the lock."""
    path = places.socket
    if len(os.fsencode(path)) > 107:
        raise SettingError(f"the path {path} is too long for a unix socket; set XDG_RUNTIME_DIR to a shorter folder")
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(errno.EEXIST, "this is not a socket; remove it", str(path))
        os.unlink(path)
    except FileNotFoundError:
        pass
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(str(path))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(mask)
    return sock


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
