"""The server: it listens, wires the rooms together, serves until told to stop.

`run_server` listens before it imports anything heavy: a client that comes while we import waits in the backlog, so a
freshly started server answers as early as it can. Only the standard library and `wire` are imported at the top.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import secrets
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from wsh.app.migration import bring_up_to_date
from wsh.http.server.listen import Doors, ServerRuns, load_tls, notify_systemd, open_doors
from wsh.wire.setting import SettingError, Settings
from wsh.wire.system.crash import leave_traces
from wsh.wire.system.owner import hide_memory
from wsh.wire.system.package import open_package
from wsh.wire.system.place import Places, ensure_private
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.app.lifetime import Holding, Lifetime
    from wsh.http.server.gateway import Access, Gateway
    from wsh.mcp.transport.endpoint import McpEndpoint
    from wsh.operation.context import Rooms
    from wsh.operation.late import Late
    from wsh.session.event import SessionEvent
    from wsh.session.registry import LifecycleEvent, SessionRegistry
    from wsh.visual.stage_registry import StageRegistry

log = logging.getLogger("wsh.app")

GRACE_S = 2.0
"""How long requests under way may take to finish when the server ends."""


@dataclass(frozen=True)
class ServerOptions:
    ephemeral: bool = False
    token: str | None = None
    """One more owner's token, for this run alone."""
    announce: Callable[[str], None] = print
    as_json: bool = False
    """Announce in one line of JSON, for the program that started us."""
    stand_in: bool = False
    """Started by a client in place of a persistent server that was killed: gives way to the next `wsh server`."""
    arguments: tuple[str, ...] = ()
    """The words after `wsh server` that start one like this, without its address."""


def run_server(places: Places, settings: Settings, options: ServerOptions) -> int:
    """Serve until told to stop. The exit status: 0, 2 for a setting that cannot be, 3 if one runs already."""
    _set_up_logging()
    hide_memory()
    try:
        _check_stage()
        _bring_up_to_date(places)
        tls = load_tls(settings.get_str("server.tls_cert"), settings.get_str("server.tls_key"))
        doors = _open_doors(places, settings, options, tls)
    except ServerRuns as problem:
        print(f"wsh: {problem}; `wsh status` shows it, `wsh stop` ends it", file=sys.stderr)
        return 3
    except (SettingError, OSError) as problem:
        print(f"wsh: {problem}", file=sys.stderr)
        return 2
    try:
        ensure_private(places.state)
        _record(doors, options, persistent=not options.ephemeral)
        # Until everything is imported there is no garbage worth looking for.
        gc.disable()
        import uvloop

        with leave_traces(places), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(doors, settings, options))
    finally:
        doors.close()
    return 0


def _bring_up_to_date(places: Places) -> None:
    try:
        bring_up_to_date(places)
    except OSError as problem:
        # A full disk must not keep the server from serving; the next start tries again.
        log.warning("the state folder was not brought up to date: %s", problem)


def _open_doors(places: Places, settings: Settings, options: ServerOptions, tls: ssl.SSLContext | None) -> Doors:
    def open_now() -> Doors:
        return open_doors(places, settings.get_str("server.bind"), tls)

    try:
        return open_now()
    except ServerRuns:
        if options.ephemeral or options.stand_in:
            raise
        from wsh.http.server.takeover import take_over

        return take_over(places, open_now)


def _record(doors: Doors, options: ServerOptions, *, persistent: bool) -> None:
    """What clients need to know of us, also after we were killed: whether to wait for us, and how we were started."""
    from wsh.wire.setting import SETTINGS

    doors.write_runtime_info(
        version=VERSION,
        ephemeral=not persistent,
        stand_in=options.stand_in,
        arguments=list(options.arguments),
        environ={s.env: os.environ[s.env] for s in SETTINGS if s.env in os.environ},
    )


