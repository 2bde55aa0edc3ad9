"""An index follows its files in the background."""

from __future__ import annotations

import asyncio
import errno
import itertools
from pathlib import Path

from tests.support.waiting import until
from tests.support.workspace.tools import MakeTools, Tools, write_tree
from wsh.workspace.index.refresh import Watcher


async def until_found(tools: Tools, query: str, expected: list[str]) -> None:
    paths: list[str] = []

    async def is_found() -> bool:
        found = await tools.call("search", {"query": query})
        paths[:] = [hit["path"] for hit in found["hits"]]
        return paths == expected

    await until(is_found, f"{query} in {expected}", seen=lambda: paths)


async def until_followed(tools: Tools, file: Path, word: str) -> None:
    """The system needs a moment to set up its watches and tells nobody, so the file changes until that is noticed."""
    turns = itertools.count()

    async def is_followed() -> bool:
        file.write_text(f"{word} = {next(turns)}\n")  # noqa: ASYNC240 - a few bytes
        await asyncio.sleep(0.1)
        return bool((await tools.call("search", {"query": word}))["hits"])

    await until(is_followed, f"{file} to be followed")


def test_changes_new_folders_and_removals_arrive_by_themselves(make_tools: MakeTools, tree: Path) -> None:
    tools = make_tools()

    async def body() -> None:
        tools.service.start_watching()
        await tools.call("index_build", {})
        assert (await tools.call("index_status", {}))["watched"]
        await until_followed(tools, tree / "notes.txt", "emu")
        (tree / "notes.txt").write_text("about the cassowary\n")
        await until_found(tools, "cassowary", ["notes.txt"])
        write_tree(tree, {"deep/er/new.py": "brolga = 1\n"})
        await until_found(tools, "brolga", ["deep/er/new.py"])
        (tree / "deep/er/new.py").write_text("jabiru = 1\n")
        await until_found(tools, "jabiru", ["deep/er/new.py"])
        (tree / "notes.txt").unlink()
        await until_found(tools, "cassowary", [])

    tools.runner.run(body())


def test_a_build_that_fails_ends_no_watch(make_tools: MakeTools, tree: Path) -> None:
    tools = make_tools()
    builds = 0

    async def build(root: str) -> None:
        nonlocal builds
        builds += 1
        raise OSError(errno.EMFILE, "no descriptor for a builder")

    async def body() -> None:
        await tools.call("index_build", {})
        watcher = Watcher(build, tools.service.home_of)
        watcher.follow(str(tree))

        async def is_built_again() -> bool:
            (tree / "notes.txt").write_text(f"{builds} builds\n")
            await asyncio.sleep(0.1)
            return builds >= 3

        try:
            await until(is_built_again, "another build after one that failed", seen=lambda: builds)
            assert watcher.is_following(str(tree))
        finally:
            await watcher.aclose()

    tools.runner.run(body())


def test_a_workspace_below_a_folder_that_is_left_out_elsewhere_is_followed(
    make_tools: MakeTools, tmp_path: Path
) -> None:
    inner = write_tree(tmp_path / ".venv/lib/package", {"a.py": "numbat = 1\n"})
    tools = make_tools(cwd=inner)

    async def body() -> None:
        tools.service.start_watching()
        await tools.call("index_build", {})
        await until_found(tools, "numbat", ["a.py"])
        await until_followed(tools, inner / "a.py", "bilby")

    tools.runner.run(body())


def test_nothing_is_watched_when_the_setting_says_so(make_tools: MakeTools) -> None:
    tools = make_tools(flags={"index.watch": False})

    async def body() -> None:
        tools.service.start_watching()
        await tools.call("index_build", {})
        assert (await tools.call("index_status", {}))["watched"] is False

    tools.runner.run(body())
