"""What an answer of `execute_command` left out is read by its handle: by line, by text, and by nobody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_execute_command import World, playing
from wsh.contract.output.kept_output import read_lines
from wsh.wire.buffer import OutputBuffer
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places
from wsh.wire.tool import ToolFailure

ME = Caller("agent", "caller-1", "token", client="test")


def _pages(world: World, handle: str, **given: Any) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    line: int | None = 1
    while line is not None:
        page = world.service.read(handle, given.get("stream", "stdout"), line, given.get("search"), ME)
        assert len(json.dumps(page)) < 6000
        pages.append(page)
        line = page.get("next_line")
    return pages


async def test_the_pages_of_a_long_output_are_all_of_it(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, result_bytes=5000) as world:
        done = await world.succeed("seq 1 20000", ALLOWED_COMMANDS="seq")
        assert "1\n2\n3\n" not in done["stdout"]
        pages = _pages(world, done["output_of"])
        assert "".join(page["stdout"] for page in pages) == "".join(f"{n}\n" for n in range(1, 20_001))
        assert {page["total_lines"] for page in pages} == {20_000} and pages[0]["exit_code"] == 0
        (found,) = _pages(world, done["output_of"], search="1234")
        assert found["stdout"].splitlines()[:2] == ["1234: 1234", "11234: 11234"]


async def test_the_error_stream_of_a_failure_is_kept_too(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, result_bytes=5000) as world:
        done = await world.succeed("sh -c 'seq 1 9000 >&2; exit 3'", ALLOWED_COMMANDS="*")
        pages = _pages(world, done["output_of"], stream="stderr")
        assert "".join(page["stderr"] for page in pages).startswith("1\n2\n3\n")
        assert {page["exit_code"] for page in pages} == {3}


async def test_nobody_else_reads_it_and_the_oldest_goes_first(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, result_bytes=5000) as world:
        world.service._kept.max_bytes = 150_000
        first = (await world.succeed("seq 1 20000", ALLOWED_COMMANDS="seq"))["output_of"]
        with pytest.raises(ToolFailure, match="is kept for you"):
            world.service.read(first, "stdout", 1, None, replace(ME, name="caller-2"))
        second = (await world.succeed("seq 1 20001", ALLOWED_COMMANDS="seq"))["output_of"]
        with pytest.raises(ToolFailure, match="is kept for you"):
            world.service.read(first, "stdout", 1, None, ME)
        assert world.service.read(second, "stdout", 20_001, None, ME)["stdout"] == "20001\n"
        huge = await world.succeed("seq 1 100000", ALLOWED_COMMANDS="seq")
        assert "output_of" not in huge and "wsh_run_command" in huge["rest"]


async def test_what_fits_into_the_answer_needs_no_handle(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        assert "output_of" not in await world.succeed("seq 1 10", ALLOWED_COMMANDS="seq")


def test_a_line_that_no_answer_carries_is_begun_and_passed() -> None:
    kept = OutputBuffer(1 << 20)
    kept.append(b"\0" * 100_000 + b"\nend\n")
    page = read_lines(kept, 1, None, 1000)
    assert page.next_line == 2 and 0 < len(json.dumps(page.text)) <= 1000
    assert read_lines(kept, 2, None, 1000).text == "end\n"
    assert read_lines(kept, 7, None, 1000).text == ""
