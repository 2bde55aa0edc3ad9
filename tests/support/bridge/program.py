"""The scripted desktop as a process of its own, for tests of servers that must find it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.support.waiting import HANG_S

ROOT = Path(__file__).parents[3]


@contextmanager
def running_desktop(
    info: Path, script: Literal["approve", "decline", "ignore"], *, page_answers: bool = False
) -> Iterator[None]:
    """Announces itself in `info`, and answers by `script` until the end of the block."""
    command = [sys.executable, "-m", "tests.support.bridge.scripted", "--script", script, "--info", str(info)]
    if page_answers:
        command.append("--page-answers")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("listening")
            yield
        finally:
            process.terminate()
            process.wait(HANG_S)
