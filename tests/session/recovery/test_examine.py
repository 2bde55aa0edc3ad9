"""Finding what kills the engine: for every case that a campaign has stored, and for the ways to leave something out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.case import Case, load
from tests.recovery.test_engine_death import KILLER
from wsh.session.recovery.examine import Fed, Findings, SizeChange, Step, examine, look_everywhere, without
from wsh.session.recovery.gap import Gaps
from wsh.session.recovery.trial import attempt
from wsh.terminal import Terminal

KILLERS = sorted((Path(__file__).parents[2] / "terminal" / "killers").glob("*.json"))
PATIENCE_S = 60.0


def steps_of(case: Case) -> list[Step]:
    steps: list[Step] = []
    at = 0
    for step in case.steps:
        if step.do == "feed":
            steps.append(Fed(at, step.data))
            at += len(step.data)
        elif step.do == "resize":
            steps.append(SizeChange(at, step.rows, step.cols))
    return steps


def check(rows: int, cols: int, steps: list[Step]) -> None:
    def make() -> Terminal:
        return Terminal(rows, cols)

    fate = attempt(lambda: examine(make, steps, look_everywhere, PATIENCE_S, PATIENCE_S), PATIENCE_S)
    assert fate.lived, fate
    findings = fate.answer
    assert isinstance(findings, Findings) and findings.opened and findings.whole, findings
    kept = list(without(steps, Gaps(findings.gaps)))
    again = attempt(lambda: examine(make, kept, look_everywhere, PATIENCE_S, PATIENCE_S), PATIENCE_S)
    assert again.answer == Findings([], whole=True, opened=True)
    fed = sum(len(step.data) for step in steps if isinstance(step, Fed))
    assert Gaps(findings.gaps).size < max(1, fed), "not everything is left out"


@pytest.mark.parametrize("path", KILLERS, ids=lambda path: path.stem)
def test_what_a_stored_case_dies_of_is_found_and_left_out(path: Path) -> None:
    case = load(path)
    check(case.rows, case.cols, steps_of(case))


def test_the_last_byte_that_kills_is_found_in_the_midst_of_other_output() -> None:
    check(40, 82, [Fed(0, b"before\r\n" * 2000 + b"\x1b[H\x1b[2J"), Fed(16_007, KILLER + b"\x1bcafter\r\n" * 100)])


def test_gaps_are_merged_and_blanked() -> None:
    gaps = Gaps([(10, 12), (12, 14), (20, 21), (30, 30)])
    assert list(gaps) == [(10, 14), (20, 21), (30, 30)] and gaps.size == 5
    data = bytes(range(65, 90))
    assert gaps.blank(0, data) == data[:10] + bytes(4) + data[14:20] + bytes(1) + data[21:]
    assert gaps.blank(12, data[12:13]) == b"\0"
    assert gaps.blank(21, data[21:]) == data[21:]
    assert Gaps([(3, 11)]).blank(0, data) == data[:3] + b"\x1b[?69l\0\0" + data[11:]  # margins end where that fits
    assert Gaps([(3, 11)]).blank(6, data[6:]) == bytes(5) + data[11:]
    assert gaps.skips_resize(30) and gaps.skips_resize(10) and not gaps.skips_resize(25)
    assert Gaps(gaps).meets(13, 14) and not gaps.meets(14, 20) and not gaps.meets(30, 31)
