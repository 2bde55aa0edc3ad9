"""run_command in real shells: it ends when the shell says so, and says what came of it."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.session.running import run_with_registry
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, run, run_to_end, text_of, with_shell
from wsh.session.record.playback import read_output
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import InvalidRequest, SessionExited, SessionNotFound, WaitTimeout
from wsh.wire.system.place import Places


@each_shell
def test_a_command_ends_with_its_status_output_and_duration(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        first = await run(session, "echo hello; sh -c 'exit 3'")
        assert (first.finished_by, first.exit_code, text_of(first)) == ("command", 3, "hello")
        assert first.duration_ms is not None and first.pipestatus is None
        second = await run(session, "true")
        assert (second.finished_by, second.exit_code, text_of(second)) == ("command", 0, "")
        assert second.command_id == (first.command_id or 0) + 1
        slow = await run(session, "sleep 0.4")
        assert slow.finished_by == "command" and slow.duration_ms is not None and 380 <= slow.duration_ms < 60_000
        piped = await run(session, "false | true | sh -c 'exit 5'")
        assert (piped.exit_code, piped.pipestatus) == (5, [1, 0, 5])

    with_shell(places, shell, work)


@each_shell
def test_shapes_of_input_that_are_not_one_plain_line(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        assert text_of(await run(session, "printf foo")) == "foo"
        nothing = await run(session, "")
        assert (nothing.finished_by, nothing.exit_code, nothing.command_id) == ("prompt", None, None)
        several = await run(session, "echo one\necho two\nsh -c 'exit 4'")
        assert (several.finished_by, several.exit_code, text_of(several)) == ("command", 4, "one\ntwo")
        assert len(several.commands) == 3
        refused = await run(session, "if )")
        assert refused.finished_by == "command" and refused.exit_code == {"bash": 2, "zsh": 1, "fish": 127}[shell]
        assert "error" in text_of(refused) or "Expected" in text_of(refused)
        assert text_of(await run(session, "echo 'still; fine'")) == "still; fine"
        if shell != "fish":
            here = await run(session, "cat <<'END'\n$x `y`\n  two\nEND")
            assert (here.exit_code, text_of(here)) == (0, "$x `y`\n  two")
        for number in range(5):  # the ends of lines that a file from Windows has are one Enter each
            crlf = await run(session, f"echo one-{number}\r\nfalse\r\nsh -c 'exit 4'\r\n")
            assert (crlf.finished_by, crlf.exit_code, text_of(crlf)) == ("command", 4, f"one-{number}")
            assert len(crlf.commands) == 3
        ended = await run(session, "echo with-newline\n")
        assert text_of(ended) == "with-newline" and ended.commands == (ended.command_id,)

    with_shell(places, shell, work)


@pytest.mark.torture
@each_shell
def test_the_result_of_many_lines_is_that_of_the_last(places: Places, shell: str, torture: bool) -> None:
    async def work(session: Session) -> None:
        count = 2500 if torture else 60
        many = await run(session, "true\n" * count + "echo last; sh -c 'exit 9'", max_wait_ms=600_000)
        assert (many.finished_by, many.exit_code, text_of(many), len(many.commands)) == (
            "command",
            9,
            "last",
            count + 1,
        )

    with_shell(places, shell, work)


@each_shell
def test_a_command_right_after_ctrl_c_is_typed_whole(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")  # Ctrl+C in its startup files ends fish
        for number in range(8):
            if number % 2:
                await run(session, "echo 'open", timeout_ms=100)
            else:
                await session.input.send(b"half a line", AGENT)
                await asyncio.sleep(0.05)
            await session.input.send(b"\x03", AGENT)
            assert text_of(await run(session, f"echo whole-{number}")) == f"whole-{number}"

    with_shell(places, shell, work)


@each_shell
def test_tabs_in_a_command_are_tabs(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        assert (
            text_of(await run(session, "printf '%s|' 'a\tb' '/us\t' | od -An -c | tr -s ' '"))
            == r" a \t b | / u s \t |"
        )
        if shell != "fish":
            here = await run(session, "cat <<'E' | od -An -c | tr -s ' '\n\tx\nE")
            assert text_of(here) == r" \t x \n"

    with_shell(places, shell, work)


def test_a_line_that_history_expansion_refuses_is_no_success(places: Places) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, 'echo "hi!nobody"')
        assert (outcome.finished_by, outcome.exit_code) == ("command", 1)
        assert "event not found" in text_of(outcome)

    with_shell(places, "bash", work)


def test_input_typed_ahead_of_a_running_command_is_told_apart_from_it(places: Places) -> None:
    async def work(session: Session) -> None:
        with pytest.raises(WaitTimeout):
            await run(session, "sleep 0.8; echo first", timeout_ms=50, max_wait_ms=150)
        outcome = await run(session, "echo second; sh -c 'exit 5'", timeout_ms=3000)
        assert (outcome.finished_by, outcome.exit_code, outcome.command_id) == ("command", 5, 2)
        assert text_of(outcome) == "second"

    with_shell(places, "bash", work)


@each_shell
def test_marks_that_a_program_prints_end_nothing(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, r"printf '\033]133;D;0\007\033]133;A\007\033]133;C\007a\n'; sleep 0.2; echo b")
        assert (outcome.exit_code, text_of(outcome)) == (0, "a\nb")
        # replaying the session's own bytes repeats old numbers
        copy = session.folder.path / "copy"
        await asyncio.sleep(0.05)
        copy.write_bytes(session.output.read_recent(0))
        outcome = await run(session, f"cat '{copy}' >/dev/null; cat '{copy}'; sleep 0.1; echo after; false")
        assert outcome.exit_code == 1 and text_of(outcome).endswith("after")

    with_shell(places, shell, work)


@each_shell
def test_a_program_that_wants_input_ends_the_run_as_prompt(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        asked = await run(session, "sh -c 'printf \"Continue? [y/N] \"; read a; echo got $a'")
        assert (asked.finished_by, text_of(asked)) == ("prompt", "Continue? [y/N]")
        assert asked.command_id is not None and asked.exit_code is None
        answered = await run_to_end(session, "y")
        assert (answered.finished_by, answered.exit_code, answered.command_id) == ("command", 0, asked.command_id)
        assert "got y" in text_of(answered)

    with_shell(places, shell, work)


def test_a_silent_command_that_only_takes_its_time_is_waited_for(places: Places) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "sleep 0.7; echo done", timeout_ms=100)
        assert (outcome.finished_by, text_of(outcome)) == ("command", "done")

    with_shell(places, "bash", work)


def test_a_deadline_names_the_command_the_screen_and_how_to_go_on(places: Places) -> None:
    async def work(session: Session) -> None:
        with pytest.raises(WaitTimeout) as caught:
            await run(session, "echo begun; sleep 60", timeout_ms=50, max_wait_ms=400)
        facts = caught.value.facts
        assert facts["timeout_ms"] == 400 and facts["command_id"] == 1
        assert "begun" in facts["screen"]["lines"] and facts["foreground"]["argv"] == ["sleep", "60"]
        assert "Wait on" in (caught.value.hint or "")
        state = await session.look()
        assert (state.command_id, state.at_prompt, state.input_wanted) == (1, "no", "no")
        cancelled = await run_to_end(session, "\x03")
        assert (cancelled.finished_by, cancelled.exit_code, cancelled.command_id) == ("command", 130, 1)
        assert (await run(session, "echo again")).exit_code == 0

    with_shell(places, "bash", work)


def test_repls_and_nested_shells_fall_back_and_say_so(places: Places) -> None:
    async def work(session: Session) -> None:
        repl = await run(session, "python3 -q", timeout_ms=1000)
        assert repl.finished_by == "prompt" and repl.command_id == 1
        answer = await run(session, "print(6*7)", timeout_ms=1000)
        assert answer.finished_by == "prompt" and answer.exit_code is None
        assert answer.output is not None and answer.output.text.splitlines() == ["print(6*7)", "42", ">>>"]
        assert any(str(line) == "42" for line in session.terminal.screen(styled=False).lines)
        left = await run_to_end(session, "raise SystemExit(9)")
        assert (left.finished_by, left.exit_code, left.command_id) == ("command", 9, 1)
        nested = await run(session, "bash --norc")
        assert nested.finished_by == "prompt"
        inner = await run(session, "echo inner; false", timeout_ms=1000)
        assert inner.finished_by == "prompt" and inner.exit_code is None
        assert inner.output is not None and inner.output.text.splitlines()[:2] == ["echo inner; false", "inner"]
        assert (await session.look()).at_prompt == "unknown"
        assert (await run_to_end(session, "exit 6")).exit_code == 6
        replaced = await run(session, "exec bash --norc")
        assert replaced.finished_by == "prompt"
        assert (await run(session, "echo x", timeout_ms=1000)).finished_by == "prompt"
        gone = await run_to_end(session, "exit 8")
        assert (gone.finished_by, gone.exit_code) == ("exit", 8)

    with_shell(places, "bash", work)


def test_full_screen_programs_are_a_success(places: Places) -> None:
    async def work(session: Session) -> None:
        top = await run(session, "top -d 60")
        assert top.finished_by == "prompt"
        assert (await run_to_end(session, "q", enter=False)).finished_by == "command"
        vim = await run(session, "vim -u NONE -i NONE -n")
        assert vim.finished_by == "prompt" and (await session.look()).alt_screen == "yes"
        left = await run_to_end(session, ":cq")
        assert (left.finished_by, left.exit_code) == ("command", 1)
        assert (await session.look()).alt_screen == "no"

    with_shell(places, "bash", work)


def test_an_editor_that_git_starts_is_seen_through(places: Places) -> None:
    home = make_home(places.state.parent)

    async def work(session: Session) -> None:
        await run(session, "cd; git init -q r && cd r && git config user.email a@b && git config user.name n")
        for number in range(3):
            await run(session, f"echo {number} >f; git add f; git commit -qm c{number}")
        opened = await run(session, "GIT_EDITOR='vim -u NONE -i NONE -n' git rebase -i HEAD~2")
        assert opened.finished_by == "prompt"
        assert any("pick" in str(line) for line in session.terminal.screen(styled=False).lines)
        done = await run_to_end(session, ":wq")
        assert (done.finished_by, done.exit_code) == ("command", 0)

    with_shell(places, "bash", work, home)


def test_background_jobs_that_live_on_are_reported(places: Places) -> None:
    async def work(session: Session) -> None:
        started = await run(session, "sleep 55 &")  # asked right after the fork, it is named all the same
        assert started.finished_by == "command" and started.exit_code == 0
        assert [list(job.argv) for job in started.jobs] == [["sleep", "55"]]
        quiet = await run(session, "kill %1; wait")
        assert quiet.jobs == ()
        daemon = await run(session, "sh -c 'sleep 56 >/dev/null 2>&1 & exit 0'; sleep 0.2")
        assert (daemon.finished_by, daemon.exit_code, text_of(daemon)) == ("command", 0, "")
        assert [list(job.argv) for job in daemon.jobs] == [["sleep", "56"]]
        away = await run(session, "setsid -f sleep 57 >/dev/null 2>&1 </dev/null; sleep 0.2")
        assert away.finished_by == "command" and ("sleep", "57") in [job.argv for job in away.jobs]
        assert ("sleep", "57") in [job.argv for job in (await session.look()).jobs]
        gone = await run(session, "pkill -f 'sleep 5[67]$'; sleep 0.1")
        assert gone.jobs == ()

    with_shell(places, "bash", work)


def test_long_output_is_cut_in_the_middle_and_counted(places: Places) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "seq 1 100000", max_output_bytes=2000)
        output = outcome.output
        assert output is not None and output.truncated
        lines = output.text.split("\n")
        assert lines[:2] == ["1", "2"] and lines[-2:] == ["99999", "100000"]
        note = next(line for line in lines if "left out" in line)
        assert str(output.omitted_bytes) in note and str(output.omitted_lines) in note
        assert output.total_lines == 100_000 and output.total_bytes == 588_894
        assert output.omitted_lines == 100_000 - (len(lines) - 1)
        assert outcome.command_id is not None
        whole = await read_output(session, session.history.get_command(outcome.command_id), 10**9)
        assert whole.text == "\n".join(str(n) for n in range(1, 100_001))
        huge = await run(session, "seq 1 1000000", max_output_bytes=2000)
        assert huge.output is not None and huge.output.text.startswith("1\n2\n")
        assert huge.output.text.endswith("999999\n1000000") and huge.output.truncated

    with_shell(places, "bash", work)


def test_runs_on_one_session_wait_for_each_other(places: Places) -> None:
    async def work(session: Session) -> None:
        outcomes = await asyncio.gather(*(run(session, f"sleep 0.05; echo {n}; sh -c 'exit {n}'") for n in range(8)))
        assert [(o.exit_code, text_of(o)) for o in outcomes] == [(n, str(n)) for n in range(8)]
        blocker = asyncio.ensure_future(run(session, "sleep 30"))
        await session.wait(WaitSpec(text="sleep 30", max_wait_ms=60_000))
        with pytest.raises(WaitTimeout) as caught:
            await run(session, "echo no", max_wait_ms=100)
        assert "nothing was typed" in str(caught.value)
        blocker.cancel()
        await asyncio.gather(blocker, return_exceptions=True)
        assert (await run(session, "\x03")).exit_code == 130

    with_shell(places, "bash", work)


@each_shell
def test_the_shell_that_ends_ends_the_run(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "exit 7")
        assert (outcome.finished_by, outcome.exit_code) == ("exit", 7)
        assert [c.exit_code for c in session.history.list_commands()] == [7]

    with_shell(places, shell, work)


def test_killing_a_session_ends_the_run_that_waits_in_it(places: Places) -> None:
    async def body(registry: SessionRegistry) -> None:
        for command in ("bash", "sh"):
            session = await open_shell(registry, command, make_home(places.state.parent))
            waiting = asyncio.ensure_future(run(session, "sleep 60", timeout_ms=50_000))
            await session.wait(WaitSpec(text="sleep 60", max_wait_ms=60_000))
            await registry.kill(session.name)
            try:
                assert (await waiting).finished_by == "exit"
            except SessionNotFound:
                pass  # it was forgotten before the run could tell
            assert session.closed
            with pytest.raises((SessionExited, SessionNotFound)):
                await run(session, "true")

    run_with_registry(places, body)


def test_without_integration_silence_ends_the_run(places: Places) -> None:
    async def body(registry: SessionRegistry) -> None:
        home = make_home(places.state.parent)
        for session in (
            await open_shell(registry, "bash", home, integration=False),
            await open_shell(registry, "sh", home),
        ):
            await session.wait(WaitSpec(input_wanted=True))
            outcome = await run(session, "echo hello")
            assert outcome.finished_by == "prompt" and outcome.exit_code is None
            assert outcome.output is not None and outcome.output.text.splitlines()[:2] == ["echo hello", "hello"]
            assert session.history.list_commands() == [] and (await session.look()).integration == "off"
            assert "hello" in [str(line) for line in session.terminal.screen(styled=False).lines]
            assert (await run(session, "sleep 1000", timeout_ms=200)).finished_by == "quiet"

    run_with_registry(places, body)


def test_integration_can_be_turned_off_by_setting(places: Places) -> None:
    async def work(session: Session) -> None:
        assert session.commands is None

    with_shell(places, "bash", work, session__shell_integration=False)


def test_bad_limits_are_refused_before_anything_is_typed(places: Places) -> None:
    async def work(session: Session) -> None:
        for bad in ("timeout_ms", "max_wait_ms", "max_output_bytes"):
            with pytest.raises(InvalidRequest):
                await run(session, "true", **{bad: -1})
        assert session.history.list_commands() == []

    with_shell(places, "bash", work)
