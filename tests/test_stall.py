"""The tool that takes the processor from processes, and gives it back."""

from __future__ import annotations

import sys

import pytest

from tests.support import stall

LOOK = """
import time
last = time.monotonic()
while True:
    time.sleep(0.01)
    now = time.monotonic()
    if now - last > 0.1:
        break
    last = now
"""


def test_a_process_stands_still_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freezer = stall.find_freezer()
    if freezer is None:
        assert stall.main([]) == 2 and "needs root" in capsys.readouterr().err
        return
    monkeypatch.setattr(stall, "GAP_S", 0.1)
    try:
        assert stall.run_stalled(freezer, [sys.executable, "-c", LOOK], "1") == 0, "it saw a gap, and ended by itself"
        assert freezer.list_awake() == []
    finally:
        freezer.close()
    assert not freezer.folder.exists()
