"""The window's own end of the bridge without a window: its sessions, shells and policy, with a person made of code."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.contract.world import World, opened
from wsh.approval.card import Card
from wsh.bridge.endpoint import write_endpoint
from wsh.bridge.listener import BridgeListener, ListenerOptions
from wsh.desktop.approver import WindowApprover
from wsh.policy.audit import Audit
from wsh.policy.file.store import PolicyStore
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.wire.setting import load
from wsh.wire.system.place import Places, ensure_private


@dataclasses.dataclass
class Desk:
    world: World
    end: WindowApprover
    registry: SessionRegistry
    listener: BridgeListener
    sessions: list[Session]
    port: int
    policy: PolicyStore


@asynccontextmanager
async def desk(folder: Path, places: Places, shell: str = "bash") -> AsyncIterator[Desk]:
    """A contract and a desktop whose person says yes to everything; terminals run `shell`."""
    ensure_private(places.runtime)
    settings = load(None, {"WSH_SESSION_SHELL": shell})
    registry = await SessionRegistry.open(dataclasses.replace(places, server="desk"), settings)
    ends: list[WindowApprover] = []
    sessions: list[Session] = []

    def say_yes(card: Card) -> None:
        ends[0].pending[card.id].approve()

    policy = PolicyStore(places.policy_file)
    ignore: Callable[..., None] = lambda *_: None  # noqa: E731 - six of them
    end = WindowApprover(
        registry,
        settings,
        policy,
        Audit(places.audit_log),
        on_request=say_yes,
        on_closed=ignore,
        on_history=ignore,
        on_session=sessions.append,
        write_rule=ignore,
        size=lambda: (24, 80),
    )
    ends.append(end)
    listener = BridgeListener(end, ListenerOptions(port=0), None)
    try:
        endpoint = await listener.start()
        async with opened(folder) as world:
            write_endpoint(world.info, endpoint)
            yield Desk(world, end, registry, listener, sessions, endpoint.port, policy)
    finally:
        await listener.aclose()
        await registry.stop()
