"""The desktop's end: accepts servers, checks who they are, and keeps every promise about requests.

Whatever the desktop program is, these hold: a token is checked in constant time; a request is answered exactly once;
one that was withdrawn, has expired or whose caller is gone never runs; what runs is what was shown, checked again right
before; output streams while the command runs. The program plugs in as a `DesktopApprover`; a connection is a `ConnectedServer`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass

from wsh.approval.ledger import Ledger
from wsh.bridge.connected_server import ConnectedServer
from wsh.bridge.desktop import DesktopApprover
from wsh.bridge.endpoint import Endpoint
from wsh.bridge.frame import DEFAULT_PORT, MAX_FRAME_BYTES, LineFrame
from wsh.bridge.stream import FrameStream
from wsh.bridge.terminal import BridgeTerminal, TerminalShelf
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger("wsh.bridge")


@dataclass(frozen=True)
class ListenerOptions:
    """Limits of a listener; the defaults are those of the settings `bridge.*` and `approvals.*`."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    name: str = "interactive-terminal"
    max_frame_bytes: int = MAX_FRAME_BYTES
    heartbeat_s: float = 10.0
    hello_timeout_s: float = 10.0
    max_clients: int = 64
    max_pending: int = 256
    buffer_bytes: int = 4 * 1024 * 1024
    grant_life_s: float = 8 * 3600.0
    page_answers: bool = False
    """Whether answers given at a server's page count (the setting `approvals.server` of the desktop's own user)."""
    trace: bool = False


class BridgeListener:
    """Listens from `start` to `aclose`. `token` is what a client must show; a fresh one is made if none is given."""

    def __init__(self, end: DesktopApprover, options: ListenerOptions | None = None, token: str | None = None) -> None:
        self.end = end
        self.options = options or ListenerOptions()
        self.token = token or secrets.token_urlsafe(32)
        self.ledger = Ledger(self.options.max_pending)
        self.terminals = TerminalShelf(self.options.buffer_bytes)
        self.lines = TaskSet()
        """Lines that are typed and followed to their end, which may come after the connection that asked for them."""
        self._server: asyncio.Server | None = None
        self._peers: dict[ConnectedServer, asyncio.Task[None]] = {}

    async def start(self) -> Endpoint:
        """Bind and listen; where, and with which token. Raises OSError when the port is taken."""
        self._server = await asyncio.start_server(
            self._accept, self.options.host, self.options.port, limit=self.options.max_frame_bytes
        )
        port = self._server.sockets[0].getsockname()[1]
        return Endpoint(self.options.host, port, self.token)

    @property
    def clients(self) -> list[str]:
        """Names of the servers that are connected."""
        return [peer.name for peer in self._peers if peer.is_ready]

    def announce_policy(self) -> None:
        """Tell every server what the policy is now."""
        for peer in self._peers:
            peer.send_policy()

    def tell_line(self, terminal: BridgeTerminal, frame: LineFrame) -> None:
        """Tell the server that owns the terminal what came of a line, now and over a later connection."""
        terminal.keep_line(frame)
        for peer in self._peers:
            if peer.runtime_session_id == terminal.owner:
                peer.send_line(frame)

    async def aclose(self) -> None:
        """Stop listening and end every connection. Programs that run go on; they are the desktop's."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._peers.values())
        for peer in list(self._peers):
            peer.stream.abort()  # rather than cancel: a connection that is being closed must finish closing
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.lines.aclose()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        options = self.options
        label = str(writer.get_extra_info("peername"))
        stream = FrameStream(reader, writer, max_frame_bytes=options.max_frame_bytes, trace=options.trace, label=label)
        peer = ConnectedServer(self, stream)
        # a task of our own: the one that asyncio would make reports its cancellation as an error
        self._peers[peer] = asyncio.create_task(self._serve(peer), name=f"bridge-peer {label}")

    async def _serve(self, peer: ConnectedServer) -> None:
        limit = self.options.max_clients
        try:
            if len(self._peers) > limit:
                await peer.stream.refuse("too_many_clients", f"{limit} clients are connected already.")
            else:
                await peer.serve()
        except asyncio.CancelledError:
            pass
        except Exception:
            log.exception("bridge %s: the connection failed", peer.stream.label)
        finally:
            await peer.aclose()
            del self._peers[peer]
