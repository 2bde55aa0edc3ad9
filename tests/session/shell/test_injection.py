"""Injection: the user's own files are honoured, nothing leaks, and odd configurations do not break the marks."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.session.running import run_with_registry
from tests.support.session.shells import SHELLS, each_shell, make_home, open_shell, run, run_to_end, text_of, with_shell
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.shell.injection import plan_injection
from wsh.wire.system.place import Places


async def check_marks(session: Session) -> None:
    """The least that must hold in every configuration."""
    for number in range(2):
        outcome = await run(session, f"echo out-{number}; sh -c 'exit {number + 2}'")
        assert (outcome.finished_by, outcome.exit_code, text_of(outcome)) == (
            "command",
            number + 2,
            f"out-{number}",
        ), await screen(session)


async def screen(session: Session) -> str:
    await asyncio.sleep(0.1)
    return "\n".join(str(line) for line in session.terminal.screen(styled=False).lines)


def planned(command: str, path: str | None = None) -> tuple[str, ...] | None:
    words = command.split()
    executable = path or f"/bin/{os.path.basename(words[0]).removeprefix('-')}"
    injection = plan_injection(words, executable, {"HOME": "/nowhere"})
    return None if injection is None else injection.argv


def test_only_interactive_shells_get_marks() -> None:
    for command in ("bash", "-bash", "bash -l", "bash --login -i", "bash -il", "bash --norc", "bash -o vi -u", "zsh"):
        assert planned(command) is not None, command
    for command in ("zsh -l", "-zsh", "zsh -i", "zsh -o extended_glob", "fish", "fish -i", "fish -l", "fish -N"):
        assert planned(command) is not None, command
    for command in (
        "bash -c true",
        "bash script",
        "bash -s",
        "bash --version",
        "bash --posix",
        "bash -r",
        "bash -ic true",
        "bash --rcfile",
        "bash -o posix",
        "zsh -c true",
        "zsh -f",
        "zsh script",
        "zsh -o norcs",
        "fish -c true",
        "fish script",
        "fish -n",
        "sh",
        "dash -i",
        "python3",
    ):
        assert planned(command) is None, command
    assert planned("bash", "/bin/dash") is None


@each_shell
def test_neither_environment_nor_listing_nor_arguments_show_the_nonce(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        assert session.commands is not None
        nonce = session.commands.nonce
        halves = nonce.split(".")
        listing = {"bash": "set; declare -p; declare -f; alias", "zsh": "set; typeset; functions; alias"}
        dump = await run(
            session, listing.get(shell, "set; functions -a; functions __wsh_began"), max_output_bytes=10**7
        )
        assert "wsh" in text_of(dump)
        environment = text_of(await run(session, f"cat /proc/{session.pid}/environ"))
        arguments = text_of(await run(session, f"cat /proc/{session.pid}/cmdline"))
        children = text_of(await run(session, "env; cat /proc/self/cmdline"))
        for place in (text_of(dump), environment, arguments, children):
            assert nonce not in place
            assert shell == "fish" or not any(half in place for half in halves)
        assert not any(line.startswith(("ENV=", "ZDOTDIR=/work")) for line in children.split("\n"))
        left = text_of(await run(session, "ls -l /proc/self/fd"))
        assert shell == "fish" or " 9 ->" not in left
        assert text_of(await run(session, "cat /dev/fd/9 2>/dev/null")) == ""

    with_shell(places, shell, work)


@each_shell
def test_nested_shells_print_no_marks(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        if shell == "bash":
            await run(session, "export PS0 PS1 PROMPT_COMMAND")
        for inner in SHELLS:
            opened = await run(session, f"{inner} -i")
            assert opened.finished_by == "prompt", inner
            before = session.generation
            await run(session, "echo inner")
            await run(session, "echo inner")
            raw = session.output.read_recent(before)
            assert b"inner" in raw and b"\x1b]133;" not in raw and b"not found" not in raw, (inner, raw)
            assert (await run_to_end(session, "exit")).finished_by == "command"
        await check_marks(session)

    with_shell(places, shell, work)


BASHRC = {
    "nothing": "",
    "prompt command as text": "PROMPT_COMMAND='printf \"\\e]0;title\\a\"'; x=1",
    "prompt command as array": "PROMPT_COMMAND=('true' 'printf \"\\e]0;title\\a\"')",
    "prompt command that fails": "PROMPT_COMMAND='false; (exit 9)'",
    "prompt command with a comment": "PROMPT_COMMAND='true # comment'",
    "nounset": "set -u",
    "readonly PS0": "readonly PS0=",
    "prompt with words and stars": "PS1='a  * b \\$ '; cd /tmp",
    "prompt of several lines": "PS1='\\n\\[\\e[32m\\]\\u@\\h\\[\\e[0m\\]\\n$? \\$ '",
    "prompt made anew each time": 'p() { local s=$?; PS1="[$s] $(date +%s)\\$ "; }; PROMPT_COMMAND=p',
    "debug trap": "trap 'echo TRAP \"$BASH_COMMAND\" >>~/trap' DEBUG",
    "own PS0": "PS0='before \\t\\n'",
    "functions that shadow builtins": "printf() { echo bad; }; history() { echo bad; }; local() { :; }",
    "odd aliases": "alias printf='echo bad' local='echo bad' return='echo bad'",
    "odd separators": "IFS=x; shopt -s nullglob extglob dotglob; set -o noclobber; set -f",
    "vi mode": "set -o vi",
    "posix mode": "set -o posix",
    "no history": "set +o history; HISTFILE=/dev/null",
    "history that ignores": "HISTCONTROL=ignoreboth:erasedups; HISTIGNORE='*'; HISTTIMEFORMAT='%F '; HISTSIZE=0",
    "all exported": "set -a",
    "no bracketed paste": "bind 'set enable-bracketed-paste off'",
    "readonly prompt": "PS1='ro$ '; readonly PS1",
    "other locale": "LC_ALL=C",
    "functrace": "set -T; trap ':' DEBUG; trap ':' RETURN; trap ':' ERR",
    "a shell hook library": (
        "pre() { [[ -n ${COMP_LINE-} ]] || true; }; trap pre DEBUG\n"
        'install() { PROMPT_COMMAND="run_hooks${PROMPT_COMMAND:+;$PROMPT_COMMAND}"; }\n'
        "run_hooks() { local s=$?; return $s; }\nPROMPT_COMMAND='install; :'"
    ),
}


@pytest.mark.parametrize("name", BASHRC)
def test_bash_keeps_its_marks_whatever_the_startup_file_does(places: Places, name: str) -> None:
    home = make_home(places.state.parent, bashrc=BASHRC[name] + "\nMINE=yes\n")

    async def work(session: Session) -> None:
        await check_marks(session)
        assert name == "readonly PS0" or session.history.get_command(1).command.startswith("echo out-0; sh")
        assert session.cwd == ("/tmp" if "stars" in name else "/")
        assert text_of(await run(session, "echo $MINE")) == "yes"
        assert text_of(await run(session, "clear; echo cleared")) == "cleared"
        assert text_of(await run(session, "(echo sub; exit 3)")) == "sub"
        if name == "prompt with words and stars":
            assert "a  * b # (echo sub; exit 3)" in (await screen(session)).replace("b $", "b #")

    with_shell(places, "bash", work, home)


ZSHRC = {
    "nothing": "",
    "own hooks": "precmd() { print -n '\\e]0;t\\a' }; preexec() { true }; precmd_functions=(other); other() { false }",
    "a blank line before each prompt": "precmd() { print }",
    "prompt made anew each time": 'setopt prompt_subst; precmd() { PS1="[$?] $(date +%s)%# " }',
    "prompt of several lines": "PS1=$'\\n%F{green}%n%f\\n%? %# '; RPROMPT='%T'",
    "nounset": "setopt no_unset",
    "ksh arrays": "setopt ksh_arrays sh_word_split",
    "no prompt_sp": "unsetopt prompt_sp",
    "no prompt_cr": "unsetopt prompt_cr prompt_sp",
    "own mark for missing newlines": "PROMPT_EOL_MARK='<nonl>'",
    "vi mode": "bindkey -v",
    "warnings": "setopt warn_create_global",
    "odd aliases": "alias printf='echo bad' local='echo bad' builtin='echo bad' emulate='echo bad'",
    "functions that shadow builtins": "printf() { echo bad }; print() { echo bad }",
    "noclobber": "setopt noclobber; unsetopt multios",
    "theme with hooks": (
        "autoload -Uz add-zsh-hook vcs_info; setopt prompt_subst\n"
        "t() { vcs_info; PROMPT='${PWD} %(?.ok.bad) ' }; add-zsh-hook precmd t; add-zsh-hook preexec p; p() { : }"
    ),
    "line editor hooks": "zle-line-init() { true }; zle -N zle-line-init",
}


@pytest.mark.parametrize("name", ZSHRC)
def test_zsh_keeps_its_marks_whatever_the_startup_file_does(places: Places, name: str) -> None:
    home = make_home(places.state.parent, zshenv="FROM_ENV=yes\n", zshrc=ZSHRC[name] + "\nMINE=yes\n")

    async def work(session: Session) -> None:
        await check_marks(session)
        assert text_of(await run(session, "echo $MINE $FROM_ENV $ZDOTDIR")) == f"yes yes {home}"
        assert text_of(await run(session, "printf no-newline")) in ("no-newline", "bad", "bad no-newline")
        assert text_of(await run(session, "clear; echo cleared")) == "cleared"
        assert text_of(await run(session, "(echo sub; exit 3)")) == "sub"

    with_shell(places, "zsh", work, home)


FISH = {
    "nothing": "",
    "own prompt": "function fish_prompt; echo; echo (date +%s) $status '> '; end",
    "own events": "function e --on-event fish_postexec; false; end; function p --on-event fish_preexec; true; end",
    "right prompt": "function fish_right_prompt; echo right; end; function fish_greeting; end",
    "vi mode": "fish_vi_key_bindings",
}


@pytest.mark.parametrize("name", FISH)
def test_fish_keeps_its_marks_whatever_the_configuration_does(places: Places, name: str) -> None:
    home = make_home(places.state.parent, config__fish__config_fish="")
    folder = Path(home) / ".config" / "fish"
    (folder / "config.fish").write_text(FISH[name] + "\nset -g MINE yes\n")

    async def work(session: Session) -> None:
        await check_marks(session)
        assert text_of(await run(session, "echo $MINE")) == "yes"
        assert text_of(await run(session, "clear; echo cleared")) == "cleared"

    with_shell(places, "fish", work, home)


@each_shell
def test_options_set_while_it_runs_do_not_break_the_marks(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        if shell == "fish":
            await run(session, "function fish_prompt; echo 'new> '; end")
            await check_marks(session)
            return
        await run(session, "PS1='new> '")
        await check_marks(session)
        await run(session, "set -u")
        await check_marks(session)
        await run(session, "set -x")
        traced = await run(session, "echo traced")
        assert traced.exit_code == 0 and "traced" in text_of(traced) and "__wsh" not in text_of(traced)
        await run(session, "set +x")
        await run(session, "exec 2>/dev/null 1>/dev/null")
        blind = await run(session, "echo unseen; sh -c 'exit 5'")
        assert (blind.finished_by, blind.exit_code, text_of(blind)) == ("command", 5, "")
        await run(session, "exec >/dev/tty 2>&1")
        await check_marks(session)
        await run(session, "set -e")
        assert text_of(await run(session, "echo careful")) == "careful"
        ended = await run(session, "false")
        assert (ended.finished_by, ended.exit_code) == ("exit", 1)

    with_shell(places, shell, work)


def test_a_shell_that_lost_our_hooks_falls_back_and_says_so(places: Places) -> None:
    async def work(session: Session) -> None:
        await check_marks(session)
        lost = await run(session, "unset PROMPT_COMMAND PS0; PS1='bare$ '")
        assert lost.finished_by == "prompt" and lost.exit_code is None
        assert (await run(session, "echo hi")).finished_by == "prompt"
        assert "hi" in (await screen(session)).split("\n")

    with_shell(places, "bash", work)


def test_a_startup_file_that_becomes_another_shell_costs_the_marks_and_nothing_else(places: Places) -> None:
    home = make_home(places.state.parent, bashrc="exec sh\n")

    async def work(session: Session) -> None:
        first = await run(session, "echo one")
        assert first.finished_by == "prompt" and first.exit_code is None
        assert (await session.look()).integration == "waiting"
        assert (await run(session, "echo two", timeout_ms=100)).finished_by == "prompt"
        assert "two" in (await screen(session)).split("\n")

    with_shell(places, "bash", work, home)


def test_login_shells_read_their_profile_and_keep_their_nature(places: Places) -> None:
    home = make_home(
        places.state.parent,
        bash_profile="PROFILE=bash\n",
        profile="PROFILE=sh\n",
        bashrc="RC=yes\n",
        zprofile="PROFILE=zsh\n",
        zshrc="RC=yes\n",
        zlogin="LOGIN=yes\n",
    )

    async def body(registry: SessionRegistry) -> None:
        bash = await open_shell(registry, "bash -l", home)
        await check_marks(bash)
        asked = "echo $PROFILE ${RC-none} ${ENV-none} $HISTFILE; shopt login_shell; set -o | grep posix"
        lines = text_of(await run(bash, asked)).split("\n")
        assert lines[0] == f"bash none none {home}/.bash_history"
        assert lines[1].split() == ["login_shell", "on"] and lines[2].split() == ["posix", "off"]
        assert text_of(await run(bash, "echo ${POSIXLY_CORRECT-none}")) == "none"
        kept = await open_shell(registry, "bash --login", home, {"ENV": "/mine"})
        assert text_of(await run(kept, "echo $ENV")) == "/mine"
        bare = await open_shell(registry, "bash -l --noprofile", home)
        assert text_of(await run(bare, "echo ${PROFILE-none}")) == "none"
        zsh = await open_shell(registry, "/bin/zsh -l", home)
        await check_marks(zsh)
        assert text_of(await run(zsh, "echo $PROFILE $RC $LOGIN $options[login]")) == "zsh yes yes on"

    run_with_registry(places, body)


def test_arguments_about_startup_files_are_kept(places: Places) -> None:
    home = make_home(places.state.parent, bashrc="RC=usual\n", other="RC=other\n")

    async def body(registry: SessionRegistry) -> None:
        other = await open_shell(registry, f"bash --rcfile {home}/.other", home)
        assert text_of(await run(other, "echo $RC")) == "other"
        none = await open_shell(registry, "bash --norc", home, {"PS1": "mine$ "})
        await check_marks(none)
        assert (
            text_of(await run(none, "echo ${RC-none} ${ENV-none}; set -o | grep posix"))
            == "none none\nposix          \toff".expandtabs()
        )
        assert any(str(line).startswith("mine$ echo") for line in none.terminal.screen(styled=False).lines)

    run_with_registry(places, body)


@each_shell
def test_the_command_line_and_folder_are_told_exactly(places: Places, shell: str) -> None:
    home = make_home(places.state.parent, bashrc="HISTCONTROL=ignorespace\n")
    odd = Path(home) / "ä b;c'd%20"
    odd.mkdir()

    async def work(session: Session) -> None:
        lines = [
            "echo 'a;b' \"c\" $HOME | cat # é 中",
            "  echo spaced",
            "echo 'semi;colon=x' \\; done",
            "printf '%s\\n' '\\e[0m' '%41'",
        ]
        for line in lines:
            await run(session, line)
        await run(session, f'cd "{odd}"')
        await run(session, "pwd")
        told = [command.command for command in session.history.list_commands()]
        assert [line.strip() for line in told[:4]] == [line.strip() for line in lines]
        assert session.history.list_commands()[-1].cwd == str(odd)
        assert session.cwd == str(odd)

    with_shell(places, shell, work, home)


def test_the_users_history_is_not_touched(places: Places) -> None:
    home = make_home(places.state.parent)

    async def work(session: Session) -> None:
        await run(session, "echo one")
        await run(session, "echo two")
        listed = text_of(await run(session, "history"))
        assert [line.split(None, 1)[1] for line in listed.split("\n")] == ["echo one", "echo two", "history"]

    with_shell(places, "bash", work, home)
