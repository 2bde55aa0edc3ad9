"""A shell inside of the session's shell that was given our marks by hand is as good as one that wsh started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.session.shells import AGENT, SHELLS, run, run_to_end, text_of, with_shell
from tests.support.waiting import until
from wsh.session.session import Session
from wsh.session.shell.injection import ShellName, write_by_hand
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

STARTS = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}


def is_inside(session: Session) -> bool:
    return session.has_inner_shell


@pytest.mark.parametrize("inner", SHELLS)
@pytest.mark.parametrize("relay", ["{}", "script -q -c '{}' /dev/null"])
def test_a_nested_shell_tells_when_asked_to(places: Places, inner: ShellName, relay: str) -> None:
    script = Path(places.state.parent / "marks")
    script.write_text(write_by_hand(inner))

    async def work(session: Session) -> None:
        await run(session, "true")
        opened = await run(session, relay.format(STARTS[inner]), timeout_ms=1000)
        assert opened.note is not None and "wsh shell-integration" in opened.note
        await run(session, f"source {script}", timeout_ms=1000)
        assert is_inside(session)
        first = await run(session, "echo inner; sh -c 'exit 7'")
        assert (first.finished_by, first.exit_code, text_of(first)) == ("command", 7, "inner")
        second = await run(session, "false | true")
        assert (second.exit_code, second.pipestatus) == (0, [1, 0])
        assert second.command_id == (first.command_id or 0) + 1
        await session.input.send(b"echo half", AGENT)
        with pytest.raises(LineInUse) as refused:
            await run(session, "echo mixed")
        assert refused.value.facts["text"] == "echo half"
        assert text_of(await run(session, "echo free", clear_line=True)) == "free"
        left = await run_to_end(session, "exit 3")
        assert left.finished_by == "command"
        await until(lambda: not is_inside(session), "the inner shell to end")
        outer = await run(session, "echo outer; sh -c 'exit 5'")
        assert (outer.finished_by, outer.exit_code, text_of(outer)) == ("command", 5, "outer")
        ids = [command.id for command in session.history.list_commands()]
        assert len(set(ids)) == len(ids)
        for nonce in session.nonces:
            assert nonce.encode() not in session.output.read_recent(0)

    with_shell(places, "bash", work)


def test_a_missing_integration_is_said_once(places: Places) -> None:
    async def work(session: Session) -> None:
        assert (await run(session, "true")).note is None
        assert (await run(session, "cat", timeout_ms=200)).note is None
        assert (await run_to_end(session, "\x04", enter=False)).finished_by == "command"
        opened = await run(session, "bash --norc", timeout_ms=300)
        assert opened.note is not None and "source <(wsh shell-integration bash)" in opened.note
        assert (await run(session, "echo again", timeout_ms=300)).note is None

    with_shell(places, "bash", work)


def test_a_silent_command_of_a_shell_behind_ssh_is_waited_for(places: Places) -> None:
    """What is behind such a relay cannot be seen, but the shell there tells."""
    script = places.state.parent / "marks"
    script.write_text(write_by_hand("bash"))
    relay = places.state.parent / "ssh"
    relay.write_text(f"#!{sys.executable}\nimport pty\npty.spawn(['bash', '--norc'])\n")
    relay.chmod(0o755)

    async def work(session: Session) -> None:
        await run(session, "true")
        opened = await run(session, str(relay), timeout_ms=500)
        assert opened.finished_by in ("quiet", "prompt")
        await run(session, f"source {script}", timeout_ms=500)
        await until(lambda: is_inside(session) and session.at_prompt == "yes", "the shell there does not tell")
        slept = await run(session, "sleep 0.6; sh -c 'exit 4'", timeout_ms=50)
        assert (slept.finished_by, slept.exit_code) == ("command", 4)

    with_shell(places, "bash", work)
