"""A small workspace with known content, and the tools over it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import HANG_S
from tests.support.warm import WarmPopen
from tests.support.workspace.tools import FILES, HereRunner, MakeTools, Tools, write_tree
from wsh.wire.setting import load
from wsh.wire.system.place import Places
from wsh.workspace.child import ProgramRunner
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import Surroundings, TranscriptSource


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", FILES)


@pytest.fixture
def make_tools(places: Places, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeTools]:
    """Tools over a service with given surroundings; everything is closed at the end.

    Builds run in this process unless a runner is given. The start of a builder or scanner is most of what it costs here,
    so these are forked from a process that has imported everything.
    """
    monkeypatch.setattr(subprocess, "Popen", WarmPopen)
    with asyncio.Runner() as runner:
        made: list[WorkspaceService] = []

        def make(
            surroundings: Surroundings | None = None,
            source: TranscriptSource | None = None,
            flags: dict[str, object] | None = None,
            cwd: Path | None = None,
            runner_of_builds: ProgramRunner | None = None,
        ) -> Tools:
            async def create() -> WorkspaceService:
                # A deadline of seconds is no hang on a busy machine, where the first scanner has yet to start.
                settings = load(flags={"index.search_timeout_ms": int(HANG_S * 1000), **(flags or {})})
                service = WorkspaceService(places, settings, surroundings, runner_of_builds or HereRunner())
                if source is not None:
                    service.upkeep.use(source)
                return service

            service = runner.run(create())
            made.append(service)
            return Tools(service, cwd or tree, runner)

        yield make
        for service in made:
            runner.run(service.aclose())


@pytest.fixture
def tools(make_tools: MakeTools) -> Tools:
    return make_tools()


@pytest.fixture
def indexed(tools: Tools) -> Tools:
    """The small tree with its index built."""
    tools("index_build")
    return tools
