"""Composition root: the only file that knows every room.

`run_server` listens before it imports anything heavy: a client that comes while we import waits in the backlog, so a
freshly started server answers as early as it can. Only the standard library and `wire` are imported at the top.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.http.listen import Doors, ServerRuns, load_tls, notify_systemd, open_doors
from wsh.wire.place import Places, ensure_private
from wsh.wire.setting import SettingError, Settings
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.http.gateway import Access, Gateway
    from wsh.http.lifetime import Holding, Lifetime
    from wsh.session.registry import SessionRegistry

log = logging.getLogger("wsh.app")

GRACE_S = 2.0
"""How long requests under way may take to finish when the server ends."""


@dataclass(frozen=True)
class ServerOptions:
    ephemeral: bool = False
    token: str | None = None
    """The owner's token for this run, instead of the one in the file."""
    announce: Callable[[str], None] = print


def run_server(places: Places, settings: Settings, options: ServerOptions) -> int:
    """Serve until told to stop. The exit status: 0, 2 for a setting that cannot be, 3 if one runs already."""
    _set_up_logging()
    try:
        tls = load_tls(settings.get_str("server.tls_cert"), settings.get_str("server.tls_key"))
        doors = open_doors(places, settings.get_str("server.bind"), tls)
    except ServerRuns as problem:
        print(f"wsh: {problem}; `wsh status` shows it, `wsh stop` ends it", file=sys.stderr)
        return 3
    except (SettingError, OSError) as problem:
        print(f"wsh: {problem}", file=sys.stderr)
        return 2
    try:
        doors.write_runtime_info(version=VERSION, ephemeral=options.ephemeral)
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(doors, settings, options))
    finally:
        doors.close()
    return 0


async def _serve(doors: Doors, settings: Settings, options: ServerOptions) -> None:
    from wsh.http.lifetime import Lifetime
    from wsh.http.serve import Limits, Listener, Presence

    presence = Presence()
    lifetime = Lifetime(
        presence,
        persistent=not options.ephemeral,
        linger_s=settings.get_int("server.ephemeral_linger_s"),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: lifetime.stop(keep_sessions=True))
    app = App(doors, settings, options, lifetime)
    limits = Limits(
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
        gc.collect()
        gc.freeze()
        notify_systemd("READY=1")
        lifetime.look()
        await lifetime.stopping.wait()
    finally:
        notify_systemd("STOPPING=1")
        lifetime.close()
        app.gateway.closing = True
        await asyncio.gather(tcp.aclose(GRACE_S), unix.aclose(GRACE_S))
        await app.aclose(keep_sessions=lifetime.keep_sessions)


class App:
    """One server's rooms, wired together. `open` fills them; the gateway may be served before that."""

    def __init__(self, doors: Doors, settings: Settings, options: ServerOptions, lifetime: Lifetime) -> None:
        from wsh.http import server_route
        from wsh.http.auth import Authority
        from wsh.http.gateway import Gateway
        from wsh.http.route import Table
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
        assert authority.tokens.owner
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
            self.table, _Opening(self.facts), authority, make_access(doors, settings, prefix)
        )
        self._registry: SessionRegistry | None = None
        self._closers: list[Callable[[], None]] = []

    @property
    def registry(self) -> SessionRegistry:
        assert self._registry is not None, "the rooms are not open yet"
        return self._registry

    async def open(self) -> None:
        """Import and open the rooms; from then on every request is answered."""
        from wsh.http import element_route, record_route, session_route, socket_route
        from wsh.http.clients import Clients
        from wsh.http.rooms import Rooms
        from wsh.session.registry import SessionRegistry
        from wsh.visual.stages import Stages

        for route in (*session_route.ROUTES, *element_route.ROUTES, *record_route.ROUTES, *socket_route.ROUTES):
            self.table.add(route)
        registry = self._registry = await SessionRegistry.open(self.places, self.settings)
        self.stages = Stages(self.settings)
        clients = Clients(self.settings.get_int("server.max_viewers"))
        self.rooms = Rooms(self.settings, self.places, self.facts, clients, self.stages, registry)
        self.gateway.rooms = self.rooms
        self.lifetime.sessions = self._holding
        self._closers.append(registry.lifecycle.add(lambda event: self.lifetime.look()))
        self.gateway.ready.set()

    def _holding(self) -> Holding:
        """Which sessions hold an ephemeral server."""
        sessions = self.registry.list_sessions()
        if any(session.keep for session in sessions):
            return "kept"
        return "agents" if sessions else "none"

    async def aclose(self, *, keep_sessions: bool) -> None:
        """End the rooms; with `keep_sessions` running children stay with the keeper."""
        for close in self._closers:
            close()
        if self._registry is None:
            return
        self.stages.close()
        if keep_sessions and len(self._registry):
            await self._registry.aclose()
        else:
            await self._registry.stop()

    def announce(self) -> None:
        """Say where we are. The link works once; the token itself is not printed."""
        say = self.options.announce
        if self.options.ephemeral:
            return
        facts = self.facts
        if self.doors.moved_from is not None:
            say(f"Port {self.doors.moved_from} is taken; using {self.doors.port}.")
        say(f"wsh {VERSION} listens on {facts.url}{facts.base_prefix}")
        say(f"  page    {facts.make_link()}  (works once, within 10 minutes)")
        say(f"  socket  {self.places.socket}")
        say("  MCP configuration to paste, over stdio:")
        say('    {"mcpServers": {"wsh": {"command": "wsh", "args": ["mcp"]}}}')
        say("  or over HTTP, with a token from `wsh token --agent NAME`:")
        mcp = f"{facts.url}{facts.base_prefix}/mcp"
        auth = '"headers": {"Authorization": "Bearer TOKEN"}'
        say(f'    {{"mcpServers": {{"wsh": {{"type": "http", "url": "{mcp}", {auth}}}}}}}')
        say("Ctrl+C ends the server and keeps the sessions; `wsh stop` ends both.")


@dataclass
class _Opening:
    """What handlers find before the rooms are open: the server's facts alone."""

    server: object


def make_access(doors: Doors, settings: Settings, prefix: str) -> Access:
    """Exactly the Host and Origin values that mean this server."""
    from wsh.http.gateway import Access

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
