"""The server itself: which one it is, how long it stays, who is connected."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

from wsh.operation.context import Context
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.session.presence import Present
from wsh.wire.model.base import Model
from wsh.wire.model.session import Persist, ServerInfo
from wsh.wire.version import VERSION


class StopParams(Model):
    keep: bool = False


@operation(manner="reads")
async def get_server_info(context: Context) -> ServerInfo:
    """Which server this is."""
    server = context.rooms.server
    warnings = await asyncio.to_thread(_list_warnings, context.rooms.places.policy_file)
    return ServerInfo(
        hostname=server.hostname,
        version=VERSION,
        server_id=server.server_id,
        warnings=[*warnings, *server.list_damage()],
    )


def _list_warnings(policy_file: Path) -> list[str]:
    """What the owner should know at once. Reads a file and, the first time, imports a room: not on the loop."""
    from wsh.policy.file.store import PolicyStore

    warning = PolicyStore(policy_file).warning
    return [] if warning is None else [warning]


@operation(manner="reads")
async def get_server_mode(context: Context) -> Persist:
    """Whether it stays without clients."""
    return Persist(persistent=context.rooms.server.lifetime.persistent)


@operation(who="owner")
async def set_server_mode(context: Context, params: Persist) -> Persist:
    """Make it stay, or not."""
    lifetime = context.rooms.server.lifetime
    lifetime.set_persistent(params.persistent)
    return Persist(persistent=lifetime.persistent)


@operation(who="owner")
async def stop_server(context: Context, params: StopParams) -> Annotated[Json, "What it is about to do."]:
    """End the server, and the sessions unless `keep`."""
    if not params.keep:
        # Else viewers wait for the next server, and there is nothing left to be shown.
        context.rooms.stages.dismiss_all("the server was stopped, and its sessions with it")
    context.rooms.server.lifetime.stop(keep_sessions=params.keep)
    return {"stopping": True, "pid": os.getpid()}


@operation(who="owner", manner="reads", forwarding=Forwarding(joined="clients"))
async def list_clients(context: Context) -> Annotated[Json, "`{clients}`"]:
    """Who is connected, to which session, and how: WebSockets, viewers, MCP clients."""
    rooms = context.rooms
    found = [
        (present, session.name if session is not None else None)
        for session in [*rooms.registry.list_sessions(), None]
        for present in rooms.clients.list_present(session)
    ]
    # A browser has many connections and is one client: told by the terminal that it shows, where it shows one.
    told: dict[object, tuple[Present, str | None]] = {}
    for present, name in sorted(found, key=lambda one: one[0].manner != "view"):
        told.setdefault(present.whose, (present, name))
    return {"clients": [*(present.to_wire(name) for present, name in told.values()), *rooms.list_mcp_clients()]}