async def _serve(doors: Doors, settings: Settings, options: ServerOptions) -> None:
    open_package("uvicorn")
    from wsh.app.lifetime import Lifetime
    from wsh.http.server.serve import ConnectionLimits, Listener, Presence

    presence = Presence()
    lifetime = Lifetime(
        presence,
        persistent=not options.ephemeral,
        linger_s=settings.get_int("server.ephemeral_linger_s"),
    )
    lifetime.told = lambda persistent: _record(doors, options, persistent=persistent)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: lifetime.stop(keep_sessions=True))
    app = App(doors, settings, options, lifetime)
    limits = ConnectionLimits(
        frame_bytes=settings.get_int("server.max_frame_bytes"),
        header_s=settings.get_float("server.header_timeout_s"),
    )
    tcp = Listener(app.gateway, "tcp", limits, presence)
    unix = Listener(app.gateway, "unix", limits, presence)
    await tcp.start(doors.tcp, doors.tls)
    await unix.start([doors.unix])
    try:
        await app.open()
        app.announce()
        notify_systemd("READY=1")
        lifetime.look()
        await lifetime.stopping.wait()
    finally:
        notify_systemd("STOPPING=1")
        lifetime.close()
        app.gateway.closing = True
        await asyncio.gather(tcp.aclose(GRACE_S), unix.aclose(GRACE_S), app.late.aclose())
        await app.aclose(keep_sessions=lifetime.keep_sessions, forsaken=lifetime.forsaken)


class App:
    """One server's rooms, wired together. `open` fills them; the gateway may be served before that."""

    def __init__(self, doors: Doors, settings: Settings, options: ServerOptions, lifetime: Lifetime) -> None:
        from wsh.app.late import LateRooms
        from wsh.http.auth import Authority
        from wsh.http.route import server_route
        from wsh.http.route.table import Table
        from wsh.http.server.gateway import Gateway, Mount
        from wsh.wire.token import TokenFile

        ensure_private(doors.places.state)
        ensure_private(doors.places.config)
        self.doors = doors
        self.places = doors.places
        self.settings = settings
        self.options = options
        self.lifetime = lifetime
        authority = Authority(TokenFile(doors.places.tokens, options.token), settings)
        authority.cookie_name = f"wsh_{doors.port}"
        self.table = Table(server_route.ROUTES)
        prefix = clean_prefix(settings.get_str("server.base_prefix"))
        self.facts = server_route.ServerFacts(
            url=doors.url,
            base_prefix=prefix,
            server_id=secrets.token_hex(8),
            authority=authority,
            lifetime=lifetime,
            table=self.table,
            secure=doors.tls is not None,
        )
        # Handlers that need more than the server's facts wait for `ready`, and then find the rooms in place.
        self.gateway: Gateway = Gateway(
            self.table, cast("Rooms", _Opening(self.facts)), authority, make_access(doors, settings, prefix)
        )
        self.late = LateRooms(self)
        self.gateway.mounts.append(Mount("/mcp", _serve_late(self.late.mcp)))
        self._registry: SessionRegistry | None = None
        self._closers: list[Callable[[], None]] = []

    @property
    def registry(self) -> SessionRegistry:
        assert self._registry is not None, "the rooms are not open yet"
        return self._registry

    async def open(self) -> None:
        """Import and open the rooms; from then on every request is answered."""
        from wsh.desktop.window.notification import find_sender
        from wsh.host.ssh.book import SshBook
        from wsh.http.route import operation_route, page_route, socket_route
        from wsh.http.ws.json import encode_event
        from wsh.notice.notices import Notices
        from wsh.operation.context import Rooms
        from wsh.operation.tally import LimitTally
        from wsh.session.presence import Clients
        from wsh.session.registry import SessionRegistry
        from wsh.visual.feed import Feeds
        from wsh.visual.stage_registry import StageRegistry

        for module in (operation_route, socket_route, page_route):
            for route in module.ROUTES:
                self.table.add(route)
        # The keeper takes a moment to start: time to import what comes after it.
        self.late.start_imports()
        notices = Notices(self.places, self.settings)
        await notices.load()
        registry = self._registry = await SessionRegistry.open(self.places, self.settings, notices.outbox.heard)
        self.stages: StageRegistry = StageRegistry(self.settings)
        self.rooms: Rooms = Rooms(
            self.settings,
            self.places,
            self.facts,
            Clients(self.settings.get_int("server.max_viewers"), self.settings.get_int("server.max_sockets")),
            self.stages,
            Feeds(self.stages, encode_event),
            registry,
            self.late.contract,
            self.late.workspace,
            self.late.execute,
            LimitTally("waits", self.settings.get_int("server.max_waits"), "server.max_waits"),
            notices,
        )
        self._book = SshBook(self.places, self.settings, self.rooms.hosts, self.facts.hostname)
        self.rooms.host_book = self._book
        self.rooms.run_tool = self.late.run_tool
        self.gateway.rooms = self.rooms
        self.facts.list_damage = lambda: [*registry.list_warnings(), *self.late.list_warnings()]
        self.lifetime.sessions = self._holding
        self._closers.append(registry.lifecycle.add(self._on_lifecycle))
        for session in registry.list_sessions():
            session.listeners.add(self._on_session)
        await self.rooms.wakes.start()
        notices.has_desktop, notices.notify_desktop = find_sender(os.environ) is not None, _notify_desktop
        await notices.start(registry, self.rooms.wakes)
        self.gateway.ready.set()
        self.late.start()
        self._book.open()

    def _on_lifecycle(self, event: LifecycleEvent) -> None:
        from wsh.session.registry import SessionCreated

        if isinstance(event, SessionCreated):
            event.session.listeners.add(self._on_session)
        self.lifetime.look()

    def _on_session(self, event: SessionEvent) -> None:
        from wsh.session.event import Exited

        if isinstance(event, Exited):
            self.lifetime.look()

    def _holding(self) -> Holding:
        """Which sessions hold an ephemeral server."""
        running = [session for session in self.registry.list_sessions() if session.running]
        contract = self.late.contract.peek()
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
            await self.rooms.notices.aclose()
            await self.rooms.wakes.aclose()
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

    def announce(self) -> None:
        """Say where we are. The link works once; the token itself is not printed."""
        from wsh.client.install import find_command

        say = self.options.announce
        facts = self.facts
        if self.options.as_json:
            told = {"url": f"{facts.url}{facts.base_prefix}", "pid": os.getpid(), "socket": str(self.places.socket)}
            say(json.dumps(told | {"version": VERSION, "link": facts.make_link()}))
            return
        if self.options.ephemeral:
            return
        if self.doors.moved_from is not None:
            say(f"Port {self.doors.moved_from} is taken; using {self.doors.port}.")
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
    from wsh.desktop.window.notification import notify

    return notify(title, text, urgent=urgent)


