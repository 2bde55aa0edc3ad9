"""The suite's workers: what they run, in which company, and what becomes of a test that takes its worker along."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.parallel import Plan
from tests.support.suite import ROOT
from tests.support.waiting import HANG_S

CONFTEST = """
import os
import pytest


@pytest.fixture(scope="package", autouse=True)
def shared(request):
    with open({log!r}, "a") as log:
        log.write(f"open {{request.node.name}} {{os.getpid()}}\\n")
    yield
    with open({log!r}, "a") as log:
        log.write(f"close {{request.node.name}} {{os.getpid()}}\\n")
"""


def run(folder: Path, *words: str) -> tuple[int, str, dict[str, str]]:
    """Status, output and the outcome of each test by its name."""
    log = folder / "log"
    for package in folder.iterdir():
        if package.is_dir():
            (package / "__init__.py").touch()
            (package / "conftest.py").write_text(CONFTEST.format(log=str(log)))
    (folder / "conftest.py").write_text('pytest_plugins = ("tests.support.parallel",)\n')
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *words, str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    outcomes: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        told = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        outcomes[str(case.get("name"))] = told[0] if told else "passed"
    return ended.returncode, ended.stdout + ended.stderr, outcomes


def write(folder: Path, package: str, name: str, text: str) -> None:
    (folder / package).mkdir(exist_ok=True)
    (folder / package / f"test_{name}.py").write_text(text)


def test_every_test_runs_once_and_what_a_folder_shares_is_closed_by_the_worker_that_opened_it(tmp_path: Path) -> None:
    for package in ("one", "two", "three"):
        for name in ("a", "b"):
            write(
                tmp_path,
                package,
                f"{package}_{name}",
                f"import pytest\n\n@pytest.mark.parametrize('n', range(20))\ndef test_{package}_{name}(n): pass\n",
            )
    status, output, outcomes = run(tmp_path, "--workers", "2")
    assert status == 0, output
    assert "120 passed" in output
    assert len(outcomes) == 120
    events = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    opened = [event[1:] for event in events if event[0] == "open"]
    assert sorted(opened) == sorted(event[1:] for event in events if event[0] == "close")
    assert len({pid for _, pid in opened}) == 2


def test_failures_skips_and_what_was_printed_are_told_as_without_workers(tmp_path: Path) -> None:
    text = """
import pytest

def test_good(): print("nobody sees this")
def test_bad():
    print("this is shown")
    assert 1 == 2
def test_left_out(): pytest.skip("no reason")
@pytest.fixture
def broken():
    yield
    raise ValueError("at the end")
def test_broken(broken): pass
"""
    write(tmp_path, "one", "one", text)
    status, output, outcomes = run(tmp_path, "--workers", "2")
    assert status == 1
    assert outcomes == {
        "test_good": "passed",
        "test_bad": "failure",
        "test_left_out": "skipped",
        "test_broken": "error",
    }
    assert "this is shown" in output and "nobody sees this" not in output and "at the end" in output


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_a_death_fails_the_test_that_caused_it_and_the_others_run(tmp_path: Path, death: str) -> None:
    write(tmp_path, "one", "one", f"import os\ndef test_a(): pass\ndef test_b(): {death}\ndef test_c(): pass\n")
    write(tmp_path, "one", "two", "def test_d(): pass\n")
    status, output, outcomes = run(tmp_path, "--workers", "1")
    assert status == 1, output
    assert outcomes == {"test_a": "passed", "test_b": "failure", "test_c": "passed", "test_d": "passed"}


def test_after_as_many_failures_as_are_allowed_no_more_files_are_begun(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, "one", name, f"def test_{name}(): assert False\n")
    status, output, outcomes = run(tmp_path, "--workers", "1", "-x")
    assert status == 1, output
    # What comes next is asked for before a file's last test, so one more may have been handed out.
    assert "test_c" not in outcomes


class _Item:
    def __init__(self, path: str) -> None:
        self.path = Path(path)


def test_a_worker_stays_in_its_folder_and_then_helps_where_most_is_left() -> None:
    paths = ["/t/a/1", "/t/a/2", "/t/a/x/3", "/t/a/x/4", "/t/b/1", "/t/b/2", "/t/c/1"]
    plan = Plan([_Item(path) for path in paths], Path("/"))  # type: ignore[misc]
    assert [plan.take(0), plan.take(1), plan.take(0), plan.take(1)] == [[0], [4], [1], [5]]
    assert plan.take(1) == [6], "a folder that nobody is in"
    assert plan.take(1) == [2], "then where files are left"
    assert plan.take(0) == [3]
    assert plan.take(0) is None and plan.take(1) is None


def test_a_stream_that_a_module_took_at_its_import_is_the_workers_own(tmp_path: Path) -> None:
    text = """
import sys

STREAM = sys.stderr

def test_{name}():
    print("said by {name}", file=STREAM, flush=True)
    assert False
"""
    for name in ("one", "two"):
        write(tmp_path, name, name, text.format(name=name))
    status, output, outcomes = run(tmp_path, "--workers", "2")
    assert status == 1 and outcomes == {"test_one": "failure", "test_two": "failure"}, output
    assert output.count("said by one\n") == output.count("said by two\n") == 1, output
