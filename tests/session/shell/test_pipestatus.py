"""The status of each part of a pipeline, also beside somebody else's hooks; and tabs in shells that tell nothing."""

from __future__ import annotations

import pytest

from tests.support.session.shells import make_home, run, text_of, with_shell
from wsh.session.session import Session
from wsh.wire.error import InvalidRequest
from wsh.wire.system.place import Places

# As bash-preexec does at its first prompt: its own goes in front, with the whole of PROMPT_COMMAND behind it in one text.
FOREIGN = r"""
__bp_precmd() { __bp_last_ret_value="$?" BP_PIPESTATUS=("${PIPESTATUS[@]}"); printf '\e]133;D;%s\a\e]133;A\a' "$__bp_last_ret_value"; }
__bp_install() { PROMPT_COMMAND=${PROMPT_COMMAND/__bp_install/:}; PROMPT_COMMAND=$'__bp_precmd\n'"${PROMPT_COMMAND}"; }
PROMPT_COMMAND='__bp_install'
trap 'printf "\e]133;C\a"' DEBUG
"""


def test_hooks_of_others_before_ours_lose_no_status(places: Places) -> None:
    home = make_home(places.state.parent, bashrc=FOREIGN)

    async def work(session: Session) -> None:
        for _ in range(2):
            piped = await run(session, "false | true | sh -c 'exit 5'")
            assert (piped.finished_by, piped.exit_code, piped.pipestatus) == ("command", 5, [1, 0, 5])
            plain = await run(session, "false")
            assert (plain.exit_code, plain.pipestatus) == (1, None)

    with_shell(places, "bash", work, home)


def test_an_assignment_does_not_show_the_pipeline_before_it(places: Places) -> None:
    async def work(session: Session) -> None:
        assert (await run(session, "false | true")).pipestatus == [1, 0]
        assert (await run(session, "x=5")).pipestatus is None
        assert (await run(session, "x='a|b'")).pipestatus is None
        assert (await run(session, "false |& cat")).pipestatus == [1, 0]

    with_shell(places, "zsh", work)


def test_a_tab_in_a_shell_that_tells_nothing_is_typed_or_refused(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "bash --norc", timeout_ms=300)
        counted = await run(session, "printf '%s' 'a\tb' | wc -c; printf '%s' '\t' | od -An -c", timeout_ms=300)
        assert "3" in text_of(counted) and r"\t" in text_of(counted)
        await run(session, "fish --no-config", timeout_ms=1000)
        with pytest.raises(InvalidRequest, match="tab"):
            await run(session, "echo 'a\tb'")
        await run(session, "exit", timeout_ms=300)

    with_shell(places, "bash", work)
