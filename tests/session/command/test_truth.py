"""Random commands in real shells: exit code and output are what a plain pty gives. The whole of it is `bench/truth_compare.py`."""

from __future__ import annotations

import os

import pytest

from tests.support.session.campaign import Campaign
from tests.support.session.randoms import compare
from tests.support.session.shells import each_shell, make_home, run, with_shell
from wsh.session.session import Session
from wsh.wire.system.place import Places


@each_shell
@pytest.mark.torture
def test_random_commands_end_and_print_as_on_a_plain_pty(places: Places, shell: str, torture: bool) -> None:
    home = make_home(places.state.parent)
    extra = {"LC_CTYPE": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    env = {"PATH": os.environ["PATH"], "HOME": home, **extra}

    async def work(session: Session) -> None:
        await run(session, "true")
        found = await compare(session, shell, seed=11, count=3400 if torture else 30, env=env)
        assert found.wrong == [], "\n".join(found.wrong[:5])

    with_shell(places, shell, work, home, extra)


@each_shell
@pytest.mark.torture
def test_lines_have_one_author_and_relays_are_looked_through(places: Places, shell: str, torture: bool) -> None:
    home = make_home(places.state.parent)
    extra = {"LC_CTYPE": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    env = {"PATH": os.environ["PATH"], "HOME": home, **extra}

    async def work(session: Session) -> None:
        await run(session, "true")
        found = await Campaign(session, shell, 23, env).run(3400 if torture else 20)
        assert found.wrong == [], "\n".join(found.wrong[:5])

    with_shell(places, shell, work, home, extra, session__line_wait_ms=0)
