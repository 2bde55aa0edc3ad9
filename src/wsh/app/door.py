"""The early door: sockets that are served before the rooms are open. `/health` is answered; everything else is checked, and waits."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from wsh.app.lifetime import Lifetime
from wsh.http.auth import Authority
from wsh.http.route import server_route
from wsh.http.route.table import Table
from wsh.http.server.gateway import Access, Gateway, Mount
from wsh.http.server.listen import Doors
from wsh.http.server.serve import ConnectionLimits, Listener, Presence
from wsh.operation.deferred import Deferred
from wsh.wire.setting import SettingError, Settings
from wsh.wire.system.place import ensure_private
from wsh.wire.token_file import TokenFile

if TYPE_CHECKING:
    from wsh.mcp.transport.endpoint import McpEndpoint


class EarlyDoor:
    """The gateway with the routes of the server itself. `compose` adds the other routes, and sets `gateway.rooms` and `gateway.ready`."""

    def __init__(self, doors: Doors, settings: Settings, *, ephemeral: bool, token: str | None) -> None:
        ensure_private(doors.places.state)
        ensure_private(doors.places.config)
        self.doors = doors
        self.settings = settings
        presence = Presence()
        self.lifetime = Lifetime(
            presence, persistent=not ephemeral, linger_s=settings.get_int("server.ephemeral_linger_s")
        )
        authority = Authority(TokenFile(doors.places.tokens, token), settings)
        authority.cookie_name = f"wsh_{doors.port}"
        self.table = Table(server_route.ROUTES)
        prefix = clean_prefix(settings.get_str("server.base_prefix"))
        self.facts = server_route.ServerFacts(
            url=doors.url,
            base_prefix=prefix,
            server_id=secrets.token_hex(8),
            authority=authority,
            lifetime=self.lifetime,
            table=self.table,
            secure=doors.tls is not None,
        )
        self.gateway = Gateway(self.table, self.facts, authority, make_access(doors, settings, prefix))
        self.mcp: Deferred[McpEndpoint] = Deferred()
        self.gateway.mounts.append(Mount("/mcp", _serve_deferred(self.mcp), below=("stdio",)))
        limits = ConnectionLimits(
            frame_bytes=settings.get_int("server.max_frame_bytes"),
            header_s=settings.get_float("server.header_timeout_s"),
        )
        self._tcp = Listener(self.gateway, "tcp", limits, presence)
        self._unix = Listener(self.gateway, "unix", limits, presence)

    async def start(self) -> None:
        await self._tcp.start(self.doors.tcp, self.doors.tls)
        await self._unix.start([self.doors.unix])

    async def aclose(self, grace_s: float) -> None:
        """Take no more requests, and end those under way."""
        self.gateway.closing = True
        await asyncio.gather(self._tcp.aclose(grace_s), self._unix.aclose(grace_s))


def _serve_deferred(deferred: Deferred[McpEndpoint]) -> Callable[..., Awaitable[None]]:
    """An ASGI application that passes everything on to `deferred`, once that is set."""

    async def serve(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        app = await deferred.get()
        await app(scope, receive, send)

    return serve


def make_access(doors: Doors, settings: Settings, prefix: str) -> Access:
    """Exactly the Host and Origin values that mean this server."""
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
