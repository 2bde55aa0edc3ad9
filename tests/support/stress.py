"""The suite again and again on a machine that is busy and different each time; every test that ever failed is named.

    python -m tests.support.stress [ROUNDS] [PYTEST WORDS...]

Beside each round runs `stress-ng --cpu 4 --io 2`. `WSH_STRESS_SEED` repeats the variations of an earlier run, `WSH_STRESS_LIMIT_S` bounds a
round.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from tests.support.variation import draw, run

LOAD = ["stress-ng", "--quiet", "--cpu", "4", "--io", "2"]
TESTS = ["--workers", "6", "--ignore", "tests/accept", "-m", "not accept", "-q"]

LIMIT_S = float(os.environ.get("WSH_STRESS_LIMIT_S", "3600"))
"""For one round; a round that takes longer has failed, and the next one begins."""


def read_failures(report: Path) -> list[str]:
    """Names of tests that failed or broke, from a JUnit report."""
    cases = ET.parse(report).getroot().iter("testcase")
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else 3
    tests = arguments[1:] or TESTS
    if shutil.which(LOAD[0]) is None:
        print("make stress-test needs stress-ng (Debian package stress-ng).", file=sys.stderr)
        return 2
    seed = os.environ.get("WSH_STRESS_SEED") or secrets.token_hex(4)
    print(f"WSH_STRESS_SEED={seed}", flush=True)
    failed: Counter[str] = Counter()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="wsh-stress-") as folder:
        for number in range(1, rounds + 1):
            variation = draw(f"{seed}-{number}")
            print(f"round {number} of {rounds}: {variation}", flush=True)
            report = Path(folder) / f"{number}.xml"
            with subprocess.Popen(LOAD) as load:
                try:
                    words = [sys.executable, "-m", "pytest", *tests, "{order}", f"--junitxml={report}"]
                    status = run(variation, words, limit_s=LIMIT_S)
                finally:
                    load.terminate()
            found = read_failures(report) if report.exists() else []
            print(f"round {number}: status {status}, failed: {', '.join(found) or 'none'}", flush=True)
            failed.update(found)
            broken += bool(status)
    print(f"\n{rounds - broken} of {rounds} rounds passed")
    for name, count in failed.most_common():
        print(f"{count:3} of {rounds}  {name}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
