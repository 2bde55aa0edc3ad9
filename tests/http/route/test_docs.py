"""The recipes of docs/http-api.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import running_server
from wsh.wire.system.place import Places

DOCS = (Path(__file__).parents[3] / "docs" / "http-api.md").read_text()
SPLIT = "=====8<====="


def test_the_shell_recipes_do_what_they_say(places: Places) -> None:
    """All of them in one shell, in their order; `#>` says what the answer before it contains."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL) for line in block.splitlines()]
    expected: list[tuple[str, str | None]] = []
    script = ["set -eu"]
    for line in lines:
        if line.startswith("#>"):
            expected[-1] = (expected[-1][0], line.removeprefix("#>").strip())
        elif line:
            script += [line, f"echo; echo '{SPLIT}'"]
            expected.append((line, None))
    with running_server(places) as server:
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            capture_output=True,
            text=True,
            timeout=90,
            env={**os.environ, "URL": server.url, "TOKEN": server.token},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    answers = done.stdout.split(SPLIT)
    assert len(answers) == len(expected) + 1
    for (line, wanted), answer in zip(expected, answers, strict=False):
        assert wanted is None or wanted in answer, f"{line}\nwas answered\n{answer}\nwithout\n{wanted}"


def test_the_python_recipe_does_what_it_says(places: Places) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    with running_server(places) as server:
        env = {**os.environ, "URL": server.url, "TOKEN": server.token}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0 and done.stdout.endswith("hello\n"), done.stdout + done.stderr


def test_the_loop_with_curl_runs_as_it_is_written(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(
        tmp_path
    )  # git tells of many lines in a clone with many changes, and its command leaves the screen
    text = (Path(__file__).parents[3] / "docs" / "core-http.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (tmp_path / "bin").mkdir()
    wsh = tmp_path / "bin" / "wsh"
    wsh.write_text(f'#!/bin/sh\nexec {sys.executable} -m wsh.cli.main "$@"\n')
    wsh.chmod(0o755)
    env = {**os.environ, "PATH": f"{wsh.parent}:{os.environ['PATH']}"}
    divide = f"echo; echo '{SPLIT}'\n"
    script = "set -eu\n" + divide.join(blocks)
    with running_server(places) as server:
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=90, env=env, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert server.get("/sessions") == []
    _, made, read, *_ = done.stdout.split(SPLIT)
    assert '"name":"work"' in made and "git status" in read.replace('","', ""), (
        done.stdout
    )  # a long prompt breaks the line
