"""One word for what a session does, the same at every door.

| word | the session |
|---|---|
| `running` | works, or cannot be told to wait |
| `idle` | is a shell at its prompt: nobody is waited for |
| `asks` | is blocked until somebody types an answer |
| `hidden` | asks, and what is typed is not shown |
| `open` | holds a program that a person works in: an editor, a pager, an interpreter at its prompt |
| `exited` | has ended |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from wsh.process import ProcessInfo

StateWord: TypeAlias = Literal["running", "idle", "asks", "hidden", "open", "exited"]

_TOOLS = frozenset(
    "vi vim nvim view ex ed nano pico emacs micro hx joe less more most man info top htop btop atop watch tig mc ranger "
    "psql mysql mariadb sqlite3 redis-cli mongosh gdb lldb bc dc ftp sftp irb ghci R julia erl iex jshell ipython".split()
)
"""Programs that wait for a person's next command, though nothing is asked, also where they leave the main screen as it is."""
_INTERPRETERS = frozenset("python python2 python3 pypy3 node nodejs deno bun".split())
"""Open where they were started without a script, else whatever their script does."""
_DIALOGS = frozenset("dialog whiptail pinentry pinentry-curses pinentry-tty gum fzf debconf".split())
"""Programs that ask one question on the whole screen."""
_VALUED = frozenset({"--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C", "--init-command"})
"""Options of shells that take the next word."""


def name_state(
    front: ProcessInfo | None,
    shell: str,
    *,
    at_prompt: bool,
    hidden: bool,
    full_screen: bool,
    waits: bool,
    edits: bool,
) -> StateWord:
    """The word for a session that runs. `shell` is which shell the foreground program is, `edits` says that it edits lines by itself."""
    if at_prompt:
        return "idle"
    if hidden:
        return "hidden"
    name = program_name(front)
    if full_screen:
        return "asks" if name in _DIALOGS and waits else "open"
    if not waits:
        return "running"
    if front is not None and shell:
        # A shell with an editor of its own turns the kernel's off at its prompt, and on again for `read`.
        at_rest = is_interactive(front.argv) and (edits or shell in ("sh", "dash", "ash"))
        return "idle" if at_rest else "asks"
    if name in _TOOLS or (name in _INTERPRETERS and front is not None and _has_no_script(front.argv)):
        return "open"
    return "asks"


def program_name(front: ProcessInfo | None) -> str:
    """`python3` for /usr/bin/python3.11."""
    if front is None:
        return ""
    word = (front.argv[0] if front.argv else front.comm).rsplit("/", 1)[-1]
    plain = word.rstrip("0123456789.-") if "." in word else word
    return f"{plain}3" if plain in ("python", "pypy") and "3" in word else plain or front.comm


def _has_no_script(argv: Sequence[str]) -> bool:
    """Whether an interpreter was given nothing to run: only options, and none that carries code or names a module."""
    return all(word.startswith("-") and word[:2] not in ("-", "-c", "-m", "-e", "-p") for word in argv[1:])


def is_interactive(argv: Sequence[str]) -> bool:
    """Whether a shell that was started by these words reads commands from its terminal, rather than from a file or an option."""
    words = iter(argv[1:])
    for word in words:
        if word in _VALUED:
            next(words, None)
            continue
        is_option = word.startswith(("-", "+")) and word not in ("-", "--")
        if not is_option or ("c" in word and not word.startswith("--")):
            return False
    return True
