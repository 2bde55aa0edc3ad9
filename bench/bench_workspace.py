"""The workspace index on a real tree: building against the cost of parsing, searching against ripgrep, ranking.

Ripgrep is measured as it is used, a new process for each search. Both sides run over the same files in the same run.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.row import Row, at_most, at_most_ratio, interleave, median
from bench.scorecard.cache import tree_folder
from bench.workspace_fresh_questions import FRESH_QUESTIONS
from bench.workspace_questions import QUESTIONS
from bench.workspace_tree import make_tree
from wsh.wire.setting import load
from wsh.wire.system.place import Places
from wsh.workspace.file.language import GRAMMARS, language_of
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import ToolContext
from wsh.workspace.tool import call_tool

GROUP = "workspace"
BUILDS = 3
ROUNDS = 5

LITERALS = [
    "def parse_args", "merge_environment_settings", "self.assertEqual(", "raise NotImplementedError",
    "application/json", "Content-Type", "utf-8", "__init__(self", "TODO", "logging.getLogger(__name__)",
    "import asyncio", "HTTPConnectionPool", "get_running_loop()", "except KeyError:", "@property",
    "return self._", "isinstance(value, str)", "Copyright (c)", "os.environ.get(", "yield from",
    "lambda x:", "no_proxy", "#include <stdio.h>", "deprecated", "SSLContext",
]  # fmt: skip
ANCHORED = [
    r"class \w+Error\(", r"def test_\w+", r"raise \w+Error\(", r"async def \w+\(self", r"import (os|sys)$",
    r"self\.\w+ = None", r"def __\w+__\(self\)", r"https?://[^\s]+", r"logger\.(debug|info)\(", r"assert \w+ ==",
    r"except \w+ as \w+:", r"@\w+\.setter", r"return \[.*for .* in", r"isinstance\(\w+, \(", r"Copyright \d{4}",
    r"version = .\d+", r"struct \w+ \{", r"# type: ignore\[\w+", r"warnings\.warn\(", r"with open\(\w+",
]  # fmt: skip
OPEN = [r"\d+px", r"[A-Z]{5,}_\w+", r"\b\w{25,}\b", r"0x[0-9a-f]{8}", r"[a-z]+\.[a-z]+\.[a-z]+\(", r"\[\d+\]$"]


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        tree = base / "tree"
        files, size = make_tree(tree)
        with asyncio.Runner() as runner:
            desk = runner.run(_Desk.open(base, tree))
            try:
                rows = _builds(desk, runner, tree, files, size)
                rows += _searches(desk, runner, tree)
                rows += _ranking(desk, runner)
            finally:
                runner.run(desk.service.aclose())
    return [*rows, *_fresh_ranking()]


class _Desk:
    def __init__(self, service: WorkspaceService, tree: Path) -> None:
        self.service = service
        self.context = ToolContext(str(tree))

    @classmethod
    async def open(cls, base: Path, tree: Path) -> _Desk:
        places = Places(base / "runtime", base / "state", base / "config")
        return cls(WorkspaceService(places, load(None, {})), tree)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await call_tool(self.service, name, arguments, self.context)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


# building


def parse_everything(tree: Path) -> None:
    """Read every file and parse it with its grammar, in one process per core."""
    paths = sorted(str(path) for path in tree.rglob("*") if path.is_file())
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryFile(buffering=0) as queue:  # on disk, where the kernel guards the offset that workers share
        queue.write(b"".join(number.to_bytes(4, "little") for number in range(len(paths))))
        queue.seek(0)
        workers = []
        for _ in range(cores):
            pid = os.fork()
            if pid == 0:
                try:
                    _parse_some(queue.fileno(), paths)
                finally:
                    os._exit(0)
            workers.append(pid)
        for pid in workers:
            os.waitpid(pid, 0)


def _parse_some(queue: int, paths: list[str]) -> None:
    from tree_sitter import Language, Parser

    parsers: dict[str, Parser] = {}
    while batch := os.read(queue, 32):
        for at in range(0, len(batch), 4):
            path = paths[int.from_bytes(batch[at : at + 4], "little")]
            data = Path(path).read_bytes()
            language = language_of(path)
            if language not in GRAMMARS:
                continue
            if language not in parsers:
                module, function = GRAMMARS[language]
                parsers[language] = Parser(Language(getattr(importlib.import_module(module), function)()))
            parsers[language].parse(data)


def _builds(desk: _Desk, runner: asyncio.Runner, tree: Path, files: int, size: int) -> list[Row]:
    times = interleave(
        {
            "parse": lambda: _timed(lambda: parse_everything(tree)),
            "build": lambda: _timed(lambda: runner.run(desk.call("index_build", full=True))),
        },
        BUILDS,
    )
    note = f"{files} files, {size / 1e6:.0f} MB"
    rows = [
        at_most_ratio(
            GROUP,
            "building the index",
            median(times["build"]),
            median(times["parse"]),
            "ms",
            "parsing alone",
            2.5,
            note,
        )
    ]
    runner.run(desk.call("index_build"))
    changed = tree / "click" / "core.py"
    text = changed.read_text()
    updates = []
    for turn in range(ROUNDS):
        changed.write_text(f"{text}\n# turn {turn}\n")
        updates.append(_timed(lambda: runner.run(desk.call("index_build"))))
    changed.write_text(text)
    runner.run(desk.call("index_build"))
    rows.append(at_most(GROUP, "updating it after one change", median(updates), 300, "ms"))
    status = runner.run(desk.call("index_status"))
    rows.append(
        at_most_ratio(GROUP, "its size", status["sizeBytes"] / 1e6, status["textBytes"] / 1e6, "MB", "the text", 1.2)
    )
    return rows


# searching


def _searches(desk: _Desk, runner: asyncio.Runner, tree: Path) -> list[Row]:
    async def measure(work: Callable[[], Awaitable[object]]) -> float:
        started = time.perf_counter()
        await work()
        return (time.perf_counter() - started) * 1000

    def ours(query: str, match: str) -> float:
        work = lambda: desk.call("search", query=query, match=match, mode="all")  # noqa: E731
        return median([runner.run(measure(work)) for _ in range(ROUNDS)])

    def ripgrep(*words: str) -> float:
        program = shutil.which("rg")
        assert program is not None, "ripgrep is not installed"
        command = [program, "--line-number", "--no-heading", *words, "."]

        def once() -> None:
            done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
            assert done.returncode in (0, 1), done.stderr

        return median([_timed(once) for _ in range(ROUNDS)])

    for query, match in (("warm up", "words"), ("warm up", "literal"), (r"warm\s+up", "regex")):
        ours(query, match)
    rows = [
        at_most(GROUP, "words, p50", median([ours(query, "words") for query, _ in QUESTIONS]), 5, "ms"),
    ]
    for title, match, queries, flags, factor in (
        ("a literal, p50", "literal", LITERALS, ["--fixed-strings"], 1.0),
        ("a pattern with a literal in it, p50", "regex", ANCHORED, [], 1.0),
        ("any other pattern, p50", "regex", OPEN, [], 1.2),
    ):
        mine, theirs = [], []
        for query in queries:
            mine.append(ours(query, match))
            theirs.append(ripgrep(*flags, "-e", query))
        rows.append(at_most_ratio(GROUP, title, median(mine), median(theirs), "ms", "ripgrep", factor))
    return rows


# ranking


def _ranking(desk: _Desk, runner: asyncio.Runner) -> list[Row]:
    missed = []
    for query, answers in QUESTIONS:
        hits = runner.run(desk.call("search", query=query, top=5))["hits"]
        if not {hit["path"] for hit in hits} & set(answers):
            missed.append(query)
    share = 100 * (1 - len(missed) / len(QUESTIONS))
    note = f"missed: {', '.join(missed)}" if missed else f"all {len(QUESTIONS)}"
    return [
        Row(GROUP, "answers among the first five", share, "%", share, "≥ 90 %", share >= 90, note=note),
    ]


def _fresh_ranking() -> list[Row]:
    """The same over trees and questions that nobody looked at before."""
    missed: list[str] = []
    asked = 0
    for name, questions in FRESH_QUESTIONS.items():
        tree = tree_folder(name)
        if tree is None:
            continue
        with tempfile.TemporaryDirectory() as temporary, asyncio.Runner() as runner:
            desk = runner.run(_Desk.open(Path(temporary), tree))
            try:
                runner.run(desk.call("index_build", full=True))
                for query, answers in questions:
                    asked += 1
                    hits = runner.run(desk.call("search", query=query, top=5))["hits"]
                    if not {hit["path"] for hit in hits} & set(answers):
                        missed.append(f"{name}: {query}")
            finally:
                runner.run(desk.service.aclose())
    if not asked:
        return []
    share = 100 * (1 - len(missed) / asked)
    note = f"missed: {', '.join(missed)}" if missed else f"all {asked}"
    title = f"answers among the first five, {asked} fresh questions"
    return [Row(GROUP, title, share, "%", share, "≥ 85 %", share >= 85, note=note)]
