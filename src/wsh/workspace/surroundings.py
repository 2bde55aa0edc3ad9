"""What the room needs from the rest of the program, as protocols that the composition root satisfies.

`Alone` is the answer where there is no server around: no sessions, no queue, no journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from wsh.wire.json.object import JsonObject


class Surroundings(Protocol):
    """Facts about the server that `check_status` and `workspace_status` show."""

    def describe_queue(self) -> JsonObject:
        """Calls under way and the limit: `{"active": 0, "limit": 256}`."""
        ...

    async def describe_policy(self) -> JsonObject:
        """State of the policy: `{"state": "ok" | "strict" | "unknown", …}`."""
        ...

    def list_warnings(self, environ: Mapping[str, str]) -> list[dict[str, str]]:
        """What is wrong with the variables of a connection: `{"code", "message"}` each."""
        ...

    def list_sessions(self) -> list[JsonObject]:
        """Sessions with at least `name`, `cwd` (or None) and `running`."""
        ...


class TranscriptSource(Protocol):
    """Where transcripts come from: the journals of the sessions."""

    @property
    def enabled(self) -> bool:
        """Whether output is journaled at all."""
        ...

    async def refresh(self) -> None:
        """Put what was printed since the last time. Called before each search, so it must be quick when idle."""
        ...

    async def replay(self) -> None:
        """Put everything that the journals still hold, for a rebuild."""
        ...


class Alone:
    def describe_queue(self) -> JsonObject:
        return {"active": 0, "limit": None}

    async def describe_policy(self) -> JsonObject:
        return {"state": "unknown"}

    def list_warnings(self, environ: Mapping[str, str]) -> list[dict[str, str]]:
        return []

    def list_sessions(self) -> list[JsonObject]:
        return []


class Reach(Protocol):
    """Which folders and files a caller's tools may read. Paths are absolute and canonical."""

    @property
    def closed(self) -> tuple[str, ...]:
        """Folders and files that searches leave out."""
        ...

    def check_root(self, root: str) -> None:
        """Raises WshError where the caller may not have `root` as a workspace."""
        ...

    def check_file(self, path: str) -> None:
        """Raises WshError where the caller may not read `path`, a file of a workspace that it may have."""
        ...


class Unbounded:
    """The reach of a person."""

    closed: tuple[str, ...] = ()

    def check_root(self, root: str) -> None:
        pass

    def check_file(self, path: str) -> None:
        pass


Progress = Callable[[str, str], None]


def _silent(message: str, phase: str) -> None:
    return None


@dataclass
class ToolContext:
    """One call: where the caller is, whom to tell about progress (message, phase), and what the caller may read."""

    cwd: str
    progress: Progress = field(default=_silent)
    environ: Mapping[str, str] = field(default_factory=dict)
    """The variables that govern the connection."""
    reach: Reach = field(default_factory=Unbounded)
