"""Sandboxed sessions for tests: each backend that this machine has, and a project folder to work in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.session.shells import AGENT
from wsh.sandbox import bubblewrap, landlock
from wsh.sandbox.profile import WORKSPACE, Profile
from wsh.sandbox.section import SandboxPolicy
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec

BackendName = Literal["bubblewrap", "landlock"]
BACKENDS: tuple[BackendName, ...] = ("bubblewrap", "landlock")


def find_missing(backend: BackendName) -> str | None:
    return bubblewrap.find_missing() if backend == "bubblewrap" else landlock.find_missing()


def require(backend: BackendName) -> None:
    """Skip where the machine cannot: there a session must be refused, which a test of its own looks at."""
    missing = find_missing(backend)
    if missing is not None:
        pytest.skip(f"{backend}: {missing}")


each_backend = pytest.mark.parametrize("backend", BACKENDS)


def policy_of(backend: BackendName, **more: Any) -> SandboxPolicy:
    return SandboxPolicy(backend=backend, accept_weaker=True, **more)


def make_project(root: Path) -> Path:
    project = root / "project"
    project.mkdir(parents=True, exist_ok=True)
    return project


async def open_held(
    registry: SessionRegistry,
    backend: BackendName,
    folder: Path,
    command: str,
    profile: Profile = WORKSPACE,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> Session:
    require(backend)
    spec = SessionSpec(command=command, cwd=str(folder), env=dict(env or {}), actor=AGENT)
    return await registry.open_session(replace(spec, sandbox=profile, sandbox_policy=policy_of(backend), **more))
