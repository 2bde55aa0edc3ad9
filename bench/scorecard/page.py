"""The page and the raw data of the scorecard."""

from __future__ import annotations

import datetime
import fnmatch
import json
import platform
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.scorecard.cache import HEADLESS, PINS
from bench.scorecard.outcome import Outcome

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "scorecard.md"
DATA = ROOT / "docs" / "scorecard.json"
COLUMNS = ("wsh", "tmux", "@xterm/headless", "pyte")
WORDS = {
    "ours": "wsh",
    "engine": "libghostty",
    "suite": "the suite's own choice",
    "adapter": "how the scorecard looks",
}
TITLES = {
    "xterm.js": "xterm.js, escape sequence files",
    "alacritty": "alacritty, reference recordings",
    "libvterm": "libvterm, sections of its scripts",
    "esctest2": "esctest2",
    "tmux": "tmux, regress scripts that check cells",
}


@dataclass
class Card:
    """Everything that was found: by suite and engine, the outcomes of cases."""

    suites: dict[str, dict[str, dict[str, Outcome]]]
    absent: dict[str, str]
    mcp: dict[str, Outcome] | None
    mcp_note: str
    programs: list[dict[str, Any]]
    notes: list[str]


def load_reasons() -> list[dict[str, Any]]:
    reasons: list[dict[str, Any]] = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["reason"]
    return reasons


def find_reason(reasons: list[dict[str, Any]], suite: str, case: str) -> dict[str, Any] | None:
    for reason in reasons:
        if reason["suite"] == suite and any(fnmatch.fnmatchcase(case, pattern) for pattern in reason["cases"]):
            return reason
    return None


def to_data(card: Card) -> dict[str, Any]:
    """What goes to disk: names of misses, numbers of the rest."""
    suites = {}
    for suite, engines in card.suites.items():
        suites[suite] = {
            "commit": PINS[suite].commit,
            "engines": {
                engine: {
                    "passed": sum(outcome.passed is True for outcome in found.values()),
                    "missed": {name: outcome.detail for name, outcome in found.items() if outcome.passed is False}
                    if engine == "wsh"
                    else [name for name, outcome in found.items() if outcome.passed is False],
                    "not_asked": sum(outcome.passed is None for outcome in found.values()),
                }
                for engine, found in engines.items()
            },
        }
    data: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}",
        "suites": suites,
        "absent": card.absent,
        "notes": card.notes,
        "programs": card.programs,
    }
    if card.mcp is not None:
        data["mcp"] = {
            "passed": sum(outcome.passed is True for outcome in card.mcp.values()),
            "missed": {name: outcome.detail for name, outcome in card.mcp.items() if outcome.passed is False},
            "note": card.mcp_note,
        }
    return data


def write(data: dict[str, Any]) -> None:
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(render(data), encoding="utf-8")


def render(data: dict[str, Any]) -> str:
    lines = [
        "# Scorecard",
        "",
        "What suites that others wrote say of wsh, beside terminals that people know. `make scorecard` makes this page and `scorecard.json`, which has the raw results.",
        "",
        f"{data['date']}, {data['machine']}. tmux is Debian's, @xterm/headless {HEADLESS} and pyte come from npm and PyPI as they are.",
        "",
        "The suites stand in a cache folder, named by `WSH_SCORECARD_CACHE` (`build/scorecard-cache` otherwise); `python -m bench.scorecard fill` brings them there, at the commits below. Nothing of theirs is in this repository.",
        "",
        "## Suites",
        "",
        "Passed, of the cases that ask something which a terminal shows or answers.",
        "",
        "| suite | commit | " + " | ".join(COLUMNS) + " | not comparable |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    for suite, title in TITLES.items():
        if suite in data["suites"]:
            found = data["suites"][suite]
            cells = [_share(found["engines"].get(column)) for column in COLUMNS]
            skipped = found["engines"]["wsh"]["not_asked"]
            lines.append(f"| {title} | `{found['commit'][:10]}` | {' | '.join(cells)} | {skipped} |")
        else:
            lines.append(
                f"| {title} | `{PINS[suite].commit[:10]}` | {data['absent'].get(suite, 'not run')} |"
                + " |" * len(COLUMNS)
            )
    mcp = data.get("mcp")
    if mcp is not None:
        total = mcp["passed"] + len(mcp["missed"])
        lines.append(
            f"| MCP conformance, scenarios in all revisions | npm | {mcp['passed']} of {total} | – | – | – | 0 |"
        )
    else:
        lines.append(f"| MCP conformance | npm | {data['absent'].get('mcp', 'not run')} | | | | |")
    lines += ["", *(f"{note}\n" for note in data["notes"])]
    if mcp is not None and mcp["note"]:
        lines += [f"MCP: {mcp['note']}", ""]
    lines += _render_misses(data)
    lines += _render_programs(data["programs"])
    return "\n".join(lines).rstrip("\n") + "\n"


def _share(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not here"
    return f"{found['passed']} of {found['passed'] + len(found['missed'])}"


def _render_misses(data: dict[str, Any]) -> list[str]:
    reasons = load_reasons()
    lines = ["## What wsh misses, and whose doing it is", ""]
    counted: Counter[str] = Counter()
    body: list[str] = []
    for suite, title in (*TITLES.items(), ("mcp", "MCP conformance")):
        found = data["suites"].get(suite)
        if suite == "mcp" and data.get("mcp"):
            missed = data["mcp"]["missed"]
        elif found is not None:
            missed = found["engines"]["wsh"]["missed"]
        else:
            continue
        groups: dict[int, list[str]] = {}
        unexplained = []
        for case in missed:
            reason = find_reason(reasons, suite, case)
            if reason is None:
                unexplained.append(case)
            else:
                groups.setdefault(reasons.index(reason), []).append(case)
                counted[reason["whose"]] += 1
        body += [f"### {title}", "", "| cases | whose | sequence | why |", "|---|---|---|---|"]
        for number, cases in sorted(groups.items()):
            reason = reasons[number]
            sequence = f"`{reason['sequence'].replace('|', chr(92) + '|')}`" if "sequence" in reason else ""
            body.append(f"| {_names(cases)} | {WORDS[reason['whose']]} | {sequence} | {reason['why']} |")
        for case in unexplained:
            counted["not explained yet"] += 1
            body.append(f"| {_names([case])} | not explained yet | | {_cell(missed[case])} |")
        body.append("")
    told = ", ".join(f"{WORDS.get(whose, whose)} {number}" for whose, number in counted.most_common())
    lines += [f"By count: {told}.", ""]
    return lines + body


def _names(cases: list[str]) -> str:
    return ", ".join(f"`{_cell(case)}`" for case in sorted(cases))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def _render_programs(programs: list[dict[str, Any]]) -> list[str]:
    if not programs:
        return []
    lines = [
        "## Real programs",
        "",
        "Driven through a session; then tmux is fed the same bytes, and the screens are compared cell by cell with their styles. For shells and prompts, output and exit status of commands are compared with a plain run of the same commands.",
        "",
        "| kind | program | holds | what differs |",
        "|---|---|---|---|",
    ]
    for found in programs:
        lines.append(f"| {found['kind']} | {found['name']} | {found['holds']} | {_cell(found['detail'])} |")
    return [*lines, ""]
