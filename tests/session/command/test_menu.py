"""A menu that a key of the shell opens, such as fzf's, is left alone: nothing is typed into it."""

from __future__ import annotations

import sys

import pytest

from tests.support.session.shells import AGENT, each_shell, run, text_of, with_shell
from tests.support.waiting import until
from wsh.session.event import Actor
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

PERSON = Actor("person", "alice")

MENU = """\
import os, sys, termios, tty
tty_fd = os.open("/dev/tty", os.O_RDWR)
before = termios.tcgetattr(tty_fd)
tty.setraw(tty_fd)
got = open(sys.argv[1], "ab", buffering=0)
os.write(tty_fd, b"\\r\\nwhich" + b" one?")
while (key := os.read(tty_fd, 1)) != b"q":
    got.write(key)
termios.tcsetattr(tty_fd, termios.TCSANOW, before)
"""


@each_shell
def test_a_menu_that_a_key_opens_is_left_alone(places: Places, shell: str) -> None:
    root = places.state.parent
    (root / "menu.py").write_text(MENU)
    got = root / "got"
    menu = f"{sys.executable} {root}/menu.py {got}"
    bind = {
        "bash": f"bind -x '\"\\C-t\": {menu}'",
        "zsh": f"menu() {{ local x=$({menu}); zle reset-prompt; }}; zle -N menu; bindkey '^T' menu",
        "fish": f"bind \\ct '{menu}; commandline -f repaint'",
    }[shell]

    async def work(session: Session) -> None:
        await run(session, bind)
        await session.input.send(b"echo half", PERSON)
        await session.wait(WaitSpec(text="echo half", generation=0, max_wait_ms=60_000))
        await session.input.send(b"\x14", PERSON)
        await session.wait(WaitSpec(text="which one?", generation=0, max_wait_ms=60_000))
        for _ in range(5):
            with pytest.raises(LineInUse) as refused:
                await session.run_command("echo mixed", AGENT, timeout_ms=300)
            assert refused.value.typed_by == {"kind": "person", "id": "alice"}
        with pytest.raises(LineInUse):
            await session.input.type(b"x", AGENT)
        assert got.read_bytes() == b"", "something was typed into the menu"
        await session.input.send(b"q", PERSON)
        await session.input.send(b"\r", PERSON)
        await until(
            lambda: [c.command for c in session.history.list_commands()][-1] == "echo half", "the line was lost"
        )
        await until(lambda: session.at_prompt == "yes", "no prompt came")
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, shell, work, session__line_wait_ms=0)
