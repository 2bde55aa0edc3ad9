"""Who makes a request, as every door knows it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wsh.wire.token import Role

Proof: TypeAlias = Literal["token", "unix", "cookie", "ticket"]


@dataclass(frozen=True)
class Caller:
    """Whoever made a request. In an ASGI scope it is found at `scope["state"]["caller"]`."""

    role: Role
    name: str
    proof: Proof
    pid: int | None = None
    """The process at the other end, where the kernel says so."""
    fault: str | None = field(default=None, compare=False)
    """Why a process of the owner's user counts as an agent: see `wsh.wire.owner`."""

    @property
    def id(self) -> str:
        """Stable for one holder of a token; differs between processes on the unix socket."""
        return f"{self.role}:{self.name}" + (f":{self.pid}" if self.pid is not None else "")

    @property
    def is_owner(self) -> bool:
        return self.role == "owner"
