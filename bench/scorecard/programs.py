"""Real programs: full-screen ones beside tmux fed the same bytes, shells and prompts beside a plain run of the same commands."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from bench.scorecard.engine import Row, TmuxEngine, read_line
from bench.scorecard.outcome import compare_rows
from wsh.session.event import Actor
from wsh.session.record.journal import Journal
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import SessionExited, WaitTimeout, WshError
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

ROWS, COLS = 24, 80
AGENT = Actor("agent", "scorecard")
Result = TypeVar("Result")
ESC, DOWN, RIGHT = "\x1b", "\x1b[B", "\x1b[C"


@dataclass(frozen=True)
class Program:
    """How to start it in a folder with some files, and the keys that are pressed, with a pause after each."""

    name: str
    command: str
    keys: tuple[str, ...] = ()


PROGRAMS = (
    Program("vim", "vim --clean -n -c 'syntax on' -c 'set number' demo.py", ("10G", "ohello\x1b", ":vsplit\r", "\x04")),
    Program("neovim", "nvim --clean -n demo.py", ("10G", "ohello\x1b", ":split\r")),
    Program("nano", "nano -I note.txt", ("hello é日\r\tindented", "\x0f")),
    Program("micro", "micro -config-dir . demo.py", (DOWN, "typed", "\x05")),
    Program("joe", "joe demo.py", (DOWN, "typed", "\x0bh")),
    Program("jed", "jed demo.py", (DOWN, "typed")),
    Program("mg", "mg demo.py", (DOWN, "typed", "\x18" + "2")),
    Program("ne", "ne demo.py", (DOWN, "typed")),
    Program("kakoune", "kak -n demo.py", ("ohello\x1b", "%", ":")),
    Program("less", "less -R -N long.txt", (" ", "/line 17\r", "kkkG")),
    Program("most", "most long.txt", (" ", "b", "G")),
    Program("more", "more long.txt", (" ", " ")),
    Program("man", "man tmux", (" ", "/session\r")),
    Program("htop", "htop -d 20", (DOWN, ESC + "[15~")),
    Program("top", "top -d 3", ("1", "c")),
    Program("btop", "btop --utf-force", ("m",)),
    Program("atop", "atop 3", ("m",)),
    Program("nmon", "nmon", ("c", "m")),
    Program("watch", "watch -n 2 -d date"),
    Program("slabtop", "slabtop -d 3"),
    Program("vifm", "vifm . .", ("j", "v", "w")),
    Program("ranger", "ranger --clean .", ("j", "i")),
    Program("nnn", "nnn .", (DOWN, "d")),
    Program("lf", "lf .", ("j", " ")),
    Program("mc", "mc -x . .", (DOWN, "\x1b3")),
    Program("ncdu", "ncdu -0 /usr/share/doc", (DOWN, "g")),
    Program("tig", "tig", ("\r", "j")),
    Program("dialog", "dialog --title Question --checklist 'Which ones?' 15 50 5 a alpha on b beta off c gamma on", (DOWN, " ", "\t")),
    Program("whiptail", "whiptail --title Question --menu 'Which one?' 15 50 5 a alpha b beta c gamma", (DOWN, "\t")),
    Program("lynx", "lynx page.html", (DOWN, DOWN)),
    Program("w3m", "w3m page.html", ("\t", "j")),
    Program("links", "links page.html", (DOWN,)),
    Program("elinks", "elinks -no-connect 1 page.html", (DOWN,)),
    Program("irssi", "irssi --home=. -n someone", ("/help\r",)),
    Program("calcurse", "calcurse -D .", ("\t", "?")),
    Program("sc", "sc", ("=1+2\r", DOWN, '<"text"\r')),
    Program("newsboat", "newsboat -u urls -c cache.db -x print-unread; newsboat -u urls -c cache.db", ("?",)),
    Program("mutt", "mutt -n -F /dev/null -f mbox", ("\r", "q")),
    Program("hexedit", "hexedit demo.py", (DOWN, "\t", RIGHT)),
    Program("fzf", "fzf --no-mouse < long.txt", ("17", DOWN)),
    Program("screen", "screen -c /dev/null sh", ("echo inside\r", "\x01?")),
    Program("tmux", "tmux -S ./inner -f inner.conf new-session -s inner", ("echo left\r", "\x02%", "seq 40\r")),
    Program("multitail", "multitail demo.py long.txt", ("h",)),
    Program("lnav", "lnav -n demo.py; lnav long.txt", ("j", "?")),
    Program("gdb with its text interface", "gdb -q -nx -tui -ex 'tui enable' /bin/true", ("help\r",)),
    Program("cmatrix", "cmatrix -s -u 9"),
    Program("tty-clock", "tty-clock -s -c"),
    Program("nudoku", "/usr/games/nudoku", ("j", "5")),
    Program("ninvaders", "/usr/games/ninvaders", (" ", "l")),
    Program("worm", "/usr/games/worm", ("l", "j")),
    Program("tetris-bsd", "/usr/games/tetris-bsd", ("l", "k")),
    Program("sl", "/usr/games/sl; echo gone; cat"),  # it clears its screen when it ends
    Program("moon-buggy", "/usr/games/moon-buggy", (" ",)),
    Program("aptitude", "aptitude", (DOWN, "\r")),
    Program("cbonsai", "/usr/games/cbonsai -p -s 7"),
    Program("python", f"{sys.executable} -q", ("for i in range(30): print(i, '\\x1b[1;31mred\\x1b[0m', '中' * (i % 5))\r\r", "1/0\r")),
    Program("python curses", f"{sys.executable} -S paint.py"),
    Program("seq and cat", "seq 3000; cat"),
    Program("dmesg of colours", "sh colours.sh; cat"),
)  # fmt: skip

_PAINT = """import curses
def main(screen):
    curses.start_color(); curses.use_default_colors()
    for n in range(1, 8): curses.init_pair(n, n, -1)
    for n in range(20): screen.addstr(n, n, f"line {n} \\u65e5\\u672c", curses.color_pair(n % 7 + 1) | (curses.A_BOLD if n % 2 else 0))
    screen.box(); screen.refresh(); screen.getch()
