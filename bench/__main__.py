"""`python -m bench [NAME…] [--record]`: run benchmarks and print one table of ratios.

Every module `bench/bench_*.py` has `run() -> list[Row]`. With `--record` the table is also written to docs/benchmarks.md, with date
and machine; of a run of some benchmarks only their groups are written anew. The exit status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
import sys
import time
from pathlib import Path

from bench.figures import README, fill_readme
from bench.row import Row

HERE = Path(__file__).parent
RECORD = HERE.parent / "docs" / "benchmarks.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", help="benchmarks to run, by the name of their file without bench_")
    parser.add_argument("--record", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    available = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = set(options.names) - set(available)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(available)}")
    rows: list[Row] = []
    for name in options.names or available:
        print(f"· {name} …", file=sys.stderr, flush=True)
        started = time.perf_counter()
        found = importlib.import_module(f"bench.bench_{name}").run()
        print(f"{table(found)}\n  {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        rows += found
    text = table(rows)
    print(text)
    if options.record:
        page = record(merge(rows) if options.names else text)
        RECORD.write_text(page, encoding="utf-8")
        README.write_text(fill_readme(README.read_text(encoding="utf-8"), page), encoding="utf-8")
    return 0 if all(row.ok for row in rows) else 1


def table(rows: list[Row]) -> str:
    lines = ["| group | what | ours | peer | score | target | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer_name} {row.peer:.3g} {row.unit}"
        score = f"{row.score:.2f} ×" if row.peer is not None else f"{row.score:.3g}"
        verdict = "ok" if row.ok else "MISSED"
        note = f" ({row.note})" if row.note else ""
        lines.append(
            f"| {row.group} | {row.title}{note} | {row.value:.3g} {row.unit} | {peer} | {score} | {row.target} | {verdict} |"
        )
    return "\n".join(lines)


def merge(rows: list[Row]) -> str:
    """The table of the page with the groups of `rows` in it as they are now."""
    fresh = {row.group for row in rows}
    old = "".join(_split_page()[0]).splitlines()
    kept = [line for line in old[2:] if line.split("|")[1].strip() not in fresh]
    head, rule, *new = table(rows).splitlines()
    return "\n".join([head, rule, *sorted([*kept, *new], key=lambda line: line.split("|")[1])])


def record(text: str) -> str:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    cores = os.cpu_count()
    return (
        "# Benchmarks\n\n"
        "Made by `make bench` (or `python -m bench NAME --record` for one group); both sides of every ratio were measured in the same run, taking turns, and the medians compared.\n\n"
        f"{today}, {cores} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}.\n\n"
        f"{text}\n{''.join(_split_page()[1])}"
    )


def _split_page() -> tuple[list[str], list[str]]:
    """The lines of the page's table, and what stands below it: remarks, and figures of other runs with tables of their own."""
    lines = RECORD.read_text(encoding="utf-8").splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if line.startswith("| group ")), len(lines))
    after = next((number for number in range(first, len(lines)) if not lines[number].startswith("|")), len(lines))
    return lines[first:after], lines[after:]


if __name__ == "__main__":
    sys.exit(main())
