"""An index follows its files in the background."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.support.workspace.tools import MakeTools, Tools, write_tree


async def until_found(tools: Tools, query: str, expected: list[str], deadline_s: float = 20.0) -> None:
    deadline = time.monotonic() + deadline_s
    while True:
        found = await tools.call("search", {"query": query})
        paths = [hit["path"] for hit in found["hits"]]
        if paths == expected:
            return
        assert time.monotonic() < deadline, f"{query}: {paths}"
        await asyncio.sleep(0.1)


def test_changes_new_folders_and_removals_arrive_by_themselves(make_tools: MakeTools, tree: Path) -> None:
    tools = make_tools()

    async def body() -> None:
        tools.service.start_watching()
        await tools.call("index_build", {})
        await until_watched(tools)
        (tree / "notes.txt").write_text("about the cassowary\n")
        await until_found(tools, "cassowary", ["notes.txt"])
        write_tree(tree, {"deep/er/new.py": "brolga = 1\n"})
        await until_found(tools, "brolga", ["deep/er/new.py"])
        (tree / "deep/er/new.py").write_text("jabiru = 1\n")
        await until_found(tools, "jabiru", ["deep/er/new.py"])
        (tree / "notes.txt").unlink()
        await until_found(tools, "cassowary", [])

    async def until_watched(tools: Tools) -> None:
        deadline = time.monotonic() + 10
        while not (await tools.call("index_status", {}))["watched"]:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # the system needs a moment to set up its watches; nothing tells when it has

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
        deadline = time.monotonic() + 20
        turn = 0
        while not (await tools.call("search", {"query": "bilby"}))["hits"]:  # until the watches stand
            assert time.monotonic() < deadline
            turn += 1
            (inner / "a.py").write_text(f"bilby = {turn}\n")
            await asyncio.sleep(0.3)

    tools.runner.run(body())


def test_nothing_is_watched_when_the_setting_says_so(make_tools: MakeTools) -> None:
    tools = make_tools(flags={"index.watch": False})

    async def body() -> None:
        tools.service.start_watching()
        await tools.call("index_build", {})
        assert (await tools.call("index_status", {}))["watched"] is False

    tools.runner.run(body())
