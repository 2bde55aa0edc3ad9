"""Rules for a kind of project: what its tests, linters and builds are called, and what each rule lets in.

`find_presets` looks at the files of a folder; nothing in them is run. A project's own scripts are proposed by name, one rule each.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,60}$")
_DAILY = re.compile(
    r"(test|check|lint|format|fmt|build|compile|type|typecheck|types|cover|bench|docs|clean|ci|verify|audit)",
    re.IGNORECASE,
)
_NEVER = re.compile(r"(install|deploy|publish|release|push|prune|destroy|drop|reset|upload|login)", re.IGNORECASE)


@dataclass(frozen=True)
class ProposedRule:
    """A rule for this folder, and in plain words what it lets in."""

    command: str
    lets_in: str
    preset: str


_GIT = (
    ("git add *", "puts changes into the index; nothing is lost"),
    ("git commit *", "records a commit; the repository's own hooks do not run"),
    ("git stash push *", "sets changes aside"),
    ("git switch *", "changes branches; git refuses where that would lose changes"),
    ("git fetch *", "asks the remote for its commits"),
)
PRESETS: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (
        ("pytest *", "runs the project's tests, which are code of the project"),
        ("python -m pytest *", "the same"),
        ("python3 -m pytest *", "the same"),
        ("ruff check *", "reads and, with --fix, rewrites the project's files"),
        ("ruff format *", "rewrites the project's files"),
        ("black *", "rewrites the project's files"),
        ("mypy *", "reads the project and runs its plugins"),
        ("pyright *", "reads the project"),
        ("tox *", "makes environments, installs the project and its requirements there, runs its tests"),
    ),
    "node": (
        ("npm test *", "runs the script `test` of package.json"),
        ("npx tsc *", "compiles with the project's own compiler"),
        ("npx eslint *", "reads and, with --fix, rewrites; runs the project's plugins"),
        ("npx prettier *", "rewrites the project's files"),
        ("npx vitest *", "runs the project's tests"),
        ("npx jest *", "runs the project's tests"),
    ),
    "rust": (
        ("cargo check *", "compiles, and runs build scripts of the project and its crates"),
        ("cargo build *", "the same"),
        ("cargo test *", "the same, and runs the tests"),
        ("cargo clippy *", "the same as check"),
        ("cargo fmt *", "rewrites the project's files"),
        ("cargo doc *", "writes documentation"),
    ),
    "go": (
        ("go build *", "compiles; fetches modules that go.mod names"),
        ("go test *", "runs the project's tests"),
        ("go vet *", "reads the project"),
        ("gofmt *", "with -w rewrites the project's files"),
        ("go mod tidy", "rewrites go.mod; fetches modules"),
    ),
    "make": (),
}


def find_presets(folder: Path) -> list[str]:
    """Which presets the files of `folder` speak for."""
    found = []
    if any(
        (folder / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini")
    ):
        found.append("python")
    if (folder / "package.json").exists():
        found.append("node")
    if (folder / "Cargo.toml").exists():
        found.append("rust")
    if (folder / "go.mod").exists():
        found.append("go")
    if _find_makefile(folder) is not None:
        found.append("make")
    return found


def propose_rules(folder: Path, presets: list[str]) -> list[ProposedRule]:
    """Rules for `folder`, in the order of the presets; git's last."""
    found: dict[str, ProposedRule] = {}

    def take(preset: str, command: str, lets_in: str) -> None:
        if len(found) < _MOST:
            found.setdefault(command, ProposedRule(command, lets_in, preset))

    for preset in presets:
        for command, lets_in in PRESETS[preset]:
            if preset != "python" or not command.startswith("tox") or (folder / "tox.ini").exists():
                take(preset, command, lets_in)
        if preset == "node":
            for name in _list_scripts(folder):
                take(preset, f"npm run {name}", f"runs the script `{name}` of package.json, whatever it says by then")
        if preset == "make":
            for name in _list_targets(folder):
                take(preset, f"make {name}", f"runs the target `{name}` of the Makefile, whatever it says by then")
    for name in _list_ci_words(folder):
        if name in found or any(name.startswith(known.removesuffix(" *")) for known in found):
            continue
        take("ci", name, "stands in the project's CI; exactly these words")
    if (folder / ".git").exists():
        for command, lets_in in _GIT:
            take("git", command, lets_in)
    return list(found.values())


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(256 * 1024)
    except OSError:
        return ""


def _find_makefile(folder: Path) -> Path | None:
    return next((folder / name for name in ("Makefile", "makefile", "GNUmakefile") if (folder / name).exists()), None)


def _list_scripts(folder: Path) -> Iterator[str]:
    try:
        document = json.loads(_read(folder / "package.json"))
        scripts = document.get("scripts", {})
    except (ValueError, AttributeError):
        return
    for name in scripts if isinstance(scripts, dict) else ():
        if _is_daily(name):
            yield name


def _list_targets(folder: Path) -> Iterator[str]:
    path = _find_makefile(folder)
    for line in _read(path).splitlines() if path is not None else ():
        match = re.match(r"([A-Za-z0-9][\w.-]*)\s*:(?!=)", line)
        if match and _is_daily(match[1]):
            yield match[1]


def _list_ci_words(folder: Path) -> Iterator[str]:
    """Plain one-line commands of the project's CI that look like daily work."""
    for path in sorted((folder / ".github" / "workflows").glob("*.y*ml"))[:10]:
        for line in _read(path).splitlines():
            match = re.match(r"\s*(?:-\s*)?run:\s*([A-Za-z][\w ./:=-]*)$", line)
            if match and _DAILY.search(match[1]) and not _NEVER.search(match[1]):
                yield match[1].strip()


def _is_daily(name: object) -> bool:
    return (
        isinstance(name, str)
        and _NAME.match(name) is not None
        and _DAILY.search(name) is not None
        and _NEVER.search(name) is None
    )


def find_project_name(folder: Path) -> str:
    """For people: what the project calls itself, else the folder's name."""
    try:
        project = tomllib.loads(_read(folder / "pyproject.toml")).get("project", {})
        name = project.get("name") if isinstance(project, dict) else None
    except tomllib.TOMLDecodeError:
        name = None
    return name if isinstance(name, str) and name.isprintable() else folder.name
