"""tmux: those of its regression scripts that print sequences into a pane and check cells or cursor.

The scripts run as they are, with functions of ours in place of their include file: each tells what it would have fed and checked, and the
same is then done in every terminal. Checks of tmux's own flags and of its raw grid have no counterpart and are not counted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.scorecard.engine import Engine, text_of
from bench.scorecard.outcome import PASSED, Outcome, compare_text

_INCLUDE = r"""
exit_status=0; TMP=$(mktemp); EXP=$(mktemp); TMUX=false
trap 'rm -f "$TMP" "$EXP"' 0 1 15
tell() { printf '%s\0' "$@" >>"$TOLD"; }
start() { data=$(mktemp); sh -c "printf '$4'" >"$data"; tell start "$1" "$2" "$3" "$data" -; }
start_pane() { start "$@"; }
start_pane_history() { start "$@"; }
start_pane_hlimit() { start "$@"; }
start_cmd() { tell other "$1" - - - -; }
check_capture() { tell capture "$1" "$2" - - -; }
check_cursor() { tell cursor "$1" "$2" - - -; }
check_joined() { tell joined "$1" "$2" - - -; }
for name in check_flags check_raw check_raw_used check_raw_has check_raw_matches check_raw_no_matches fail; do
	eval "$name() { :; }"
done
normalize_capture() { cat; }
capture_grid() { :; }
"""


def run(folder: Path, engine: Engine) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for script in sorted(folder.glob("input-*.sh")):
        if b"input-common.inc" in script.read_bytes():
            found |= _run_script(script, engine)
    found |= _run_cursor_tests(folder, engine)
    found |= _run_combine_test(folder, engine)
    return found


def _run_script(script: Path, engine: Engine) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(script, work / script.name)
        (work / "input-common.inc").write_text(_INCLUDE)
        told = work / "told"
        told.touch()
        environ = {"PATH": "/usr/bin:/bin", "TOLD": str(told), "TMPDIR": folder, "LC_ALL": "C.UTF-8"}
        subprocess.run(["sh", script.name], cwd=work, env=environ, check=False, capture_output=True, timeout=120)
        words = told.read_bytes().split(b"\0")
        records = [words[at : at + 6] for at in range(0, len(words) - 5, 6)]
        live = ""
        for kind, name, first, second, data, _ in records:
            key = f"{script.stem}: {name.decode()}"
            if kind == b"start":
                live = name.decode()
                engine.open(int(second), int(first))
                # The pane's own terminal makes CR LF of LF.
                engine.feed(Path(data.decode()).read_bytes().replace(b"\n", b"\r\n"))
                found.setdefault(key, Outcome(None, "checks only the inside of tmux"))
                continue
            if name.decode() != live or kind not in (b"capture", b"cursor"):
                continue
            outcome = _check(engine, kind.decode(), first.decode("utf-8", "replace"))
            if found[key].passed is not False:
                found[key] = outcome
    return found


def _check(engine: Engine, kind: str, wanted: str) -> Outcome:
    if kind == "cursor":
        col, row = (int(number) for number in wanted.split(","))
        seen = engine.cursor()
        return PASSED if seen == (row, col) else Outcome(False, f"cursor at {seen} instead of {(row, col)}")
    return compare_text([text_of(row) for row in engine.show()], wanted.split("\n"))


_CURSOR_TEST = re.compile(r"new -d -x(\d+) -y(\d+)\s*\\?\s*\"cat cursor-test.txt; printf '(.*?)'", re.S)


def _run_cursor_tests(folder: Path, engine: Engine) -> dict[str, Outcome]:
    """A text that flows anew at two other widths, with the place of the cursor each time."""
    found = {}
    data = (folder / "cursor-test.txt").read_bytes().replace(b"\n", b"\r\n")
    for script in sorted(folder.glob("cursor-test[0-9].sh")):
        text = script.read_text()
        match = _CURSOR_TEST.search(text)
        widths = [int(width) for width in re.findall(r"resizew -x(\d+)", text)]
        if match is None:
            continue
        cols, rows = int(match[1]), int(match[2])
        engine.open(rows, cols)
        engine.feed(data + match[3].replace("\\e", "\x1b").encode())
        lines = _tell_state(engine)
        for width in widths:
            engine.resize(rows, width)
            lines += _tell_state(engine)
        found[script.stem] = compare_text(lines, script.with_suffix(".result").read_text().split("\n"), "line")
    return found


def _tell_state(engine: Engine) -> list[str]:
    row, col = engine.cursor()
    rows = [text_of(line) for line in engine.show()]
    here = rows[row][col : col + 1] if row < len(rows) else ""
    return [f"{col} {row} {here}", *(f"{number} {line}" for number, line in enumerate(rows))]


def _run_combine_test(folder: Path, engine: Engine) -> dict[str, Outcome]:
    script = folder / "combine-test.sh"
    lines = [line for line in script.read_text().splitlines() if line.startswith("printf ")]
    data = subprocess.run(["bash", "-c", "\n".join(lines)], check=True, capture_output=True).stdout
    engine.open(24, 80)
    engine.feed(data.replace(b"\n", b"\r\n"))
    wanted = (folder / "combine-test.result").read_text().split("\n")
    return {script.stem: compare_text([text_of(row) for row in engine.show()], wanted)}
