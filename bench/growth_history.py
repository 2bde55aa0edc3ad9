"""How questions about the past grow with how much of it there is: the audit and the transcripts of up to a year."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.plot import Point
from bench.row import median
from wsh.policy.audit import Audit
from wsh.workspace.search.query import parse_query
from wsh.workspace.transcript.transcript import Transcript, TranscriptFilter, TranscriptStore

DAYS = (4, 30, 120, 365) if os.environ.get("WSH_GROWTH") == "full" else (1, 4, 12, 30)
DAILY = 200
"""Commands that agents and people run on one working day."""
NOW = 1_700_000_000.0

Curve = tuple[str, str, str, list[Point]]


def measure_history() -> list[Curve]:
    newest: list[Point] = []
    added: list[Point] = []
    checked: list[Point] = []
    words: list[Point] = []
    put: list[Point] = []
    for days in DAYS:
        with tempfile.TemporaryDirectory() as folder:
            trail = Audit(Path(folder) / "audit.jsonl")
            for number in range(days * DAILY):
                trail.append({"event": "decided", "command": f"make part{number}", "outcome": "allowed"})
            newest.append((days, _time(lambda trail=trail: trail.read(100))))  # type: ignore[misc]
            added.append((days, _time(lambda trail=trail: trail.append({"event": "decided"}))))  # type: ignore[misc]
            checked.append((days, _time(trail.verify, rounds=3)))
            store = TranscriptStore(Path(folder) / "transcripts.db", 400)
            for day in range(days):
                store.put(_transcripts(day))
            words.append((days, _time(lambda store=store: _search(store))))  # type: ignore[misc]
            put.append((days, _time(lambda store=store, days=days: store.put(_transcripts(days, few=5)))))  # type: ignore[misc]
            store.close()
    return [
        ("newest entries of the audit", "days", "ms", newest),
        ("one more entry of the audit", "days", "ms", added),
        ("check of the whole audit", "days", "ms", checked),
        ("search for words in transcripts", "days", "ms", words),
        ("five more transcripts", "days", "ms", put),
    ]


def _transcripts(day: int, few: int = DAILY) -> list[Transcript]:
    chance = random.Random(day)
    vocabulary = [f"word{number}" for number in range(5000)]
    return [
        Transcript(
            f"{day}-{number}", "shell", f"make part{number}", " ".join(chance.choices(vocabulary, k=150)),
            "/", NOW - 86_400.0 * (365 - day) + number, 0, 5,
        )
        for number in range(few)
    ]  # fmt: skip


def _search(store: TranscriptStore) -> None:
    for found in store.find_words(parse_query("word77 word1234"), TranscriptFilter(), 20, NOW, "/"):
        store.render(found, [], 2, explain=False)


def _time(work: Callable[[], object], rounds: int = 9) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return median(times)
