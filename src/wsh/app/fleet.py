"""This server as a node of a fleet: what the node needs of the rooms, and what the rooms are told of the node.

Nothing of NATS is imported until a fleet is configured.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.host.ending import end_tasks
from wsh.operation.context import Rooms
from wsh.operation.forward import make_forwarded
from wsh.operation.session import look_and_describe
from wsh.session.event import CommandFinished, CommandStarted, Exited, Input, LineTold, Output, SessionEvent
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionDestroyed, SessionRenamed
from wsh.wire.caller import Caller
from wsh.wire.error import ApprovalSettled, HostUnreachable, InvalidRequest, WshError

if TYPE_CHECKING:
    from wsh.host.carrier import ForwardedAnswer, ForwardedCall, ProgressListener, Stream, StreamRequest
    from wsh.host.fleet.node import FleetNode
    from wsh.session.session import Session
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

_NOT_TOLD = (Input, LineTold)
_PRINTED_S = 1.0
"""How soon after output a session is looked at: its state may be another by then."""


class ServerFleet:
    """The `FleetRoom` of this server."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._node: FleetNode | None = None
        self._problem: str | None = None
        """Why the settings do not lead to a fleet."""
        self._stops: list[Callable[[], None]] = []
        self._followed: dict[str, Callable[[], None]] = {}
        self._printed: set[str] = set()
        self._copying: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._judged: set[str] = set()
        """Requests of which an answer is being judged."""

    def open(self) -> None:
        """Join the fleet that the settings name. One that cannot be joined is a warning: the server works alone."""
        settings = self._rooms.settings
        url = settings.get_str("fleet.url")
        if not url:
            return
        try:
            self._start(self._make_node(url, settings.get_str("fleet.credentials")))
        except WshError as problem:
            self._problem = problem.message
            log.warning("this server works alone: %s", problem.message)

    def list_warnings(self) -> list[str]:
        problem = self._problem if self._node is None else self._node.problem
        return [] if problem is None else [f"This server works alone, outside of its fleet: {problem}."]

    async def describe(self) -> JsonObject:
        node = self._node
        if node is None:
            url = self._rooms.settings.get_str("fleet.url") or None
            nothing: JsonObject = dict.fromkeys(("fleet", "name", "since"))
            return {**nothing, "url": url, "joined": False, "problem": self._problem, "nodes": []}
        await self._rooms.hosts.refresh()
        return {
            "fleet": node.credential.fleet,
            "name": node.credential.name,
            "url": node.options.url,
            "joined": node.problem is None,
            "problem": node.problem,
            "since": node.since,
            "nodes": node.describe_nodes(),
        }

    async def join(self, url: str, credentials: str | None) -> None:
        """Raises what keeps it from that, and stays in the fleet of before."""
        async with self._changing:
            node = self._make_node(url, credentials or self._rooms.settings.get_str("fleet.credentials"))
            await self._stop(forget=False)
            self._start(node)

    @asynccontextmanager
    async def claim_answer(self, id: str, by: str) -> AsyncIterator[None]:
        """While this answer is judged, no other one in the fleet can be. It is taken back if it does not count."""
        from wsh.host.fleet.connection import ConnectionLost, RevisionTaken
        from wsh.host.fleet.subject import to_token

        connection = None if self._node is None else self._node.connection
        if self._node is None or connection is None:
            yield  # alone, this server's own ledger decides
            return
        if id in self._judged:
            raise ApprovalSettled(id, "answered")
        key = f"{to_token(self._node.credential.name)}.{to_token(id)}"
        self._judged.add(id)
        try:
            try:
                await connection.create("approvals", key, {"by": by, "at": time.time()})
            except RevisionTaken:
                # This node alone writes the key. It stands since an answer that counted, which the ledger here knows, or since one that
                # did not: its server died, or NATS was away when the key was to be taken back.
                pass
            except ConnectionLost as problem:
                log.warning("an answer was not told to the fleet: %s", problem)
            try:
                yield
            except ApprovalSettled:
                raise  # an earlier answer counted, and the key is that one's
            except BaseException:  # a cancellation too: the claim is given back
                with suppress(ConnectionLost):
                    await connection.put("approvals", key, None)
                raise
        finally:
            self._judged.discard(id)

    async def leave(self) -> None:
        async with self._changing:
            self._problem = None
            await self._stop(forget=True)

    async def aclose(self) -> None:
        async with self._changing:
            await self._stop(forget=False)

    async def _stop(self, *, forget: bool) -> None:
        node, self._node = self._node, None
        if self._copying is not None:
            await end_tasks([self._copying])
            self._copying = None
        for stop in [*self._stops, *self._followed.values()]:
            stop()
        self._stops.clear()
        self._followed.clear()
        if node is not None:
            await node.aclose(forget=forget)

    def _make_node(self, url: str, file: str) -> FleetNode:
        from wsh.host.fleet.credential import need_extra, read_credential

        need_extra()
        from wsh.host.fleet.deploy import split_url
        from wsh.host.fleet.node import FleetNode, FleetOptions, NodeServer

        settings = self._rooms.settings
        split_url(url)
        credential = read_credential(Path(file).expanduser() if file else self._rooms.places.fleet_credentials)
        name = settings.get_str("fleet.name")
        if name and name != credential.name:
            raise InvalidRequest(
                f"The setting fleet.name is {name!r}, and the credentials are those of {credential.name!r}.",
                hint="Leave the setting out, or ask for credentials of that name with `wsh fleet invite`.",
            )
        options = FleetOptions(
            url=url,
            tags=tuple(settings.get_list("fleet.tags")),
            lease_s=settings.get_float("fleet.lease_s"),
            beat_s=settings.get_float("fleet.beat_s"),
            linger_s=settings.get_float("fleet.linger_s"),
            max_skew_s=settings.get_float("fleet.max_skew_s"),
            max_call_bytes=settings.get_int("fleet.max_call_bytes"),
            max_streams=settings.get_int("fleet.max_streams"),
            stream_bytes=settings.get_int("fleet.stream_bytes"),
            max_events=settings.get_int("fleet.max_events"),
            gone_s=settings.get_float("fleet.gone_s"),
        )
        return FleetNode(credential, options, NodeServer(self._make, self._open_stream, self), self._rooms.hosts)

    def _start(self, node: FleetNode) -> None:
        from wsh.app.fleet_audit import AuditCopy

        self._problem = None
        self._node = node
        node.start()
        places = self._rooms.places
        copy = AuditCopy(
            places.audit_log,
            places.fleet_audit,
            node.audit.add,
            fleet=node.credential.authority,
            most=node.options.max_events,
        )
        node.audit.on_confirmed = copy.confirm
        self._copying = asyncio.ensure_future(copy.run())
        registry = self._rooms.registry
        self._stops.append(registry.lifecycle.add(self._on_lifecycle))
        for session in registry.list_sessions():
            self._follow(session)

    # what other nodes ask

    async def _make(self, call: ForwardedCall, on_progress: ProgressListener) -> ForwardedAnswer:
        node = call.caller.host
        return await make_forwarded(
            self._rooms, call, Caller("owner", node, "token", account=f"fleet:{node}"), on_progress
        )

    async def _open_stream(self, request: StreamRequest) -> Stream:
        from wsh.host.websocket import HandshakeLost, open_web_stream

        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)
            connection.connect(str(self._rooms.places.socket))
            return await open_web_stream(request.caller.host, connection, request)
        except (OSError, HandshakeLost) as problem:
            connection.close()
            raise HostUnreachable(self._rooms.server.hostname, str(problem)) from None

    # what other nodes are told

    def list_names(self) -> list[str]:
        return [session.name for session in self._rooms.registry.list_sessions()]

    async def describe_session(self, name: str) -> JsonObject | None:
        session = self._rooms.registry.find_session(name)
        return None if session is None else await look_and_describe(self._rooms, session)

    def _on_lifecycle(self, event: LifecycleEvent) -> None:
        match event:
            case SessionCreated(session):
                self._follow(session)
                self._tell(session.name, "session_created")
            case SessionRenamed(session, old):
                if self._node is not None:
                    self._node.sessions.mark_renamed(old, session.name)
                self._tell(session.name, "session_renamed", old_name=old)
            case SessionDestroyed(name, sid, exit_code):
                self._followed.pop(sid, lambda: None)()
                self._tell(name, "session_destroyed", exit_code=exit_code)

    def _follow(self, session: Session) -> None:
        def on_event(event: SessionEvent) -> None:
            match event:
                case Output():
                    self._look_later(session)
                case Exited(exit_code):
                    self._tell(session.name, "exit", exit_code=exit_code)
                case CommandStarted(id):
                    self._tell(session.name, "command_started", command=id)
                case CommandFinished(id):
                    self._tell(session.name, "command_finished", command=id)
                case _ if not isinstance(event, _NOT_TOLD):
                    self._tell(session.name, "")

        self._followed[session.sid] = session.listeners.add(on_event)

    def _look_later(self, session: Session) -> None:
        """Once per second while it prints: what it is doing may be another by then."""
        if session.sid in self._printed:
            return
        self._printed.add(session.sid)

        def look() -> None:
            self._printed.discard(session.sid)
            self._tell(session.name, "")

        asyncio.get_running_loop().call_later(_PRINTED_S, look)

    def _tell(self, name: str, event: str, **facts: object) -> None:
        """The session is changed; `event` also goes to the stream of events."""
        node = self._node
        if node is None:
            return
        node.sessions.mark(name)
        if event:
            entry = {"event": event, "node": node.credential.name, "session": name, "at": time.time(), **facts}
            node.events.add(secrets.token_hex(12), entry)
