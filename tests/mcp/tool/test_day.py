"""The recorded day with the lean tools: the same outcomes, a third of the tokens, and no more calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mcp.day import OUTCOME, spend_lean_day, spend_published_day
from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.mcp.tokens import count_exactly


@pytest.mark.timeout(900)
def test_the_lean_day_costs_at_most_a_third_and_ends_the_same(tmp_path: Path) -> None:
    folders = [tmp_path / "published", tmp_path / "lean-day"]
    for folder in folders:
        folder.mkdir()
    with live_server(tmp_path):
        with StdioHost() as host:
            host.initialize()
            published = spend_published_day(host, str(folders[0]))
        with StdioHost(args=["--toolsets", "lean"]) as host:
            host.initialize()
            lean = spend_lean_day(host, str(folders[1]))
    assert published.outcome == OUTCOME and lean.outcome == OUTCOME
    assert lean.calls <= published.calls
    tokens = {day.name: sum(count_exactly(day.texts)) for day in (published, lean)}
    assert tokens["lean"] <= 0.35 * tokens["published"], tokens
    told = {day.name: sum(count_exactly(day.texts[2::2])) for day in (published, lean)}
    assert told["lean"] <= 0.35 * told["published"], told
