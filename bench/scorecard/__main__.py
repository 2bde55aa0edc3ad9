"""`python -m bench.scorecard [fill]`: fill the cache, or make docs/scorecard.md and docs/scorecard.json from what is there."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.scorecard import page, suite_alacritty, suite_esctest, suite_libvterm, suite_tmux, suite_xterm
from bench.scorecard.cache import VARIABLE, cache_folder, fill, suite_folder
from bench.scorecard.engine import Engine, open_engines
from bench.scorecard.outcome import Outcome

SUITES: dict[str, Callable[[Path, Engine], dict[str, Outcome]]] = {
    "xterm.js": suite_xterm.run,
    "alacritty": suite_alacritty.run,
    "libvterm": suite_libvterm.run,
    "tmux": suite_tmux.run,
    "esctest2": suite_esctest.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scorecard")
    parser.add_argument("action", nargs="?", choices=("run", "fill", "render"), default="run")
    parser.add_argument(
        "--source",
        default="https://github.com/{repository}",
        help="where `fill` finds repositories; {owner} and {name} stand too",
    )
    parser.add_argument("--only", nargs="+", default=[], help="parts to run anew: suites, mcp, programs")
    options = parser.parse_args()
    if options.action == "fill":
        fill(options.source)
        return 0
    if options.action == "render":
        page.PAGE.write_text(page.render(json.loads(page.DATA.read_text())), encoding="utf-8")
        return 0
    card = make_card(options.only)
    data = page.to_data(card)
    if options.only and page.DATA.exists():
        data = merge(json.loads(page.DATA.read_text(encoding="utf-8")), data)
    page.write(data)
    print(page.PAGE.read_text(encoding="utf-8"))
    return 0


def make_card(only: list[str]) -> page.Card:
    card = page.Card({}, {}, None, "", [], [])
    engines, card.notes = open_engines()
    try:
        for name, run in SUITES.items():
            if only and name not in only:
                continue
            folder = suite_folder(name)
            if folder is None:
                card.absent[name] = f"not in the cache ({VARIABLE}); `python -m bench.scorecard fill`"
                continue
            card.suites[name] = {
                engine.name: _timed(f"{name} in {engine.name}", run, folder, engine) for engine in engines
            }
    finally:
        for engine in engines:
            engine.close()
    if not only or "mcp" in only:
        try:
            from bench.scorecard import suite_mcp

            card.mcp, card.mcp_note = suite_mcp.run()
        except (ImportError, OSError, RuntimeError) as problem:
            card.absent["mcp"] = f"could not be set up: {problem}"[:200]
    if not only or "programs" in only:
        from bench.scorecard import programs

        card.programs = programs.run()
    return card


def _timed(
    what: str, run: Callable[[Path, Engine], dict[str, Outcome]], folder: Path, engine: Engine
) -> dict[str, Outcome]:
    started = time.monotonic()
    found = run(folder, engine)
    passed = sum(outcome.passed is True for outcome in found.values())
    print(f"· {what}: {passed} of {len(found)}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return found


def merge(old: dict[str, object], new: dict[str, object]) -> dict[str, object]:
    """The page's data with the parts that ran anew in it."""
    merged = {**old, **{name: value for name, value in new.items() if value}}
    for part in ("suites", "absent"):
        before, now = old.get(part), new.get(part)
        merged[part] = {**(before if isinstance(before, dict) else {}), **(now if isinstance(now, dict) else {})}
    return merged


if __name__ == "__main__":
    print(f"cache: {cache_folder()}", file=sys.stderr)
    sys.exit(main())
