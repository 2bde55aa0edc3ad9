"""Keepers that are forked, not executed, for tests to which a keeper's start is nothing: that of an interpreter takes three times as much as the rest of its life."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import socket
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import warm
from wsh.process import launch


class _KeeperPopen(subprocess.Popen[Any]):
    """As `subprocess.Popen`; a start of a keeper is an order to the process that forks them."""

    def _execute_child(self, *given: Any) -> None:
        ordinary = super()._execute_child  # type: ignore[misc]
        told = inspect.signature(ordinary).bind(*given).arguments
        status = warm._start_keeper(told) if warm._is_keeper(told) else None
        if status is None:
            ordinary(*given)
            return
        self.returncode = status
        self._close_pipe_fds(*(told[name] for name in warm._PIPES))  # type: ignore[attr-defined]


def _run(words: list[str], *, timeout: float, check: bool, capture_output: bool, **options: Any) -> Any:
    """As `subprocess.run`, as a keeper is started."""
    assert capture_output and not check
    with _KeeperPopen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        output, errors = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


_SUBPROCESS = SimpleNamespace(run=_run, DEVNULL=subprocess.DEVNULL, SubprocessError=subprocess.SubprocessError)


class _Forker:
    """The process that forks keepers for this one."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._process: subprocess.Popen[bytes]
        self._life: socket.socket
        self._process, self._life = warm.warm_keepers()

    def close(self) -> None:
        if self.owner == os.getpid():
            self._life.close()
            self._process.wait(60)


_forker: _Forker | None = None


@contextlib.contextmanager
def quick_keepers() -> Iterator[None]:
    """Keepers that this process starts in the block are forked from one that has imported what they need."""
    global _forker
    if _forker is None or _forker.owner != os.getpid():
        _forker = _Forker()
        atexit.register(_forker.close)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "subprocess", _SUBPROCESS)
        yield
