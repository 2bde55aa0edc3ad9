"""Who makes a request, as every door knows it and every room gets it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from wsh.wire.token_file import Role

ActorKind: TypeAlias = Literal["agent", "person", "server"]
GOVERNING = ("ALLOWED_", "PM_", "WSH_")
"""What the variables begin with that govern a connection."""
TAKEN_BACK = "taken back by its caller"
"""Said with the cancellation of a call whose caller asked for that, rather than going away."""
Proof: TypeAlias = Literal["token", "unix", "cookie", "ticket"]


@dataclass(frozen=True)
class Actor:
    """Who does something, as it is kept: an agent, a person, or the server itself."""

    kind: ActorKind
    id: str
    connection: str = field(default="", repr=False)
    """Which of several that go by the same name, where they have connections of their own; never told."""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Caller:
    """The program or person that made a request. In an ASGI scope it is found at `scope["state"]["caller"]`."""

    role: Role
    name: str
    proof: Proof
    pid: int | None = None
    """The process at the other end, where the kernel says so."""
    fault: str | None = field(default=None, compare=False)
    """Why a process of the owner's user counts as an agent: see `wsh.wire.system.owner`."""
    account: str = ""
    """Whom limits are counted for: what was proven, whatever the caller then asked to be called."""
    connection: str = ""
    """The connection that owns what its calls make, where there is one; else the holder of the token owns it."""
    client: str = ""
    """The calling program's own name for itself; untrusted, for people to read."""
    for_model: bool = False
    """Whether the calls are a model's, also under a person's token."""
    cwd: str = ""
    """Where the connection works."""
    via: str = ""
    """The other server that admitted the caller and forwards the call; empty for one of our own."""
    environ: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The ALLOWED_*, PM_* and WSH_* variables that govern the connection."""

    @property
    def id(self) -> str:
        """Owns what calls make: the connection, or the holder of a token; processes on the unix socket differ."""
        return self.connection or f"{self.role}:{self.name}" + (f":{self.pid}" if self.pid is not None else "")

    @property
    def counted_as(self) -> str:
        """Whose limits its calls use up."""
        return self.account or self.id

    @property
    def is_owner(self) -> bool:
        return self.role == "owner"

    @property
    def actor(self) -> Actor:
        """The owner is a person, also when a script types for them."""
        return Actor(
            "person" if self.is_owner else "agent",
            (self.client or self.name)[:64],
            self.connection if self.for_model else "",
        )
