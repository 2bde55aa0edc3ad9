"""Real shells with their own home, for tests of what commands do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.session.running import run_with_registry
from wsh.session.command.run import RunOutcome
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.wire.system.place import Places

AGENT = Actor("agent", "test")
SHELLS = ("bash", "zsh", "fish")
each_shell = pytest.mark.parametrize("shell", SHELLS)

Result = TypeVar("Result")


def make_home(root: Path, **files: str) -> str:
    """A home folder with these files: `bashrc` becomes `.bashrc`, `config__fish__config.fish` a path below `.config`."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    # Without one, an ordinary user's first zsh asks how it is to be set up.
    (home / ".zshrc").touch()
    # Without one, a first fish reads every manual page of the machine.
    (home / ".local" / "share" / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = home / ("." + name.replace("__", "/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(home)


def with_shell(
    places: Places,
    command: str,
    work: Callable[[Session], Awaitable[Result]],
    home: str | None = None,
    env: dict[str, str] | None = None,
    integration: bool | None = None,
    **settings: object,
) -> Result:
    """Do `work` in a session of that shell, with an empty home unless one is given."""

    async def body(registry: SessionRegistry) -> Result:
        session = await open_shell(registry, command, home or make_home(places.state.parent), env, integration)
        return await work(session)

    return run_with_registry(places, body, **settings)


async def open_shell(
    registry: SessionRegistry,
    command: str,
    home: str,
    env: dict[str, str] | None = None,
    integration: bool | None = None,
) -> Session:
    variables = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home + "/.config", **(env or {})}
    return await registry.open_session(
        SessionSpec(command=command, cwd="/", env=variables, actor=AGENT, integration=integration)
    )


async def run(session: Session, text: str, **options: Any) -> RunOutcome:
    options.setdefault("timeout_ms", 300)
    options.setdefault("max_wait_ms", 60_000)
    return await session.run_command(text, AGENT, **options)


async def run_to_end(session: Session, text: str, **options: Any) -> RunOutcome:
    """As `run`, for what ends the command in front: the shell tells that, so no silence is the end on a machine that is busy."""
    return await run(session, text, timeout_ms=60_000, **options)


def text_of(outcome: RunOutcome) -> str:
    assert outcome.output is not None, outcome
    return outcome.output.text
