"""What runs a headless command, as this room needs it. The composition root plugs the keeper's runner in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or the signal that killed it."""

    code: int | None
    signal: str | None = None


class Started(Protocol):
    """A command that runs. Its output goes to the callback given at the start."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> Ended:
        """Until it has ended and all its output was handed over. May be called by several."""

    async def kill(self) -> Sequence[int]:
        """End the whole tree; the pids that survived."""

    async def aclose(self) -> None:
        """Kill what still runs, and let go."""


class Runner(Protocol):
    """Raises `ProgramNotFound` or `CwdNotFound` (wire errors) when there is nothing to run."""

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        on_output: Callable[[Literal["stdout", "stderr"], bytes], None],
    ) -> Started:
        """Start `argv` without a shell, with `env` over the minimal environment, stdin closed."""
