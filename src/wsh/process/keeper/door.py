"""The keeper's unix socket: who may come in, and the connection of the one server that did."""

from __future__ import annotations

import _blake2
import _socket
import errno
import os
import select
from _operator import _compare_digest

from wsh.process.keeper import descriptor, frame, layout
from wsh.process.keeper.loop import Loop, complain

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wsh.wire.json.object import JsonObject

    Frame = tuple[bytes, list[int], int]
    """The data, the descriptors that are to travel with its first byte, and how much of it has been sent."""


_PROOF_LIMIT_S = 5.0
_MAX_STRANGERS = 16
_NO_DESCRIPTOR_PAUSE_S = 0.1
_MAX_QUEUED_BYTES = 64 * 1024 * 1024
_SO_PEERPIDFD = 77


def prove(secret: bytes, nonce: bytes) -> str:
    """What a server answers to show that it can read the secret file."""
    return _blake2.blake2b(nonce, digest_size=32, key=secret[:64]).hexdigest()


def _has_ended(pidfd: int) -> bool:
    # `select` would know descriptors below 1,024 only, and a keeper has two of each session.
    asked = select.poll()
    asked.register(pidfd, select.POLLIN)
    return bool(asked.poll(0))


class Connection:
    """Frames over one accepted socket.

    `receive` gets each message with its descriptors, which it then owns; `lost` is called once.
    """

    def __init__(
        self,
        loop: Loop,
        sock: _socket.socket,
        receive: Callable[[Connection, JsonObject, list[int]], None],
        lost: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._sock = sock
        self.receive = receive
        self.lost = lost
        self._decoder = frame.Decoder()
        self._queue: list[Frame] = []
        self._coming: Iterator[tuple[JsonObject, list[int]]] | None = None
        self._behind: list[Frame] = []  # what waits for the end of `_coming`
        self._queued = 0
        self.open = True
        self._finishing = False
        self.nonce = os.urandom(16)
        loop.watch(sock.fileno(), self._ready)

    def send(self, message: JsonObject, fds: list[int] | None = None) -> None:
        """Queue a message. `fds` are duplicated here, so the caller may close its own at once.

        Raises OSError, with nothing queued, if no descriptors are left for that.
        """
        if not self.open:
            return
        data = frame.encode(message)
        queue = self._queue if self._coming is None else self._behind
        queue.append((data, descriptor.duplicate(fds or []), 0))
        self._queued += len(data)
        self._flush()
        if self._queued > _MAX_QUEUED_BYTES:
            self.close()  # it does not read: better no server than a keeper that grows

    def stream(self, messages: Iterator[tuple[JsonObject, list[int]]]) -> None:
        """Send many messages, each made when the one before is on its way: no more descriptors are taken than one needs.

        What is sent later comes after the last of them. Called once.
        """
        self._coming = messages
        self._flush()

    @property
    def has_unsent(self) -> bool:
        """Whether the other end has not read enough yet for all that was sent to be on its way."""
        return self.open and (bool(self._queue) or self._coming is not None)

    def finish(self) -> None:
        """Heed nothing more that comes, and close when all that was sent is on its way."""
        self._finishing = True
        self.receive = _heed_not
        self._flush()

    def close(self) -> None:
        if not self.open:
            return
        self.open = False
        self._loop.unwatch(self._sock.fileno())
        self._sock.close()
        for _, fds, _ in self._queue + self._behind:
            for fd in fds:
                os.close(fd)
        self._queue.clear()
        self._behind.clear()
        self._coming = None
        for fd in self._decoder.take_all_fds():
            os.close(fd)
        self.lost(self)

    def _ready(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self._flush()
        if self.open and events & ~select.EPOLLOUT:
            self._read()

    def _read(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(65_536, frame.ANCILLARY_BYTES, _socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        self._decoder.push(data, ancillary)
        if not data:
            self.close()
            return
        try:
            while self.open and (message := self._decoder.pop()) is not None:
                self.receive(self, message, self._decoder.take_fds(int(message.get("fds", 0))))
        except Exception as problem:  # a broken server must not take the terminals with it
            if not isinstance(problem, frame.FrameError):
                complain("a message of the server")
            self.close()

    def _pull(self) -> None:
        """The queue is empty: take the next of the messages that are coming, or what waits behind them."""
        assert self._coming is not None
        coming = next(self._coming, None)
        if coming is None:
            self._coming = None
            self._queue, self._behind = self._behind, []
            return
        data = frame.encode(coming[0])
        self._queue.append((data, descriptor.duplicate(coming[1]), 0))
        self._queued += len(data)

    def _flush(self) -> None:
        while self.open and (self._queue or self._coming is not None):
            if not self._queue:
                try:
                    self._pull()
                except Exception:  # no descriptors are left: the server may come again
                    complain("the introduction of the children")
                    self.close()
                    return
                continue
            data, fds, sent = self._queue[0]
            try:
                count = self._sock.sendmsg([memoryview(data)[sent:]], frame.rights(fds), _socket.MSG_NOSIGNAL)
            except BlockingIOError:
                break
            except OSError:
                self.close()
                return
            for fd in fds:
                os.close(fd)
            self._queued -= count
            if sent + count < len(data):
                self._queue[0] = (data, [], sent + count)
            else:
                self._queue.pop(0)
        if self._finishing and not self.has_unsent:
            self.close()
        if self.open:
            events = select.EPOLLIN | (select.EPOLLOUT if self.has_unsent else 0)
            self._loop.watch(self._sock.fileno(), self._ready, events)


def _heed_not(connection: Connection, message: JsonObject, fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


class Door:
    """Listens, checks the peer's user, descent and proof, and hands over the connection of a proven server.

    A process that the keeper itself started can read the secret, being of the same user, and is refused all the same.
    """

    def __init__(self, loop: Loop, path: str, secret_path: str) -> None:
        self.loop = loop
        self.welcome: Callable[[Connection], None] = lambda connection: connection.close()
        self.is_outside: Callable[[int], bool] = lambda pid: True
        self._path = path
        self._secret_path = secret_path
        self._secret = os.urandom(32).hex().encode()
        self._strangers: set[Connection] = set()
        self._identity = (0, 0)
        self._closed = False
        self._listen()
        self._write_secret()

    def _listen(self) -> None:
        self._sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC, 0)
        self._sock.setblocking(False)
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
        before = os.umask(0o177)
        try:
            self._sock.bind(self._path)
        finally:
            os.umask(before)
        self._sock.listen(64)
        found = os.stat(self._path)
        self._identity = (found.st_dev, found.st_ino)
        self.loop.watch(self._sock.fileno(), self._accept)

    def _write_secret(self) -> None:
        temporary = f"{self._secret_path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.write(fd, self._secret)
        os.close(fd)
        os.replace(temporary, self._secret_path)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def restore(self) -> None:
        """Listen anew if a cleaner of temporary folders removed our socket or the secret. Another's socket is left alone."""
        if self._closed:
            return
        found = self._found()
        if found is not None and (found != self._identity or os.path.exists(self._secret_path)):
            return
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            old = self._sock
            self._listen()
            self._write_secret()
            self.loop.unwatch(old.fileno())
            old.close()
        except OSError:
            pass  # the next look tries again

    def close(self) -> None:
        """Take the socket and the secret away. Idempotent; a proven connection goes on."""
        if self._closed:
            return
        self._closed = True
        if self._found() == self._identity:
            for path in (self._path, self._secret_path):
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
        self.loop.unwatch(self._sock.fileno())
        self._sock.close()

    def _accept(self, events: int) -> None:
        try:
            fd, _ = self._sock._accept()  # type: ignore[attr-defined]  # the plain module has no accept()
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                # The client stays in the queue, and epoll would name the socket again at once.
                self.loop.unwatch(self._sock.fileno())
                self.loop.after(_NO_DESCRIPTOR_PAUSE_S, self._accept_again)
            return
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fileno=fd)
        sock.setblocking(False)
        credentials = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        uid = int.from_bytes(credentials[4:8], "little")
        if uid != os.getuid() or len(self._strangers) >= _MAX_STRANGERS:
            sock.close()
            return
        if not self._comes_from_outside(sock, int.from_bytes(credentials[:4], "little")):
            refusal = frame.encode({"refused": "inside", "protocols": [layout.PROTOCOL]})
            try:
                sock.sendmsg([refusal], [], _socket.MSG_NOSIGNAL)
            except OSError:
                pass
            sock.close()
            return
        stranger = Connection(self.loop, sock, self._prove, self._strangers.discard)
        self._strangers.add(stranger)
        stranger.send({"keeper": os.getpid(), "protocols": [layout.PROTOCOL], "nonce": stranger.nonce.hex()})
        self.loop.after(_PROOF_LIMIT_S, lambda: stranger.close() if stranger in self._strangers else None)

    def _accept_again(self) -> None:
        if not self._closed:
            self.loop.watch(self._sock.fileno(), self._accept)

    def _comes_from_outside(self, sock: _socket.socket, pid: int) -> bool:
        try:
            pinned = sock.getsockopt(_socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError:  # before Linux 6.5
            try:
                pinned = os.pidfd_open(pid)
            except OSError:
                return False
        try:
            # Asked after the look: what was seen belongs to the process that connected, not to a later one of its number.
            return self.is_outside(pid) and not _has_ended(pinned)
        finally:
            os.close(pinned)

    def _prove(self, stranger: Connection, message: JsonObject, fds: list[int]) -> None:
        for fd in fds:
            os.close(fd)
        refusal = None
        if message.get("protocol") != layout.PROTOCOL:
            refusal = "protocol"
        elif not _compare_digest(str(message.get("proof")).encode(), prove(self._secret, stranger.nonce).encode()):
            refusal = "proof"
        if refusal is not None:
            stranger.send({"refused": refusal, "protocols": [layout.PROTOCOL]})
            stranger.close()
            return
        self._strangers.discard(stranger)
        self.welcome(stranger)