curses.wrapper(main)
"""


@dataclass(frozen=True)
class Prompt:
    """A shell with startup files of its own."""

    name: str
    command: str
    plain: tuple[str, ...]
    """The shell that runs the same line without a terminal."""
    startup: dict[str, str] = field(default_factory=dict)
    """Files in its home."""
    lines: tuple[str, ...] = (
        "echo hello",
        "false",
        "printf 'a\\nb\\n'; (exit 7)",
        "seq 3 | tail -n 1",
        "cd /usr && pwd",
    )


_PREEXEC = """
__bp_in=0
__bp_preexec() { [ "$__bp_in" = 0 ] && return; case "$BASH_COMMAND" in __bp_*) return;; esac; __bp_last=$BASH_COMMAND; }
__bp_precmd() { __bp_in=0; __bp_status=$?; }
PROMPT_COMMAND="__bp_precmd${PROMPT_COMMAND:+;$PROMPT_COMMAND};__bp_in=1"
trap '__bp_preexec "$_"' DEBUG
PS1='pre \\W \\$ '
"""
_POWERLINE = "_line() { PS1='\\[\\e[48;5;31;38;5;231m\\] \\u \\[\\e[48;5;240;38;5;31m\\]\ue0b0\\[\\e[38;5;250m\\] \\w \\[\\e[0;38;5;240m\\]\ue0b0\\[\\e[0m\\] '; }; PROMPT_COMMAND=_line\n"
_OH_MY_ZSH = """setopt prompt_subst; autoload -Uz add-zsh-hook vcs_info colors; colors
_title() { print -Pn '\\e]0;%n@%m: %~\\a'; }
add-zsh-hook precmd vcs_info; add-zsh-hook precmd _title; add-zsh-hook preexec _title
PROMPT='%{$fg_bold[green]%}➜  %{$fg[cyan]%}%c%{$reset_color%} ${vcs_info_msg_0_} '
RPROMPT='[%*]'
"""
_TWO_LINES = "PS1='\\[\\e[32m\\]┌─[\\u@\\h]─[\\w]\\n└─\\$\\[\\e[0m\\] '\n"
_BASH, _ZSH, _FISH = ("bash", "-c"), ("zsh", "-fc"), ("fish", "--no-config", "-c")
_FISH_LINES = ("echo hello", "false", "printf 'a\\nb\\n'; sh -c 'exit 7'", "seq 3 | tail -n 1", "cd /usr && pwd")
_OTHER = ("echo hello", "seq 3 | tail -n 1")

PROMPTS = (
    Prompt("bash", "bash", _BASH),
    Prompt("bash, vi mode", "bash", _BASH, {".bashrc": "set -o vi\nPS1='vi $ '\n"}),
    Prompt("bash, DEBUG trap", "bash", _BASH, {".bashrc": "trap 'last=$BASH_COMMAND' DEBUG\n"}),
    Prompt("bash, hooks in the way of bash-preexec", "bash", _BASH, {".bashrc": _PREEXEC}),
    Prompt("bash, a prompt in the way of powerline", "bash", _BASH, {".bashrc": _POWERLINE}),
    Prompt("bash, a prompt of two lines", "bash", _BASH, {".bashrc": _TWO_LINES}),
    Prompt("bash, direnv", "bash", _BASH, {".bashrc": 'eval "$(direnv hook bash)"\n'}),
    Prompt("bash, login", "bash -l", _BASH, {".bash_profile": "PS1='login $ '\n"}),
    Prompt("bash, set -u and PROMPT_COMMAND as a list", "bash", _BASH, {".bashrc": "set -u\nPROMPT_COMMAND=(true 'echo -n')\n"}),
    Prompt("zsh", "zsh", _ZSH, {".zshrc": "PROMPT='z %% '\n"}),
    Prompt("zsh, vi mode", "zsh", _ZSH, {".zshrc": "bindkey -v\nPROMPT='vi %% '\n"}),
    Prompt("zsh, hooks and a prompt in the way of oh-my-zsh", "zsh", _ZSH, {".zshrc": _OH_MY_ZSH}),
    Prompt("zsh, direnv", "zsh", _ZSH, {".zshrc": 'eval "$(direnv hook zsh)"\n'}),
    Prompt("fish", "fish", _FISH, {}, _FISH_LINES),
    Prompt("fish, vi mode", "fish", _FISH, {".config/fish/config.fish": "fish_vi_key_bindings\n"}, _FISH_LINES),
    Prompt("dash", "dash", ("dash", "-c"), {}, _OTHER),
    Prompt("mksh", "mksh", ("mksh", "-c"), {}, _OTHER),
    Prompt("ksh", "ksh", ("ksh", "-c"), {}, _OTHER),
    Prompt("yash", "yash", ("yash", "-c"), {}, _OTHER),
    Prompt("tcsh", "tcsh -f", ("tcsh", "-fc"), {}, _OTHER),
    Prompt("elvish", "elvish -norc", ("elvish", "-norc", "-c"), {}, _OTHER),
)  # fmt: skip


def run() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    tmux = TmuxEngine()
    try:
        for program in PROGRAMS:
            rows.append({"kind": "full screen", "name": program.name, **_try(lambda p=program: run_program(p, tmux))})  # type: ignore[misc]
            print(f"· {rows[-1]}", file=sys.stderr, flush=True)
    finally:
        tmux.close()
    for prompt in PROMPTS:
        rows.append({"kind": "shell", "name": prompt.name, **_try(lambda p=prompt: run_prompt(p))})  # type: ignore[misc]
        print(f"· {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def _try(work: Callable[[], dict[str, str]]) -> dict[str, str]:
    try:
        return work()
    except (OSError, WshError, subprocess.SubprocessError) as problem:
        return {"holds": "no", "detail": f"{type(problem).__name__}: {problem}"[:200]}


def run_program(program: Program, tmux: TmuxEngine) -> dict[str, str]:
    word = program.command.split()[0].rstrip(";")
    if shutil.which(word) is None:
        return {"holds": "not installed", "detail": ""}

    async def drive(registry: SessionRegistry, home: Path) -> tuple[list[Row], tuple[int, int], bytes]:
        work = home / "work"
        prepare(work)
        spec = SessionSpec(command=program.command, cwd=str(work), rows=ROWS, cols=COLS, env={"HOME": str(work)})
        session = await registry.open_session(spec)
        await _settle(session, 700, 8000, 0)
        await _wait_until_painted(session)
        for keys in program.keys:
            before = session.generation
            try:
                await session.input.send(keys.encode(), AGENT)
            except SessionExited:
                break  # what it left on the screen is compared as well
            await _settle(session, 250, 1500, before)
        await _wait_until_painted(session)
        # No await between these: they belong to one offset.
        rows = [read_line(line) for line in session.terminal.screen(True).lines]
        cursor, end = session.terminal.screen(False).cursor, session.generation
        journal = Journal(session.folder.path)
        await asyncio.to_thread(_wait_until_written, journal, end)
        return rows, (cursor.row, cursor.col), journal.read_bytes(0, end)[0]

    rows, cursor, data = with_registry(drive)
    subprocess.run(["tmux", "-S", "./inner", "kill-server"], check=False, capture_output=True)
    tmux.open(ROWS, COLS)
    tmux.feed(data)
    outcome = compare_rows(rows, tmux.show(), coloured_blanks=False)
    if outcome.passed is not True:
        return {"holds": "no", "detail": outcome.detail}
    if tmux.cursor() != cursor:
        return {"holds": "no", "detail": f"cursor at {cursor}, in tmux at {tmux.cursor()}"}
    seen = sum(1 for row in rows if row)
    return {"holds": "yes" if seen else "no", "detail": "" if seen else "an empty screen"}


async def _settle(session: Session, quiet_ms: int, most_ms: int, generation: int) -> None:
    """Until it is silent after something new; programs that never rest, or do not answer a key, get `most_ms`."""
    try:
        await session.wait(WaitSpec(quiet_ms=quiet_ms, max_wait_ms=most_ms, generation=generation))
    except (WaitTimeout, SessionExited):
        return


async def _wait_until_painted(session: Session) -> None:
    """A program that asks the terminal things first, and then loads for long from a cold disk, shows nothing until then."""
    for _ in range(20):
        if not session.running or any(session.terminal.screen(False).lines):
            return
        await _settle(session, 700, 3000, session.generation)


def _wait_until_written(journal: Journal, end: int) -> None:
    deadline = time.monotonic() + 60
    while journal.end < end and time.monotonic() < deadline:
        time.sleep(0.02)


def prepare(work: Path) -> None:
    work.mkdir()
    (work / "demo.py").write_text("".join(f"def f{n}(x):  # {n}\n    return 'é日本' + x * {n}\n" for n in range(40)))
    (work / "long.txt").write_text("".join(f"line {n} \x1b[3{n % 8}mcolour\x1b[0m é中\n" for n in range(300)))
    (work / "page.html").write_text(
        "<h1>Title é日</h1><p>Some <b>bold</b> and <i>italic</i> text, a <a href='page.html'>link</a>.</p><ul>"
        + "".join(f"<li><a href='#{n}'>item {n}</a></li>" for n in range(20))
        + "</ul><table border=1><tr><td>a</td><td>b</td></tr></table>"
    )
    (work / "mbox").write_text(
        "From a@example.org Mon Nov 16 10:00:00 2026\nFrom: a@example.org\nSubject: first é\n\nhello\n\n"
    )
    (work / "urls").write_text(f"file://{work}/page.html\n")
    (work / "inner.conf").write_text("set -g status-right right\nset -g default-command sh\nset -g status-interval 0\n")
    (work / "paint.py").write_text(_PAINT)
    (work / "colours.sh").write_text(
        "for n in $(seq 0 255); do printf '\\033[48;5;%dm%4d' $n $n; done; printf '\\033[0m\\n\\033[1;4;9mend\\033[0m\\n'\n"
    )
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "demo.py"], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(work), *words], check=False, capture_output=True, env=environ)


def _run_plainly(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, check=False, capture_output=True, text=True, cwd="/", env={**os.environ, **env}, stdin=subprocess.DEVNULL
    )


def run_prompt(prompt: Prompt) -> dict[str, str]:
    needed = [prompt.command.split()[0], *(["direnv"] if "direnv" in prompt.name else [])]
    missing = [word for word in needed if shutil.which(word) is None]
    if missing:
        return {"holds": "not installed", "detail": ", ".join(missing)}

    async def drive(registry: SessionRegistry, home: Path) -> list[str]:
        for name, text in prompt.startup.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        env = {"HOME": str(home), "ZDOTDIR": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "LC_ALL": "C.UTF-8"}
        session = await registry.open_session(SessionSpec(command=prompt.command, cwd="/", env=env))
        problems = []
        for line in prompt.lines:
            plain = await asyncio.to_thread(_run_plainly, [*prompt.plain, line], env)
            told = await session.run_command(line, AGENT, timeout_ms=600, max_wait_ms=30_000)
            if told.finished_by != "command":
                screen = "\n".join(str(row) for row in session.terminal.screen(False).lines)
                if plain.stdout.strip() not in screen:
                    problems.append(f"{line}: {plain.stdout!r} is not on the screen")
                continue
            output = "" if told.output is None else told.output.text
            wanted = (plain.stdout + plain.stderr).rstrip("\n")
            if (told.exit_code, output.rstrip("\n")) != (plain.returncode, wanted):
                problems.append(f"{line}: {told.exit_code} {output!r} instead of {plain.returncode} {wanted!r}")
        if told.finished_by != "command":
            problems.append("status unknown, and said so")
        return problems

    problems = with_registry(drive)
    if problems == ["status unknown, and said so"]:
        return {
            "holds": "output",
            "detail": "this shell tells no end of a command: it is found by silence, and the result says so",
        }
    return {"holds": "no" if problems else "yes", "detail": "; ".join(problems)[:300]}


def with_registry(work: Callable[[SessionRegistry, Path], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            folder = Path(home)
            (folder / "run").mkdir(mode=0o700)
            places = find_places({"HOME": home, "XDG_RUNTIME_DIR": str(folder / "run")})
            registry = await SessionRegistry.open(places, load(None, {}))
            try:
                return await work(registry, folder)
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())
