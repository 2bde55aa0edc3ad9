"""xterm.js: files of escape sequences beside the text that xterm showed for them, 80 columns by 25 rows."""

from __future__ import annotations

from pathlib import Path

from bench.scorecard.engine import Engine, text_of
from bench.scorecard.outcome import Outcome, compare_text


def run(folder: Path, engine: Engine) -> dict[str, Outcome]:
    found = {}
    for case in sorted(folder.glob("*.in")):
        # The files were printed through a pty, which makes CR LF of LF.
        data = case.read_bytes().replace(b"\n", b"\r\n")
        engine.open(25, 80)
        engine.feed(data)
        expected = case.with_suffix(".text").read_text("utf-8", "replace").split("\n")
        found[case.stem] = compare_text([text_of(row) for row in engine.show()], expected)
    return found
