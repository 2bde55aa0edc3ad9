"""What the engine is about to do, told to somebody who outlives us if it kills the process.

The library is native code, and bytes can be found that it does not survive. So the owner of a terminal may give it a
`Note`: before each visit to the library the terminal says what it is for, and afterwards that it is over. A process that
starts in the place of a dead one finds the note and knows what not to do again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from wsh.terminal.engine.native import EngineError

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

P = ParamSpec("P")
R = TypeVar("R")


class Work(IntEnum):
    """Why the engine is visited. The numbers are read by other versions: none is used again for something else."""

    FEED = 1
    RESIZE = 2
    SNAPSHOT = 3
    RESTORE = 4
    READ = 5
    REPLAY = 6
    SEARCH = 7
    RENDER = 8


class Note(Protocol):
    def begin(self, work: Work, at: int = 0, size: int = 0) -> bool:
        """Say that `work` begins, on `size` bytes from offset `at`. False inside of other work: then `end` is its."""

    def end(self) -> None:
        """Say that the work is over and the engine has survived it."""


def noted(work: Work) -> Callable[[Callable[Concatenate[Terminal, P], R]], Callable[Concatenate[Terminal, P], R]]:
    """A method of a terminal that visits the engine for `work`."""

    def wrap(method: Callable[Concatenate[Terminal, P], R]) -> Callable[Concatenate[Terminal, P], R]:
        @wraps(method)
        def visit(self: Terminal, /, *args: P.args, **kwargs: P.kwargs) -> R:
            note = self.note
            mine = note is not None and note.begin(work)
            try:
                return method(self, *args, **kwargs)
            except EngineError as problem:
                # It refuses what it should do, so it is not in the state that we take it to be in.
                self.mend(problem)
                return method(self, *args, **kwargs)
            finally:
                if mine:
                    assert note is not None
                    note.end()

        return visit

    return wrap
