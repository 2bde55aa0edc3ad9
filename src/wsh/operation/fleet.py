"""The fleet that this server is a node of: which nodes there are, joining and leaving. Only the owner changes that."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import operation
from wsh.wire.model.base import Model, Shown

Path = Annotated[str, Field(min_length=1, max_length=4096)]


class FleetNodeInfo(Shown):
    name: str
    online: bool
    here: bool
    """True for this server itself."""
    since: float | None
    """Since when it is online or offline: seconds since the epoch."""
    last_seen: float | None
    tags: list[str]
    load: float | None
    """Processes that want a core, per core, over the last minute."""
    sessions: int | None
    version: str | None
    role: str | None
    """What its callers may be on other nodes: `owner`, `agent`, or `serve` for one that does not call."""


class FleetInfo(Shown):
    fleet: str | None
    """Its name; null for a server that was not told to join one."""
    name: str | None
    """This node's name in it."""
    url: str | None
    joined: bool
    """False while this server works alone."""
    problem: str | None
    """Why it is alone."""
    since: float | None
    nodes: list[FleetNodeInfo]


class FleetJoin(Model):
    url: Annotated[str, Field(description="Of the NATS server, such as nats://10.0.0.1:4222.", max_length=1024)]
    credentials: Annotated[Path, Field(description="The file that `wsh fleet invite` made.")] | None = None


@operation(manner="reads")
async def get_fleet(context: Context) -> FleetInfo:
    """This server's fleet: whether it is joined, and all nodes with tags, load and number of sessions."""
    return FleetInfo.model_validate(await context.rooms.fleet.describe())


@operation(who="owner", errors=("invalid_request", "capability_missing"))
async def join_fleet(context: Context, params: FleetJoin) -> FleetInfo:
    """Join a fleet now, until this server ends; the settings hold for the next one."""
    await context.rooms.fleet.join(params.url, params.credentials)
    return FleetInfo.model_validate(await context.rooms.fleet.describe())


@operation(who="owner")
async def leave_fleet(context: Context) -> FleetInfo:
    """Leave the fleet. The other nodes forget this one; its sessions go on here."""
    await context.rooms.fleet.leave()
    return FleetInfo.model_validate(await context.rooms.fleet.describe())
