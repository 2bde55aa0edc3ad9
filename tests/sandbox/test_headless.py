"""Commands without a terminal in the sandbox that agents get."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.contract.world import with_keeper
from tests.support.sandbox.held import BackendName, each_backend, make_project, policy_of, require
from tests.support.waiting import until
from wsh.app.headless import HeadlessRunner
from wsh.sandbox.hold import Sandboxes
from wsh.sandbox.profile import WORKSPACE
from wsh.sandbox.section import SandboxPolicy
from wsh.wire.system.place import Places

pytestmark = [pytest.mark.anyio, pytest.mark.accept]


def _make_hostile(root: Path) -> Path:
    """A repository whose `git status` makes the file `canary`."""
    project = make_project(root)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "evil").write_text("#!/bin/sh\ntouch canary\n")
    (project / "evil").chmod(0o755)
    subprocess.run(["git", "-C", str(project), "config", "core.fsmonitor", "./evil"], check=True)
    return project


@each_backend
async def test_a_repository_runs_nothing_by_its_settings(places: Places, tmp_path: Path, backend: BackendName) -> None:
    require(backend)
    project = _make_hostile(tmp_path)

    async def policy() -> SandboxPolicy:
        return policy_of(backend, agents=WORKSPACE)

    printed = bytearray()
    async with with_keeper(places) as held:
        sandboxes = Sandboxes(places)
        runner = HeadlessRunner(held.keeper, os.environ, sandboxes=sandboxes, sandbox=policy)
        run = await runner.start(
            ["git", "status", "--short"], cwd=str(project), env={}, on_output=lambda _, data: printed.extend(data)
        )
        try:
            assert await run.wait(60_000)
        finally:
            await run.aclose()
            sandboxes.close()
        assert (run.result.exit_code, printed.decode()) == (0, "?? evil\n")
        await until(lambda: not list((places.state / "sandbox").iterdir()))
    assert not (project / "canary").exists()
    await asyncio.to_thread(subprocess.run, ["git", "-C", str(project), "status"], check=True, capture_output=True)
    assert (project / "canary").exists(), "the repository is not as hostile as it should be"
