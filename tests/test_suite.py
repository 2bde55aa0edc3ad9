"""The suite keeps its own rules, and its tools do what they say."""

from __future__ import annotations

import ast
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import suite
from tests.support.stress import read_failures
from tests.support.variation import draw

ROOT = Path(__file__).parents[1]
LONGEST_SLEEP_S = 0.2
FOREVER_S = 600
"""A sleep this long is never slept: something else ends it, and the test is about that."""


QUICK = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""For a run of pytest that needs nothing but what is in its conftest.py: other plugins take seconds to import."""


def find_sleeps(path: Path) -> list[tuple[int, float]]:
    """Calls of a function named sleep with a number: line and seconds."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0]
        if name == "sleep" and isinstance(first, ast.Constant) and isinstance(first.value, int | float):
            found.append((node.lineno, float(first.value)))
    return found


def test_no_test_sleeps_and_hopes() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{line} sleeps {seconds} s"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name != "pictures.py"
        for line, seconds in find_sleeps(path)
        if LONGEST_SLEEP_S < seconds < FOREVER_S
    ]
    assert long == [], "wait for a condition with tests/support/waiting.py"


def test_modules_that_are_no_tests_live_in_support() -> None:
    own = ("test_*.py", "conftest.py", "__init__.py")
    strays = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.relative_to(ROOT).parts[1] not in ("support", "fuzz")
        and path.relative_to(ROOT).parts[1:3] != ("accept", "clients")  # programs for environments of their own
        and not any(path.match(pattern) for pattern in own)
    ]
    assert strays == []


def test_an_order_is_drawn_from_its_seed_and_loses_no_test(request: pytest.FixtureRequest) -> None:
    items = list(request.session.items)
    one, again, other = list(items), list(items), list(items)
    suite.shuffle(one, 1)
    suite.shuffle(again, 1)
    suite.shuffle(other, 2)
    assert one == again and sorted(map(id, one)) == sorted(map(id, items))
    assert len(items) < 10 or one != other
    folders = [item.path.parent for item in one]
    changes = sum(here != there for here, there in itertools.pairwise(folders))
    assert changes == len(set(folders)) - 1, "the tests of a folder stay together"


def test_a_variation_is_drawn_from_its_seed() -> None:
    assert draw("a commit") == draw("a commit")
    assert len({draw(str(number)) for number in range(20)}) == 20


def test_a_run_that_leaves_tests_out_says_so_and_fails_only_if_it_should_be_whole(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.support.suite import *\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\ndef test_one(): pass\n\ndef test_two(): pytest.skip('needs a moon')\n"
    )
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        "/dev/null",
        f"--rootdir={tmp_path}",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    ran = [
        subprocess.run([*words, *more], cwd=ROOT, capture_output=True, text=True, env=QUICK)
        for more in ([], ["--whole"])
    ]
    assert [done.returncode for done in ran] == [0, 1], ran[1].stdout
    assert all("1 needs a moon" in done.stdout for done in ran)


def test_failures_of_a_round_are_read_from_its_report(tmp_path: Path) -> None:
    cases = '<testcase classname="a" name="good"/><testcase classname="a" name="bad"><failure/></testcase>'
    (tmp_path / "x.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert read_failures(tmp_path / "x.xml") == ["a::bad"]


@pytest.mark.parametrize("torture", [False, True])
def test_property_tests_run_a_sample_unless_they_are_asked_for_all(tmp_path: Path, torture: bool) -> None:
    (tmp_path / "conftest.py").write_text("from tests.support.suite import *\n")
    (tmp_path / "test_it.py").write_text(
        "from hypothesis import given, settings, strategies as st\n\nran = []\n\n"
        "@settings(max_examples=400, database=None)\n@given(st.integers())\ndef test_one(n): ran.append(n)\n\n"
        f"def test_two(): assert len(ran) == {400 if torture else 100}\n"
    )
    words = [sys.executable, "-m", "pytest", "-c", "/dev/null", f"--rootdir={tmp_path}", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, str(tmp_path), *["--torture"] * torture], cwd=ROOT, capture_output=True, text=True, env=QUICK
    )
    assert done.returncode == 0, done.stdout


def test_variables_of_whoever_runs_the_tests_are_none_of_theirs() -> None:
    own = str(Path(sys.executable).parent)
    environ = {"PATH": f"{own}:/bin", "WSH_SESSION": "s1", "VIRTUAL_ENV": "/x", "GIT_DIR": "/y", "WSH_TEST_SEED": "1"}
    environ |= {"GIT_SSL_CAINFO": "/ca", "TERM": "dumb", "npm_config_cache": "/z"}
    suite.forget_caller(environ)
    kept = {"WSH_TEST_SEED": "1", "GIT_SSL_CAINFO": "/ca", "npm_config_cache": "/z"}
    assert environ == {"PATH": "/bin", "TERM": "xterm-256color", **kept}
