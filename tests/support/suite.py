"""What holds for every test: the order they run in, what the machine must have for them, and what a run left out.

`tests/conftest.py` takes the hooks from here. What a machine does not have is skipped with its reason; `--whole` makes
such a run fail, for a machine that should have everything.
"""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

LEAST, MOST = 25, 200
"""Examples of a property test in a sample."""
_CHOSEN = "_hypothesis_internal_use_settings"
ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
SLOW = frozenset(
    ("app", "cli", "desktop", "host", "http", "mcp", "policy", "recovery", "sandbox", "session", "web", "workspace")
)
"""Folders with long files come first: at the end, while some workers have nothing left to do, there are only short ones."""
LONGEST = "web"
"""Begun before all others, so that one worker's browser does most of it, and not one browser for each worker at the end."""

PACKAGES = {
    "Xvfb": "xvfb",
    "dbus-daemon": "dbus-daemon",
    "dbus-monitor": "dbus-bin",
    "gdbus": "libglib2.0-bin",
    "import": "imagemagick",
    "ip": "iproute2",
    "rg": "ripgrep",
}
"""Debian packages that are not called like the program in them."""

NEEDS: dict[str, tuple[str, ...]] = {
    "tests/cli/test_attach.py": ("tmux", "vim", "htop"),
    "tests/contract/adapters/test_container.py": ("shellcheck",),
    "tests/contract/adapters/test_topology.py": ("ip",),
    "tests/desktop/": ("Xvfb", "xdotool", "import"),
    "tests/desktop/test_across.py": ("ip",),
    "tests/desktop/test_pages.py": ("xterm", "dbus-daemon", "dbus-monitor"),
    "tests/desktop/window/test_tray.py": ("dbus-daemon", "gdbus"),
    "tests/mcp/tool/test_transcript.py": ("vim",),
    "tests/session/test_program.py": ("tmux", "vim", "less", "htop", "nano"),
    "tests/session/command/test_run.py": ("vim",),
    "tests/session/test_state.py": ("vim", "less"),
    "tests/terminal/test_peer.py": ("tmux", "vim", "less", "htop", "nano"),
    "tests/web/": ("chromium",),
    "tests/workspace/": ("git",),
}
"""Programs that the tests of a folder or file drive."""
SHELLS = ("zsh", "fish")
_RUNTIME_FOLDER = re.compile(r"wsh-\d+(-[0-9a-f]+)?")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long campaigns at full length")
    parser.addoption("--order-seed", type=int, help="shuffle the files and the tests in each of them")
    parser.addoption("--whole", action="store_true", help="fail if any test was left out")


def pytest_collection(session: pytest.Session) -> None:
    """Thousands of tests and their modules come and stay: nobody need look again and again which of them are garbage."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Property tests are samples of a campaign: a part of their examples here, all of them with `--torture`."""
    test: Any = getattr(item, "obj", None)
    if not is_hypothesis_test(test):
        return
    item.add_marker(pytest.mark.torture)
    if not item.config.getoption("--torture") and not hasattr(test, "wsh_sampled"):
        chosen: settings = getattr(test, _CHOSEN, None) or settings.get_profile("default")
        # How long an example takes on a busy machine says nothing.
        slow = {*chosen.suppress_health_check, HealthCheck.too_slow}
        count = max(LEAST, min(chosen.max_examples // 4, MOST))
        setattr(test, _CHOSEN, settings(chosen, max_examples=count, deadline=None, suppress_health_check=slow))
        test.wsh_sampled = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        missing = find_missing(item)
        if missing:
            packages = " ".join(sorted({PACKAGES.get(name, name) for name in missing}))
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)} (Debian: {packages})"))
    seed = config.getoption("--order-seed")
    if seed is not None:
        shuffle(items, seed)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    return 0 if folder == LONGEST else 1 if folder in SLOW else 2


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Folders stay together for the servers and windows their tests share; files in them and tests in those move."""
    dice = random.Random(seed)
    folders: dict[Path, dict[Path, list[pytest.Item]]] = {}
    for item in items:
        folders.setdefault(item.path.parent, {}).setdefault(item.path, []).append(item)
    order = list(folders.values())
    dice.shuffle(order)
    items.clear()
    for files in order:
        parts = list(files.values())
        dice.shuffle(parts)
        for part in parts:
            dice.shuffle(part)
            items += part


def find_missing(item: pytest.Item) -> list[str]:
    path = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    wanted = [name for prefix, names in NEEDS.items() if path.startswith(prefix) for name in names]
    params = getattr(item, "callspec", None)
    if params is not None and path.startswith("tests/session/"):
        wanted += [value for value in params.params.values() if value in SHELLS]
    return [name for name in dict.fromkeys(wanted) if not _has(name)]


FOREIGN = re.compile(
    r"(WSH_(?!TEST_|STRESS_)|PM_|XDG_|GIT_(?!SSL)|SSH_|TMUX|QT_|GTK_|GDK_|LESS|CLICOLOR|TERM_PROGRAM).*"
    r"|VIRTUAL_ENV|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|COLORTERM"
    r"|PAGER|EDITOR|VISUAL|PS[1-4]|PROMPT_COMMAND|BASH_ENV|ENV|ZDOTDIR|INPUTRC|HISTFILE|GREP_OPTIONS|RIPGREP_CONFIG_PATH"
    r"|NOTIFY_SOCKET|LISTEN_FDS|LISTEN_PID|MAKEFLAGS|MFLAGS|STY"
)
"""Variables of whoever runs the tests that wsh, a shell, git or a program of the tests would follow."""


def forget_caller(environ: MutableMapping[str, str]) -> None:
    """Take away what the tests must not know: that they run in a terminal of wsh, in an activated environment, beside a desktop."""
    for name in [name for name in environ if FOREIGN.fullmatch(name)]:
        del environ[name]
    own = Path(sys.executable).parent
    environ["PATH"] = os.pathsep.join(
        folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder) != own
    )
    environ["TERM"] = "xterm-256color"


def find_forgotten(folder: Path) -> list[str]:
    """What wsh and Python left in the tests' folder for temporary files.

    A runtime folder stays where it is when its server ends. What browsers, Qt or npm keep there is theirs.
    """
    return sorted(
        str(path.relative_to(folder))
        for entry in folder.iterdir()
        if entry.name.startswith(("wsh-", "tmp"))
        for path in (entry.rglob("*") if _RUNTIME_FOLDER.fullmatch(entry.name) else (entry,))
        if path.suffix != ".lock"
    )


@cache
def _has(program: str) -> bool:
    return shutil.which(program) is not None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = _left_out(terminalreporter)
    if left_out:
        terminalreporter.section("left out")
        for reason, count in left_out.most_common():
            terminalreporter.line(f"{count:5} {reason}")
        if config.getoption("--whole"):
            terminalreporter.line(
                "This machine should run everything: a run that leaves tests out has failed.", red=True
            )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--whole") and reporter is not None and _left_out(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _left_out(reporter: pytest.TerminalReporter) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[told.removeprefix("Skipped: ")] += 1
    return reasons
