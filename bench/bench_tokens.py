"""What the recorded day costs a model, in tokens and calls, with each set of tools, with tmux and with a plain bash tool."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.support.mcp.day import OUTCOME, Day, spend_bash_day, spend_lean_day, spend_published_day, spend_tmux_day
from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.mcp.tokens import count_exactly

from bench.row import Row, at_most, at_most_ratio


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="wsh-bench-") as root:
        days = _spend(Path(root))
    wrong = [day.name for day in days if day.outcome != OUTCOME]
    assert not wrong, f"not the same outcome: {wrong}"
    tokens = {day.name: sum(count_exactly(day.texts)) for day in days}
    published, lean, *others = days
    rows = [
        at_most_ratio(
            "tokens", "a day, lean tools", tokens[lean.name], tokens[published.name], "tokens", "published", 0.35
        ),
        at_most("tokens", "a day, lean tools", lean.calls, published.calls, "calls"),
    ]
    # For comparison alone, without the list of tools on either side; bash has no terminal, so its work is another.
    spent = sum(count_exactly(lean.texts[1:]))
    rows += [_compare(day, lean.calls, tokens[day.name], spent) for day in others]
    return rows


def _compare(day: Day, lean_calls: int, tokens: int, ours: int) -> Row:
    return Row(
        "tokens",
        f"the calls of a day ({lean_calls} to {day.calls})",
        ours,
        "tokens",
        ours / tokens,
        "none",
        True,
        day.name,
        tokens,
    )


def _spend(root: Path) -> list[Day]:
    folders = {name: root / name for name in ("published", "lean", "tmux", "bash")}
    for folder in folders.values():
        folder.mkdir()
    days: list[Day] = []
    with live_server(root):
        with StdioHost() as host:
            host.initialize()
            days.append(spend_published_day(host, str(folders["published"])))
        with StdioHost(args=["--toolsets", "lean"]) as host:
            host.initialize()
            days.append(spend_lean_day(host, str(folders["lean"])))
    if shutil.which("tmux"):
        days.append(spend_tmux_day(str(folders["tmux"]), str(root / "tmux.socket")))
    days.append(spend_bash_day(str(folders["bash"])))
    return days
