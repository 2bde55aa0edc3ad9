"""A line has one author: a run types only onto an empty line, whatever the cursor says, and nobody's typing is mixed with it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.session.shells import AGENT, each_shell, make_home, run, run_to_end, text_of, with_shell
from tests.support.waiting import until
from wsh.session import event as ev
from wsh.session.command.line import LineModes, TypedLine
from wsh.session.command.turn import count_unread, read_modes
from wsh.session.event import Actor, SessionEvent
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

PERSON = Actor("person", "alice")
OTHER = Actor("agent", "other")
RAW = LineModes(False, False, 7)
COOKED = LineModes(True, True, 7)
HIDDEN = LineModes(True, False, 7)


def is_asleep(session: Session) -> bool:
    """Whether `sleep` has the terminal."""
    modes = read_modes(session.child)
    assert modes is not None
    try:
        return Path(f"/proc/{modes.group}/comm").read_text() == "sleep\n"
    except (FileNotFoundError, ProcessLookupError):
        return False  # the program in front has just gone, and the next one is not there yet


async def type_half(session: Session, text: bytes, actor: Actor = PERSON) -> None:
    """Type it and let the shell read it."""
    before = session.generation
    await session.input.send(text, actor)
    await until(lambda: session.generation > before or b"\x1b" in text, f"{text!r} was not echoed")
    await session.wait(WaitSpec(quiet_ms=60, max_wait_ms=60_000))


async def refused(session: Session, text: str = "echo mixed", actor: Actor = AGENT) -> LineInUse:
    """Run it, which must be refused, with nothing typed."""
    with pytest.raises(LineInUse) as caught:
        await session.run_command(text, actor, timeout_ms=300, max_wait_ms=60_000)
    return caught.value


NO_WAIT: dict[str, Any] = {"session__line_wait_ms": 0}


@each_shell
def test_a_run_never_goes_on_with_what_somebody_has_typed(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"echo rm -rf /x/important-")
        problem = await refused(session, "ls /x")
        assert problem.facts["text"] == "echo rm -rf /x/important-"
        assert problem.typed_by == {"kind": "person", "id": "alice"}
        assert problem.facts["typed_at"] and not problem.facts["continuation"] and not problem.facts["own"]
        # the person's line is as it was, and runs as it was meant
        await session.input.send(b"end\r", PERSON)
        await session.wait(WaitSpec(text="/x/important-end", generation=0, max_wait_ms=60_000))
        assert not any("ls /x" in command.command for command in session.history.list_commands())
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(b"echo half\x1b[H", id="home"),
        pytest.param(b"   ", id="spaces"),
        pytest.param("écho 中文 🙂 'a".encode(), id="unicode"),
        pytest.param(b"echo a; \x01", id="ctrl-a"),
    ],
)
def test_the_shell_knows_its_line_wherever_the_cursor_is(places: Places, shell: str, typed: bytes) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, typed)
        problem = await refused(session)
        assert problem.facts["text"] == typed.replace(b"\x1b[H", b"").replace(b"\x01", b"").decode()

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_what_is_only_shown_is_not_on_the_line(places: Places, shell: str) -> None:
    """Right prompts and suggestions are not typed; a line that was emptied again is empty."""
    home = make_home(
        places.state.parent,
        zshrc="RPS1='right prompt'\nPS1=$'two\\nlines%% '\n",
        bashrc="PS1='two\\nlines$ '\n",
        config__fish__config_fish="",
    )
    folder = places.state.parent / "home" / ".config" / "fish"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.fish").write_text("function fish_right_prompt; echo right prompt; end\n")

    async def work(session: Session) -> None:
        assert text_of(await run(session, "echo zebra")) == "zebra"
        await type_half(session, b"echo ze")  # fish suggests the rest
        problem = await refused(session)
        assert problem.facts["text"] == "echo ze"
        await type_half(session, b"\x15")
        assert text_of(await run(session, "echo one")) == "one"
        await type_half(session, b"abc\x7f\x7f\x7f")
        assert text_of(await run(session, "echo two")) == "two"

    with_shell(places, shell, work, home, **NO_WAIT)


@each_shell
def test_the_rest_of_a_command_is_a_line_in_use(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"for i in 1" + (b"; do" if shell != "fish" else b"") + b"\r")
        problem = await refused(session)
        assert problem.facts["continuation"] or "for i in 1" in problem.facts["text"]
        await type_half(session, b"echo inner")
        problem = await refused(session)
        assert "echo inner" in problem.facts["text"]
        if shell != "bash":
            assert "for i in 1" in problem.facts["text"]
        await session.input.send(b"\x03", PERSON)
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, shell, work, **NO_WAIT)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_heredoc_that_is_open_is_a_line_in_use(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        opened = await run(session, "cat <<END", timeout_ms=200)
        assert opened.finished_by == "prompt"
        problem = await refused(session)
        assert problem.facts["continuation"]
        log = session.commands
        assert log is not None
        finished = log.finished
        await session.input.send(b"text\rEND\r", AGENT)
        await until(lambda: log.finished > finished and log.phase == "prompt", "the heredoc did not end")
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_type_ahead_counts(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        # What it prints shows that it has the terminal: until then fish does not echo what is typed, and it is not told.
        await session.input.send(b"sh -c 'echo be\"\"gun; sleep 0.7'\r", PERSON)
        await session.wait(WaitSpec(text="begun", generation=0, max_wait_ms=60_000))
        await session.input.send(b"echo typed-ahead", PERSON)
        problem = await refused(session)  # while it runs
        assert problem.facts["text"] == "echo typed-ahead"
        await until(lambda: session.at_prompt == "yes", "sleep did not end")
        problem = await refused(session)  # and when the shell has read it
        assert problem.facts["text"] == "echo typed-ahead" and problem.typed_by == {"kind": "person", "id": "alice"}

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_vi_mode_is_asked_in_both_of_its_modes(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        switch = {"bash": "set -o vi", "zsh": "bindkey -v", "fish": "fish_vi_key_bindings"}[shell]
        await run(session, switch)
        await run(session, "true")
        await type_half(session, b"echo half")
        assert (await refused(session)).facts["text"] == "echo half"
        await session.input.send(b"\x1b", PERSON)
        await asyncio.sleep(0.1)
        assert (await refused(session)).facts["text"] == "echo half"
        outcome = await run(session, "echo cleared", clear_line=True)
        assert text_of(outcome) == "cleared"
        await session.input.send(b"\x03", PERSON)
        await session.wait(WaitSpec(quiet_ms=100, max_wait_ms=60_000))
        # Escape on an empty line: letters would be commands now
        await session.input.send(b"\x1b", PERSON)
        assert text_of(await run(session, "echo insert-mode", clear_line=True)) == "insert-mode"
        await session.input.send(b"\x1b", PERSON)
        pressed = time.monotonic()
        await until(lambda: time.monotonic() > pressed + 1.2)  # by then it is a key of its own
        assert text_of(await run(session, "echo insert-again")) == "insert-again"

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_a_search_in_progress_is_left_alone(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "echo zebra")
        await type_half(session, b"\x12zeb")
        before = session.generation
        problem = await refused(session)
        assert problem.typed_by == {"kind": "person", "id": "alice"}
        assert session.generation == before, "the search was disturbed"
        await session.input.send(b"\x03", PERSON)
        await session.wait(WaitSpec(quiet_ms=100, max_wait_ms=60_000))
        assert text_of(await run(session, "echo free", clear_line=True)) == "free"

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
@pytest.mark.parametrize("text", ["echo precious", "echo one; echo 'two"])
def test_a_persons_line_is_cleared_and_put_back(places: Places, shell: str, text: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, text.encode())
        outcome = await run(session, "echo ran; sh -c 'exit 4'", clear_line=True)
        assert (text_of(outcome), outcome.exit_code) == ("ran", 4)
        assert outcome.cleared_line is not None
        assert outcome.cleared_line["text"] == text and outcome.cleared_line["put_back"] == "yes"
        problem = await refused(session)
        assert problem.facts["text"] == text and problem.typed_by == {"kind": "person", "id": "alice"}

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_an_open_command_is_cleared_too(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"for i in 1 2" + (b"; do" if shell != "fish" else b"") + b"\r")
        await type_half(session, b"echo inner")
        outcome = await run(session, "echo ran", clear_line=True)
        assert text_of(outcome) == "ran" and outcome.cleared_line is not None
        if shell == "bash":  # it cannot give back lines that it has read
            assert outcome.cleared_line["put_back"] == "no"
            assert text_of(await run(session, "echo free")) == "free"
        else:
            assert outcome.cleared_line["put_back"] == "yes"
            problem = await refused(session)
            assert problem.facts["text"].split() == outcome.cleared_line["text"].split()

    with_shell(places, shell, work, **NO_WAIT)


@each_shell
def test_an_agents_own_line_is_cleared_for_good(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"echo mine", AGENT)
        problem = await refused(session)
        assert problem.facts["own"] is True and problem.facts["text"] == "echo mine"
        assert text_of(await run(session, "echo other", clear_line=True)) == "other"
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, shell, work)


@each_shell
def test_input_is_refused_only_over_the_text_of_another(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await session.input.type(b"echo mi", AGENT)
        await session.input.type(b"ne", AGENT)
        with pytest.raises(LineInUse):
            await session.input.type(b"x", OTHER)
        await session.input.type(b"\r", AGENT)
        await until(lambda: session.at_prompt == "yes", "it did not end")
        await session.input.type(b"echo other\r", OTHER)
        await until(lambda: session.at_prompt == "yes", "it did not end")
        await type_half(session, b"abc\x7f\x7f\x7f")
        await session.input.type(b"echo fine\r", OTHER)

    with_shell(places, shell, work)


@each_shell
def test_a_run_waits_visibly_while_a_person_types(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        heard: list[tuple[str, str] | None] = []

        def hear(event: SessionEvent) -> None:
            if isinstance(event, ev.RunWaitChanged):
                heard.append((event.actor.id, event.command) if event.actor is not None else None)

        session.listeners.add(hear)
        await type_half(session, b"echo per")
        waiting = asyncio.ensure_future(run(session, "echo agent"))
        await until(lambda: session.input.run_waits is not None, "nobody is told that a run waits")
        for key in b"son":
            await session.input.send(bytes([key]), PERSON)
            await asyncio.sleep(0.02)
        await session.input.send(b"\r", PERSON)
        outcome = await waiting
        assert text_of(outcome) == "agent" and session.input.run_waits is None
        # A shell that is slow to begin the person's command may make it wait a second time.
        assert heard[::2] == [("test", "echo agent")] * (len(heard) // 2) and set(heard[1::2]) == {None}
        assert [c.command for c in session.history.list_commands()][-2:] == ["echo person", "echo agent"]

    with_shell(places, shell, work, session__line_wait_ms=60_000)


def test_a_line_that_was_left_long_ago_is_not_waited_for(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"echo old")
        session.input.line.authors[PERSON] -= 3600
        heard: list[SessionEvent] = []
        session.listeners.add(heard.append)
        await refused(session)
        assert not any(isinstance(event, ev.RunWaitChanged) for event in heard)

    with_shell(places, "bash", work, session__line_wait_ms=60_000)


# where no shell of ours reads


def test_a_program_that_reads_lines_has_one_author_too(places: Places) -> None:
    async def work(session: Session) -> None:
        started = await run(session, "cat", timeout_ms=100)
        assert started.finished_by == "prompt"
        await session.input.send(b"half", PERSON)
        problem = await refused(session, "mixed")
        assert problem.facts["text"] == "half"
        outcome = await run(session, "clean", clear_line=True, timeout_ms=100)
        assert text_of(outcome).split("\n")[-1] == "clean"
        await session.input.send(b"x\x7f", PERSON)
        assert "free" in text_of(await run(session, "free", timeout_ms=100))

    with_shell(places, "bash", work, **NO_WAIT)


def test_what_is_typed_at_a_hidden_prompt_is_never_told(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "read -s -p 'Password: ' x; echo got", timeout_ms=100)
        await session.input.send(b"secr", PERSON)
        problem = await refused(session, "mixed")
        assert problem.facts["text"] is None and "secr" not in str(problem.to_wire())
        await session.input.send(b"et\r", PERSON)
        await session.wait(WaitSpec(text="got", generation=0, max_wait_ms=60_000))

    with_shell(places, "bash", work, **NO_WAIT)


def test_a_nested_shell_is_known_by_what_was_typed(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "bash --norc", timeout_ms=200)
        await type_half(session, b"echo half-")
        problem = await refused(session)
        assert problem.facts["text"] == "echo half-"
        outcome = await run(session, "echo clean", clear_line=True, timeout_ms=200)
        assert "half-clean" not in text_of(outcome) and "clean" in text_of(outcome)
        assert "free" in text_of(await run(session, "echo free", timeout_ms=200))

    with_shell(places, "bash", work, **NO_WAIT)


def test_a_full_screen_program_takes_keys_as_ever(places: Places) -> None:
    async def work(session: Session) -> None:
        path = places.state.parent / "text"
        path.write_text("one\ntwo\nthree\n")
        opened = await run(session, f"vim -u NONE {path}", timeout_ms=300)
        assert opened.finished_by == "prompt"
        await session.input.type(b"j", PERSON)
        await session.input.type(b"dd", OTHER)
        outcome = await run_to_end(session, ":wq")
        assert outcome.finished_by == "command" and outcome.exit_code == 0
        assert path.read_text() == "one\nthree\n"
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, "bash", work, **NO_WAIT)


def test_a_repl_takes_lines_as_ever(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "python3 -q", timeout_ms=1000)
        assert "6" in text_of(await run(session, "2 * 3", timeout_ms=1000))
        await run(session, "for i in range(2):", timeout_ms=300)
        await run(session, "  print(i + 40)", timeout_ms=300)
        assert "41" in text_of(await run(session, "", timeout_ms=1000))
        ended = await run_to_end(session, "exit()")
        assert ended.finished_by == "command"

    with_shell(places, "bash", work, **NO_WAIT)


# what was typed, without a shell


def note(line: TypedLine, data: bytes, modes: LineModes = RAW, actor: Actor = PERSON) -> None:
    line.note(data, actor, modes, 1.0, 2.0, 0)


@pytest.mark.parametrize(
    ("typed", "modes", "text"),
    [
        (b"ls", RAW, "ls"),
        (b"ls\r", RAW, None),
        (b"ls\rpwd", RAW, "pwd"),
        (b"ls\x7f", RAW, "l"),
        ("lé\x7f".encode(), RAW, "l"),
        (b"l\x7f", RAW, None),
        (b"one two\x17", RAW, "one "),
        (b"one\x15", COOKED, None),
        (b"one\x03", RAW, None),
        (b"one\x04", COOKED, None),
        (b"\x1b[200~one\rtwo\x1b[201~", RAW, "one\rtwo"),
        (b"\x0c", RAW, None),
    ],
)
def test_typed_text_is_followed(typed: bytes, modes: LineModes, text: str | None) -> None:
    for pieces in ([typed], [typed[i : i + 1] for i in range(len(typed))] if b"\x1b" not in typed else [typed]):
        line = TypedLine()
        for piece in pieces:
            note(line, piece, modes)
        assert line.stands(modes) == (text is not None)
        if text is not None:
            assert line.describe().text == text and line.author == PERSON


def test_a_line_ends_with_enter_behind_a_paste_whose_end_came_in_two_reads() -> None:
    line = TypedLine()
    note(line, b"\x1b[200~ls\x1b[20", RAW)
    note(line, b"1~", RAW)
    assert line.describe().text == "ls"
    note(line, b"\r", RAW)
    assert not line.stands(RAW)


def test_keys_belong_to_the_program_that_was_in_front() -> None:
    line = TypedLine()
    note(line, b"q", RAW)
    assert line.stands(RAW) and not line.stands(LineModes(False, False, 8))
    line.forget()
    note(line, b"typed ahead", COOKED)
    assert line.stands(LineModes(False, False, 8))


def test_keys_that_the_program_in_front_did_not_read_stay_for_the_next() -> None:
    line, cooked = TypedLine(), LineModes(True, True, 8)
    note(line, b"half", RAW)
    assert line.stands(cooked, lambda: 4) and not line.stands(cooked, lambda: 0)
    line.note(b" a line", PERSON, cooked, 1.0, 1.0, None, lambda: 4)
    assert line.describe().text == "half a line"
    line.forget()
    note(line, b"q", RAW)
    line.note(b"w", PERSON, LineModes(False, False, 8), 1.0, 1.0, None, lambda: 1)
    assert line.describe().text == "w"


def test_a_run_is_refused_over_keys_that_a_busy_program_left_unread(places: Places, tmp_path: Path) -> None:
    """As fish does, which reads nothing more once it has begun to start a program."""
    go = tmp_path / "go"
    busy = f"stty raw -echo; echo de''af; until test -e {go}; do :; done; stty sane"

    async def work(session: Session) -> None:
        await session.input.send(f'sh -c "{busy}"; sleep 60\r'.encode(), AGENT)
        await until(
            lambda: "deaf" in [str(line).strip() for line in session.terminal.screen(styled=False).lines], "deaf"
        )
        await session.input.send(b"half", PERSON)
        # On a busy machine the kernel hands keys over later, and `stty sane` would meet them on their way.
        await until(lambda: count_unread(session) == 4, "the keys, unread")
        go.touch()
        await until(lambda: is_asleep(session), "the next program")
        problem = await refused(session)
        assert problem.facts["text"] == "half" and problem.typed_by == {"kind": "person", "id": "alice"}

    with_shell(places, "bash", work, **NO_WAIT)


def test_a_secret_is_not_kept() -> None:
    line = TypedLine()
    note(line, b"secret", HIDDEN)
    assert line.stands(HIDDEN) and line.describe().text is None and b"secret" not in bytes(line._text)
    note(line, b"\r", HIDDEN)
    assert not line.pending


def test_a_person_is_the_author_of_what_both_typed() -> None:
    line = TypedLine()
    note(line, b"a", RAW, PERSON)
    note(line, b"b", RAW, AGENT)
    assert line.author == PERSON and set(line.authors) == {PERSON, AGENT}


def test_a_ctrl_c_that_fish_forgets_over_a_bound_key_is_given_again(places: Places) -> None:
    """fish drops an interrupt that comes while it runs what a key is bound to; the person meant the line."""
    begun = places.state.parent / "begun"

    async def work(session: Session) -> None:
        await run(session, f"bind \\ea 'echo >{begun}; while true; end'")
        await type_half(session, b"echo half")
        await session.input.send(b"\x1ba", PERSON)
        await until(begun.exists, "the key did nothing")
        await session.input.send(b"\x03", PERSON)
        assert text_of(await run(session, "echo free")) == "free"

    with_shell(places, "fish", work, **NO_WAIT)


@each_shell
def test_a_person_may_clear_what_they_have_just_typed(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await type_half(session, b"echo half")
        with pytest.raises(LineInUse) as refused:
            await session.run_command("echo mixed", PERSON, timeout_ms=300)
        assert refused.value.facts["own"] is True
        done = await session.run_command("echo clean", PERSON, timeout_ms=300, clear_line=True)
        assert text_of(done) == "clean"

    with_shell(places, shell, work, session__line_wait_ms=60_000)
