"""Where the suites stand: a folder outside of the repository, filled by `python -m bench.scorecard fill`.

Nothing of theirs is built or installed into this project. A suite that is not there has a row on the page that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.workspace_fresh_questions import TREES

VARIABLE = "WSH_SCORECARD_CACHE"
HEADLESS = "6.0.0"
"""The version of @xterm/headless."""


@dataclass(frozen=True)
class Pin:
    """One repository at one commit, and the part of it that is needed."""

    repository: str
    commit: str
    part: str
    licence: str


PINS = {
    "xterm.js": Pin(
        "xtermjs/xterm.js",
        "904ae935269eef5ec6a1415b64463c3d02eff1eb",
        "test/fixtures/escape_sequence_files",
        "MIT",
    ),
    "alacritty": Pin(
        "alacritty/alacritty",
        "bdb72b32eeb074e3a0b8559d8ccac458237474a3",
        "alacritty_terminal/tests/ref",
        "Apache-2.0",
    ),
    "libvterm": Pin("neovim/libvterm", "ee614e4603bd463d9127945538316d0f230d0418", "t", "MIT"),
    "esctest2": Pin("ThomasDickey/esctest2", "664be3cf2c1e3f06bc93a8bafb48a0db83c607db", "esctest", "GPL-2.0"),
    "tmux": Pin("tmux/tmux", "c1f947a3c5bc72a40c32dead736f84c4628791ec", "regress", "ISC"),
}


def cache_folder() -> Path:
    root = Path(__file__).parents[2]
    return Path(os.environ.get(VARIABLE) or root / "build" / "scorecard-cache")


def suite_folder(name: str) -> Path | None:
    """The folder with the part of a suite that is used, or None where it is not in the cache at its commit."""
    pin = PINS[name]
    folder = cache_folder() / name / pin.commit
    return folder / pin.part if (folder / pin.part).is_dir() else None


def headless_folder() -> Path | None:
    folder = cache_folder() / f"xterm-headless-{HEADLESS}"
    return folder if (folder / "node_modules" / "@xterm" / "headless").is_dir() else None


def tree_folder(name: str) -> Path | None:
    """One of the trees that ranking is asked about."""
    folder = cache_folder() / "trees" / name / TREES[name][1]
    return folder if folder.is_dir() else None


def fill(source: str) -> None:
    """Bring every pinned part into the cache. `source` is where repositories are: `{repository}`, `{owner}` and `{name}` stand in it."""
    for name, pin in PINS.items():
        if suite_folder(name) is None:
            owner, _, project = pin.repository.partition("/")
            _check_out(
                pin,
                source.format(repository=pin.repository, owner=owner, name=project),
                cache_folder() / name / pin.commit,
            )
        print(f"{name}: {suite_folder(name)}")
    for name, (repository, commit) in TREES.items():
        if tree_folder(name) is None:
            owner, _, project = repository.partition("/")
            where = source.format(repository=repository, owner=owner, name=project)
            _check_out(Pin(repository, commit, ".", ""), where, cache_folder() / "trees" / name / commit)
        print(f"{name}: {tree_folder(name)}")
    if headless_folder() is None:
        folder = cache_folder() / f"xterm-headless-{HEADLESS}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"@xterm/headless@{HEADLESS}"],
            cwd=folder,
            check=True,
        )
    print(f"@xterm/headless: {headless_folder()}")


def _check_out(pin: Pin, source: str, folder: Path) -> None:
    work = folder.with_name(folder.name + ".part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    git = ["git", "--git-dir", source]
    if not Path(source).is_dir():
        git = ["git", "-C", str(work)]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "fetch", "-q", "--depth", "1", source, pin.commit], check=True)
    # One file at a time: a mirror may lack some, and the suite says which.
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "--name-only", pin.commit, pin.part], check=True, capture_output=True, text=True
    )
    for path in filter(None, listed.stdout.split("\0")):
        found = subprocess.run([*git, "cat-file", "blob", f"{pin.commit}:{path}"], check=False, capture_output=True)
        if found.returncode == 0:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(found.stdout)
        else:
            print(f"  not there: {path}")
    shutil.rmtree(work / ".git", ignore_errors=True)
    work.rename(folder)
