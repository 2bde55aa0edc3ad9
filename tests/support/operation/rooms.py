"""Only as many rooms as a call needs, for tests of one operation without a server."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from wsh.operation.context import Rooms
from wsh.operation.deferred import Deferred
from wsh.operation.sandbox import SandboxPolicies
from wsh.operation.tally import LimitTally


def make_rooms(**late: object) -> Rooms:
    """Rooms in which these are open already. Asks for a running loop."""
    rooms = SimpleNamespace(
        check_offered=lambda family, caller: None,
        waits=LimitTally("waits", 1024, "server.max_waits"),
        sandbox=SandboxPolicies(Path("/nowhere/policy.toml")),
    )
    for name, thing in late.items():
        held: Deferred[object] = Deferred()
        held.set(thing)
        setattr(rooms, name, held)
    return cast(Rooms, rooms)
