"""Argument lists for the programs that have a model: every option the program has, spelled in every way there is.

The options come from the program's own help, so one that the model does not know is tried as well; whatever the model
lets through is worth running.
"""

from __future__ import annotations

import random
import re
import string
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache

from wsh.policy.harmless import PROGRAMS

_LONG = re.compile(r"(?<![\w-])--[A-Za-z0-9][\w-]*")
_WORD = re.compile(r"(?<![\w-])-[A-Za-z][A-Za-z0-9]+\b")
_LETTERS = [f"-{letter}" for letter in string.ascii_letters + string.digits]
OPERANDS = (
    "in", "in2", "folder", "out", "new", "-", ".", "missing", "in.json", "empty", "+1", "-1", "+5f", "010100002030", "a b", "in:out", "@in", "=", "",
    "HEAD", "main", "newb", "refs/heads/main", "+%s", ".a", "1p", "p", "s/a/b/", "w out", "1,2p", "s/a/b/w out", "pid,cmd", "1", "evil.host",
)  # fmt: skip
_VALUES = (
    "1", "0", "2", "in", "out", "x", "always", "none", "10", "-1", "auto", "name", "seconds", "now", "1,2", "o", "/dev/null", "f", "%s", "16", "all", "HEAD", "main",
    "format:%h", "%G?", "diff", "log", "a", ":", "utf-8", "1p", "w out", "-o", "-rout", "--list", "json", "sh", "out=out",
)  # fmt: skip
GIT_SUBCOMMANDS = (
    "status log show diff branch tag remote stash rev-parse rev-list describe blame ls-files ls-tree grep reflog shortlog merge-base cat-file show-ref "
    "for-each-ref worktree check-ignore count-objects config diff-tree whatchanged annotate name-rev cherry check-attr version"
).split()


def programs() -> list[str]:
    return sorted(PROGRAMS)


@cache
def options(program: str, subcommand: str | None = None) -> tuple[str, ...]:
    """All options there could be: what the help names, what a model is likely to hold, and every single letter."""
    words = [program, subcommand, "-h"] if subcommand else [program, "--help"]
    try:
        told = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return tuple(_LETTERS)
    text = (told.stdout + told.stderr).decode("utf-8", "replace").replace("--[no-]", "--")
    more = _GIT_MORE if subcommand else ()
    return tuple(dict.fromkeys([*_LONG.findall(text), *_WORD.findall(text), *_LETTERS, *more]))


@cache
def _likely(program: str, *head: str) -> tuple[str, ...]:
    """Options that the model knows in some spelling: most lists are made of them, or none would get through."""
    judge = PROGRAMS[program]
    verb = (*head, "list") if head == ("stash",) else head
    return tuple(
        option
        for option in options(program, *head)
        if any(
            judge([*verb, *words]) is None for words in ([option], [option, "1"], [f"{option}=1"], [option, "1", "1"])
        )
    )


_GIT_MORE = (
    "--output", "--ext-diff", "--textconv", "--submodule", "--ignore-submodules", "--open-files-in-pager", "--format", "--pretty", "--show-signature",
    "--recurse-submodules", "--list", "--merged", "--contains", "--points-at", "--no-merged", "--dirty", "--stat", "--patch", "--all", "--cached",
    "--name-only", "--oneline", "--remerge-diff", "--diff-merges", "--no-index", "--sort", "--group", "--graph", "--follow", "--show-current",
)  # fmt: skip


def argument_lists(program: str, seed: int) -> Iterator[tuple[str, ...]]:
    """Without end; the same seed gives the same lists."""
    chance = random.Random(f"{program}:{seed}")
    while True:
        yield tuple(_one(program, chance))


def _one(program: str, chance: random.Random) -> list[str]:
    head: list[str] = []
    if program == "git":
        head = [chance.choice(GIT_SUBCOMMANDS)]
        if head == ["stash"] and chance.random() < 0.8:
            head.append(chance.choice(("list", "show")))
    known = options(program, head[0] if head else None)
    likely = _likely(program, *head[:1])
    tail: list[str] = []
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4))):
        tail += _spelled(chance, chance.choice(likely if likely and chance.random() < 0.85 else known), likely or known)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        tail.append(chance.choice(OPERANDS))
    if chance.random() < 0.4:
        chance.shuffle(tail)
    if chance.random() < 0.1:
        tail.insert(chance.randrange(len(tail) + 1), "--")
    return head + tail


def _spelled(chance: random.Random, option: str, known: Sequence[str]) -> list[str]:
    value = chance.choice(_VALUES)
    if option.startswith("--"):
        way = chance.randrange(5)
        if way == 0:
            return [f"{option}={value}"]
        if way == 1:
            return [option, value]
        if way == 2 and len(option) > 4:
            return [option[: chance.randrange(3, len(option))]]
        return [option]
    way = chance.randrange(6)
    if way == 0:
        return [option, value]
    if way == 1:
        return [option + value]
    if way in (2, 3) and len(option) == 2:
        letters = [word[1] for word in known if len(word) == 2] or [word[1] for word in _LETTERS]
        cluster = "".join(chance.choice(letters) for _ in range(chance.choice((1, 1, 2, 3))))
        return [option + cluster] + ([value] if way == 3 else [])
    return [option]