def _check_stage() -> None:
    from wsh.contract.request.alias import find_bad_stage

    problem = find_bad_stage(os.environ)
    if problem is not None:
        raise SettingError(problem)


def _serve_late(late: Late[McpEndpoint]) -> Callable[..., Awaitable[None]]:
    """An ASGI application that is another one, once that is there."""

    async def serve(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        app = await late.get()
        await app(scope, receive, send)

    return serve


@dataclass
class _Opening:
    """What handlers find before the rooms are open: the server's facts alone."""

    server: object


def make_access(doors: Doors, settings: Settings, prefix: str) -> Access:
    """Exactly the Host and Origin values that mean this server."""
    from wsh.http.server.gateway import Access

    names = {doors.host, *doors.addresses} - {"", "0.0.0.0", "::"}
    if doors.host in {"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"}:
        names |= {"127.0.0.1", "localhost", "::1"}
    bracketed = {f"[{name}]" if ":" in name else name.lower() for name in names}
    hosts = {f"{name}:{doors.port}" for name in bracketed}
    if doors.port == (443 if doors.tls else 80):
        hosts |= bracketed
    hosts |= {host.lower() for host in settings.get_list("server.allowed_hosts")}
    origins = frozenset(f"{doors.scheme}://{host}" for host in hosts)
    return Access(
        hosts=frozenset(hosts),
        origins=origins,
        cors_origins=frozenset(origin.rstrip("/") for origin in settings.get_list("server.cors_origins")),
        base_prefix=prefix,
        max_body_bytes=settings.get_int("server.max_body_bytes"),
        body_s=settings.get_float("server.body_timeout_s"),
    )


def clean_prefix(prefix: str) -> str:
    """`/wsh` from `wsh`, `/wsh/` and the like; empty stays empty."""
    parts = [part for part in prefix.split("/") if part]
    if any(not part.replace("-", "").replace("_", "").replace(".", "").isalnum() for part in parts):
        raise SettingError(f"server.base_prefix must be a path of letters, digits, '-', '_' and '.', not {prefix!r}")
    return "".join(f"/{part}" for part in parts)


def _set_up_logging() -> None:
    level = os.environ.get("WSH_LOG", "info").upper()
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("wsh").setLevel(level if level in {"DEBUG", "INFO", "WARNING", "ERROR"} else "INFO")
