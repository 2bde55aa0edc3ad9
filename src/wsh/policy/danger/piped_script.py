"""A program that runs what another one prints or has fetched, as in `curl … | sh`: nobody sees the code before it runs.

Two findings come of it: a risk of unknown kind, since the code may do anything, and the label of installing code where it was fetched
from another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wsh.policy.danger.model import Scene
from wsh.policy.parse.option import Arguments
from wsh.policy.parse.word import UNKNOWN
from wsh.policy.verdict import Kind, RiskReason

INTERPRETERS = frozenset("sh bash zsh dash ksh fish ash python python3 perl ruby node php".split())
_FETCHERS = frozenset("curl wget fetch aria2c http".split())
_WHAT = "runs whatever another program prints"


def look_at_stdin(scene: Scene, look: Callable[[str], Iterable[RiskReason]]) -> Iterable[RiskReason]:
    """Findings about code that comes by standard input; `look` reads code that is known."""
    if scene.stdin == UNKNOWN:
        yield scene.found(Kind.UNKNOWN, _WHAT)
    elif scene.stdin:
        yield from look(scene.stdin)


def look_at_file(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """Findings about a script given as a file that is in truth the output of a program."""
    if arguments.operands[:1] == ["/dev/stdin"] or "".join(arguments.operands[:1]).startswith("/dev/fd/"):
        yield scene.found(Kind.UNKNOWN, _WHAT)


def runs_fetched(name: str, words: Sequence[str], piped: bool, seen: Sequence[Sequence[str]]) -> bool:
    """True if the command runs what one of the commands `seen` before it in the same script has fetched.

    `piped`: something is connected to its standard input.
    """
    if not any(each and each[0].rpartition("/")[2] in _FETCHERS for each in seen):
        return False
    if name in INTERPRETERS:
        operands = [word for word in words[1:] if not word.startswith("-")]
        reads = piped and (not operands or "-s" in words)
        return reads or any(UNKNOWN in word or "/dev/fd" in word for word in words[1:])
    return name in ("eval", "source", ".") and any(UNKNOWN in word for word in words[1:])
