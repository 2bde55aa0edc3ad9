"""A real ssh session: what cannot be seen behind it is unknown, never guessed; and our marks work there when sourced."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.support.session.shells import AGENT, SHELLS, run, run_to_end, text_of, with_shell
from tests.support.session.sshd import serve_ssh
from tests.support.waiting import until
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

STARTS = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_behind_ssh(places: Places, shell: str) -> None:
    print_marks = f"{shlex.quote(sys.executable)} -m wsh.cli.main shell-integration {shell}"
    source = f"{print_marks} | source" if shell == "fish" else f"source <({print_marks})"

    async def work(session: Session, ssh: str) -> None:
        await run(session, "true")
        opened = await run(session, f"{ssh} {STARTS[shell]}", timeout_ms=2000)
        assert opened.finished_by == "quiet", "somebody guessed"
        assert opened.note is not None and "wsh shell-integration" in opened.note
        await session.input.send(b"echo at''home; sleep 3; echo awa''ke\r", AGENT)
        await session.wait(WaitSpec(text="athome", generation=0, max_wait_ms=60_000))

        async def woken() -> bool:
            assert (await session.look(jobs=False)).input_wanted in ("no", "unknown"), "it seems to wait for input"
            return "awake" in "\n".join(map(str, session.terminal.screen(styled=False).lines))

        await until(woken, "sleep did not end")
        await session.wait(WaitSpec(quiet_ms=200, max_wait_ms=60_000))
        await session.input.send(b"echo half-", AGENT)
        for _ in range(5):
            with pytest.raises(LineInUse) as refused:
                await run(session, "echo mixed")
            assert refused.value.facts["text"] == "echo half-"
        cleared = await run(session, "echo clean", clear_line=True)
        assert "clean" in text_of(cleared) and "half-clean" not in text_of(cleared)

        await run(session, source, timeout_ms=2000)
        await until(lambda: session.has_inner_shell and session.at_prompt == "yes", "the shell there does not tell")
        done = await run(session, "echo there; sh -c 'exit 7'")
        assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 7, "there")
        slept = await run(session, "sleep 1; false | true", timeout_ms=100)
        assert (slept.finished_by, slept.pipestatus) == ("command", [1, 0])
        await session.input.send(b"echo half", AGENT)
        with pytest.raises(LineInUse) as refused:
            await run(session, "echo mixed")
        assert refused.value.facts["text"] == "echo half"
        assert text_of(await run(session, "echo free", clear_line=True)) == "free"
        left = await run_to_end(session, "exit 3")
        assert left.finished_by == "command" and not session.has_inner_shell
        outer = await run(session, "echo outer; sh -c 'exit 5'")
        assert (outer.finished_by, outer.exit_code, text_of(outer)) == ("command", 5, "outer")

    with serve_ssh(places.state.parent / "ssh") as ssh:
        with_shell(places, "bash", lambda session: work(session, ssh))
