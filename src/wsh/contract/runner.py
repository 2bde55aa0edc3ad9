"""What runs a headless command, as this room needs it. The composition root plugs the keeper's runner in here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

OnOutput: TypeAlias = Callable[[Literal["stdout", "stderr"], bytes], None]


class Result(Protocol):
    """How a command ended: its exit code, or the name of the signal that killed it."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def signal(self) -> str | None: ...


class HeadlessKillReport(Protocol):
    @property
    def survivors(self) -> Sequence[tuple[int, int]]:
        """Pids that live on, each with the errno that protected it."""


class StartedCommand(Protocol):
    """A command that runs. Its output goes to the callback given at the start."""

    @property
    def pid(self) -> int: ...

    @property
    def result(self) -> Result: ...

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Until it has ended and all its output was handed over; False if it still runs then."""

    async def kill(self) -> HeadlessKillReport:
        """End the whole tree."""

    async def aclose(self) -> None:
        """Kill what still runs, and let go."""


class CommandRunner(Protocol):
    """Raises `ProgramNotFound`, `CwdNotFound` or `InvalidEnvironment` when there is nothing to run."""

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_output: OnOutput
    ) -> StartedCommand:
        """Start `argv` without a shell, with `env` over the minimal environment, stdin closed."""


async def abandon(starting: asyncio.Future[StartedCommand]) -> None:
    """The caller is gone while its program was being started."""
    try:
        started = await starting
    except Exception:  # whatever kept it from starting, there is nobody to tell
        return
    await started.aclose()
