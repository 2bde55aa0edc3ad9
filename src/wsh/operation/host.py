"""Other machines: which there are, adding and removing them. Only the owner changes that."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import operation
from wsh.wire.error import StateConflict
from wsh.wire.model.base import Model, Shown

Word = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s\x00-\x1f-][^\x00-\x1f]*$")]


class HostName(Model):
    host: str


class HostTarget(Model):
    target: (
        Annotated[Word, Field(description="What `ssh` connects to: a name of ~/.ssh/config, host or user@host.")] | None
    ) = None
    command: Annotated[Word, Field(description="How `wsh` is called there; left out, it is looked for.")] | None = None


class HostAdd(HostTarget):
    host: str


class HostInfo(Shown):
    name: str
    kind: str
    """What carries to it: `ssh`."""
    target: str
    online: bool
    since: float
    """Since when it is online or offline: seconds since the epoch."""
    last_seen: float | None
    version: str | None
    """Of wsh there, when it was last seen."""
    protocol: int | None
    problem: str | None
    """Why it is offline."""
    same_as: str | None = None
    """Another name of the same server, under which its sessions are listed: of a host, or of this machine."""


class HostList(Shown):
    hosts: list[HostInfo]


@operation(manner="reads")
async def list_hosts(context: Context) -> HostList:
    """Other machines, whether they can be reached, and since when."""
    await context.rooms.hosts.refresh()
    return _list(context)


def _list(context: Context) -> HostList:
    return HostList(hosts=[HostInfo.model_validate(state.to_wire()) for state in context.rooms.hosts.list_hosts()])


@operation(who="owner", errors=("invalid_host_name", "conflict"))
async def add_host(context: Context, params: HostAdd) -> HostList:
    """Make another machine's sessions addressable as `name/session`; it is connected to at once."""
    await context.rooms.host_book.add(params.host, params.target or params.host, params.command)
    return _list(context)


@operation(who="owner", errors=("host_not_found", "conflict"))
async def remove_host(context: Context, params: HostName) -> HostList:
    """Forget another machine. Its sessions go on there."""
    if context.rooms.hosts.get_carrier(params.host).state.kind == "nats":
        raise StateConflict(
            f"{params.host!r} is a node of the fleet and was not added here.",
            hint=f"Where the fleet was set up: wsh fleet remove {params.host}. To leave the fleet: wsh fleet leave.",
        )
    await context.rooms.host_book.remove(params.host)
    return _list(context)


@operation()
async def leave_host(context: Context) -> None:
    """A connection of the forwarding server has ended: what it held at this one ends."""
    context.rooms.stages.end_leases(context.caller.id)
