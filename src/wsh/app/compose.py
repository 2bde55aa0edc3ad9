"""The rooms of one server, wired together. Plain imports: `boot` imports this module once the sockets are served."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable

from wsh.app.deferred import DeferredRooms
from wsh.app.door import EarlyDoor
from wsh.app.far_notice import FarNotices
from wsh.app.fleet import ServerFleet
from wsh.app.lifetime import Holding
from wsh.client.install import find_command
from wsh.desktop.window.notification import find_sender, notify
from wsh.host.ssh.book import SshBook
from wsh.http.route import operation_route, page_route, socket_route
from wsh.http.ws.json import encode_event
from wsh.notice.notices import Notices
from wsh.operation.context import Rooms
from wsh.operation.tally import LimitTally
from wsh.session.event import Exited, SessionEvent
from wsh.session.presence import Clients
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionRegistry
from wsh.visual.feed import Feeds
from wsh.visual.stage_registry import StageRegistry
from wsh.wire.version import VERSION


class Composition:
    """One server's rooms, wired together and opened behind the early door."""

    def __init__(self, door: EarlyDoor) -> None:
        self.door = door
        self.places = door.doors.places
        self.settings = door.settings
        self.lifetime = door.lifetime
        self.deferred = DeferredRooms(self)
        self._registry: SessionRegistry | None = None
        self._closers: list[Callable[[], None]] = []

    @property
    def registry(self) -> SessionRegistry:
        assert self._registry is not None, "the rooms are not open yet"
        return self._registry

    async def open(self) -> None:
        """Open the rooms; from then on every request is answered."""
        for module in (operation_route, socket_route, page_route):
            for route in module.ROUTES:
                self.door.table.add(route)
        # The keeper takes a moment to start: time to import what comes after it.
        self.deferred.start_imports()
        notices = Notices(self.places, self.settings)
        await notices.load()
        registry = self._registry = await SessionRegistry.open(self.places, self.settings, notices.outbox.heard)
        self.stages: StageRegistry = StageRegistry(self.settings)
        self.rooms: Rooms = Rooms(
            self.settings,
            self.places,
            self.door.facts,
            Clients(self.settings.get_int("server.max_viewers"), self.settings.get_int("server.max_sockets")),
            self.stages,
            Feeds(self.stages, encode_event),
            registry,
            self.deferred.contract,
            self.deferred.workspace,
            self.deferred.execute,
            LimitTally("waits", self.settings.get_int("server.max_waits"), "server.max_waits"),
            notices,
        )
        self._book = SshBook(self.places, self.settings, self.rooms.hosts, self.door.facts.hostname)
        self.rooms.host_book = self._book
        self.rooms.hosts.here = (self.door.facts.server_id, self.door.facts.hostname)
        self._far_notices = FarNotices(self.rooms)
        self.rooms.run_tool = self.deferred.run_tool
        self._fleet = self.rooms.fleet = ServerFleet(self.rooms)
        self.door.gateway.rooms = self.rooms
        self.door.facts.list_damage = lambda: [
            *registry.list_warnings(),
            *self.deferred.list_warnings(),
            *self._fleet.list_warnings(),
        ]
        self.lifetime.sessions = self._holding
        self._closers.append(registry.lifecycle.add(self._on_lifecycle))
        for session in registry.list_sessions():
            session.listeners.add(self._on_session)
        await self.rooms.wakes.start()
        notices.has_desktop, notices.notify_desktop = find_sender(os.environ) is not None, _notify_desktop
        await notices.start(registry, self.rooms.wakes)
        self.door.gateway.ready.set()
        self.deferred.start()
        self._book.open()
        self._fleet.open()

    def _on_lifecycle(self, event: LifecycleEvent) -> None:
        if isinstance(event, SessionCreated):
            event.session.listeners.add(self._on_session)
        self.lifetime.look()

    def _on_session(self, event: SessionEvent) -> None:
        if isinstance(event, Exited):
            self.lifetime.look()

    def _holding(self) -> Holding:
        """Which sessions hold an ephemeral server."""
        running = [session for session in self.registry.list_sessions() if session.running]
        contract = self.deferred.contract.peek()
        if any(session.keep for session in running) or (contract is not None and contract.interactive.holds_server):
            return "kept"
        return "agents" if running else "none"

    async def aclose(self, *, keep_sessions: bool, forsaken: bool = False) -> None:
        """End the rooms. With `keep_sessions` what runs stays with the keeper; `forsaken` keeps what has ended."""
        for close in self._closers:
            close()
        if self._registry is None:
            return
        if hasattr(self, "rooms"):
            await self.rooms.far_leases.aclose()
            await self._far_notices.aclose()
            await self.rooms.notices.aclose()
            await self.rooms.wakes.aclose()
            await self._fleet.aclose()
            await self._book.aclose()
            await self.rooms.hosts.aclose()
            await self.rooms.receiver.aclose()
        self.stages.close()
        if forsaken:
            running = [session for session in self._registry.list_sessions() if session.running]
            await asyncio.gather(*(self._registry.destroy(session) for session in running))
        if (keep_sessions or forsaken) and len(self._registry):
            await self._registry.aclose()
        else:
            await self._registry.stop()

    def announce(self, say: Callable[[str], None], *, as_json: bool, quiet: bool) -> None:
        """Say where we are. The link works once; the token itself is not printed."""
        facts = self.door.facts
        if as_json:
            told = {"url": f"{facts.url}{facts.base_prefix}", "pid": os.getpid(), "socket": str(self.places.socket)}
            say(json.dumps(told | {"version": VERSION, "link": facts.make_link()}))
            return
        if quiet:
            return
        if self.door.doors.moved_from is not None:
            say(f"Port {self.door.doors.moved_from} is taken; using {self.door.doors.port}.")
        say(f"wsh {VERSION} listens on {facts.url}{facts.base_prefix}")
        say(f"  page    {facts.make_link()}  (works once, within 10 minutes)")
        say(f"  socket  {self.places.socket}")
        say("  MCP configuration to paste, over stdio:")
        program, arguments = find_command(())
        entry = {"command": program, "args": arguments}
        say("    " + json.dumps({"mcpServers": {"wsh": entry}}, ensure_ascii=False))
        say("  or over HTTP, with a token from `wsh token --agent NAME`:")
        mcp = f"{facts.url}{facts.base_prefix}/mcp"
        auth = '"headers": {"Authorization": "Bearer TOKEN"}'
        say(f'    {{"mcpServers": {{"wsh": {{"type": "http", "url": "{mcp}", {auth}}}}}}}')
        say("Ctrl+C ends the server and keeps the sessions; `wsh stop` ends both.")


def _notify_desktop(title: str, text: str, urgent: bool) -> bool:
    return notify(title, text, urgent=urgent)
