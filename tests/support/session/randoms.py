"""Random commands, and what they do without us: the same text given to the same shell on a plain pty.

Both sides are normalised alike: the raw bytes go through the same renderer, and lines about jobs that only an interactive
shell prints are left out.
"""

from __future__ import annotations

import asyncio
import os
import pty
import random
import re
import signal
import struct
import tempfile
import termios
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fcntl import ioctl
from pathlib import Path

from tests.support.session.shells import AGENT
from wsh.session.command.output import render
from wsh.session.session import Session

PLAIN = {
    "bash": ("bash", "--norc", "--noprofile", "-c"),
    "zsh": ("zsh", "-f", "-c"),
    "fish": ("fish", "--no-config", "-c"),
}
WRONG_FILE = Path(
    os.environ.get("WSH_TRUTH_WRONG") or Path(tempfile.gettempdir(), f"wsh-truth-wrong-{os.getuid()}.txt")
)
"""Where each wrong result is written at the moment it is seen."""
_PLAIN_RUNS = 5
_JOB = re.compile(r"^\[\d+\]")
_ODD = 'a b  c ; | & < > ( ) { } [ ] * ? ~ % ^ = , : @ / - _ + . 0 9 é ß 中文 🙂 Ω \u0301 $x `y` \\ \\n \\\\ # " !'


@dataclass
class Comparison:
    """How many agreed, and those that did not."""

    compared: int = 0
    cut: int = 0
    """Where the plain run itself lacked its end: the last words of a terminal's first program can go with the terminal."""
    wrong: list[str] = field(default_factory=list)

    def add_wrong(self, what: str) -> None:
        """Also to the end of `WRONG_FILE` at once: a campaign takes hours and may be cut off before it tells."""
        self.wrong.append(what)
        with WRONG_FILE.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{datetime.now().isoformat(timespec='seconds')} {what}\n")


def run_plain(shell: str, text: str, rows: int, cols: int, env: dict[str, str]) -> tuple[int, bytes]:
    """Exit code and raw output on a pty of that size."""
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover
        try:
            os.chdir("/")
            # Python ignores the one, nohup the other, and children would too.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.execvpe(PLAIN[shell][0], [*PLAIN[shell], text], env)
        finally:
            os._exit(126)
    ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    out = bytearray()
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    # Only then close it: a shell whose terminal goes away while it ends would die of that instead.
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return code, bytes(out)


async def compare(
    session: Session, shell: str, seed: int, count: int, env: dict[str, str], *, clear_line: bool = False
) -> Comparison:
    """Run `count` random commands in the session and beside it."""
    dice = random.Random(seed)
    result = Comparison()
    for number in range(count):
        text = random_command(dice, shell)
        beside = asyncio.create_task(asyncio.to_thread(run_plain, shell, text, session.rows, session.cols, env))
        outcome = await session.run_command(
            text, AGENT, max_wait_ms=60_000, max_output_bytes=1 << 30, clear_line=clear_line
        )
        code, raw = await beside
        got = normalise(outcome.output.text if outcome.output is not None else "<none>")
        expected = await _shown(raw, session)
        for _ in range(_PLAIN_RUNS):
            if got == expected:
                break
            _, again = await asyncio.to_thread(run_plain, shell, text, session.rows, session.cols, env)
            if len(again) > len(raw) and again.startswith(raw):
                raw, expected, result.cut = again, await _shown(again, session), result.cut + 1
        result.compared += 1
        if outcome.finished_by != "command" or outcome.exit_code != code or got != expected:
            result.add_wrong(
                f"{shell} seed {seed} number {number}: {text[:600]!r}\n"
                f"  ended {outcome.finished_by} {outcome.exit_code}, expected {code}\n"
                f"  got {got[-300:]!r}\n  expected {expected[-300:]!r}"
            )
    return result


async def _shown(raw: bytes, session: Session) -> str:
    return normalise((await render(raw, session.rows, session.cols, 1 << 30)).text)


def normalise(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _JOB.match(line)).strip("\n")


# commands


def random_command(dice: random.Random, shell: str) -> str:
    kind = dice.random()
    if kind < 0.04:
        return dice.choice(_LONG)(dice)
    if kind < 0.16:
        lines = [_line(dice, shell, jobs=False) for _ in range(dice.randint(2, 4))]
        return "\n".join(lines)
    if kind < 0.28:
        return _block(dice, shell)
    return _line(dice, shell)


_LONG: tuple[Callable[[random.Random], str], ...] = (
    lambda dice: f"seq 1 {dice.randint(10_000, 150_000)}",
    lambda dice: (
        f"head -c {dice.randint(100_000, 1_000_000)} /dev/zero | tr '\\0' 'x'; sh -c 'exit {dice.randint(0, 9)}'"
    ),
    lambda dice: f"yes '{_safe(dice)}' | head -n {dice.randint(1000, 60_000)}",
    lambda dice: f"seq 1 {dice.randint(1000, 9000)} | sed 's/.*/\x1b[3&m&/' | cut -c1-60".replace("\x1b", "\\x1b"),
)


def _line(dice: random.Random, shell: str, *, jobs: bool = True) -> str:
    parts = [_simple(dice, shell)]
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2, 4))):
        join = dice.choice(("; ", " && ", " || ", " | cat; ", "; "))
        if shell == "fish":
            join = dice.choice(("; ", " && ", " || ", "; "))
        parts.append(join + _simple(dice, shell))
    line = "".join(parts)
    roll = dice.random()
    if shell != "fish" and roll < 0.08:
        return f"({line})"
    if shell != "fish" and roll < 0.14:
        return f"{{ {line}; }}"
    if shell == "fish" and roll < 0.1:
        return f"begin; {line}; end"
    if shell != "fish" and roll < 0.2 and jobs:
        return f"{{ sleep 0.05; {line}; echo; }} & wait $!"
    return line


def _simple(dice: random.Random, shell: str) -> str:
    return dice.choice(_SIMPLE)(dice, shell)


def _quoted(dice: random.Random, shell: str) -> str:
    words = _ODD.split(" ")
    text = dice.choice((" ", "", "  ")).join(dice.choice(words) for _ in range(dice.randint(0, 12)))
    if dice.random() < 0.05:
        text = text * dice.randint(5, 40)
    style = dice.random()
    if style < 0.6:
        return _single(text, shell)
    if style < 0.8:
        safe = text.replace("\\", "").replace("!", "")
        return '"' + safe.replace('"', '\\"').replace("$", "\\$").replace("`", "`" if shell == "fish" else "\\`") + '"'
    return dice.choice((_safe(dice), _single(text, shell) + _safe(dice)))


def _single(text: str, shell: str) -> str:
    if shell == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def _safe(dice: random.Random) -> str:
    return "".join(dice.choice("abcxyzABC0189_./:,+-é中") for _ in range(dice.randint(1, 12))).lstrip("-+") or "w"


_FORMATS = ("%s", r"%s\n", r"<%s>\n", "%s ", r"\t%s\n")


def _printf(dice: random.Random, shell: str) -> str:
    arguments = " ".join(_quoted(dice, shell) for _ in range(dice.randint(1, 3)))
    return f"printf '{dice.choice(_FORMATS)}' {arguments}"


def _escapes(dice: random.Random, shell: str) -> str:
    pieces = (
        r"\033]133;D;0\007",
        r"\033]133;A\007\033]133;B\007\033]133;C\007",
        r"\033]133;D;1;wsh=12.34;n=99\007",
        r"\033]133;B;wsh\007",
        r"\033[31mred\033[0m",
        r"\033[1;4;38;5;99mstyle\033[m",
        r"\033]0;title\007",
        r"\033]7;file://host/x\007",
        r"back\b\b\bspace",
        r"over\rwritten",
        r"\033[2Kgone\r",
        r"\033[5Cmoved",
        r"\tta\tb",
        r"\033[?25l\033[?25h",
        r"\033[?1049hhidden\033[?1049l",
        r"\033P1;2|dcs\033\\",
        r"\007",
        r"plain words",
        r"\n",
    )
    text = "".join(dice.choice(pieces) for _ in range(dice.randint(1, 6)))
    return f"printf '{text}{dice.choice(('', chr(92) + 'n'))}'"


_SIMPLE: tuple[Callable[[random.Random, str], str], ...] = (
    lambda dice, shell: "echo " + " ".join(_quoted(dice, shell) for _ in range(dice.randint(0, 4))),
    _printf,
    _printf,
    _escapes,
    _escapes,
    lambda dice, shell: f"sh -c 'exit {dice.randint(0, 255)}'",
    lambda dice, shell: dice.choice(("true", "false")),
    lambda dice, shell: f"printf '%s\\n' {_quoted(dice, shell)} >&2",
    lambda dice, shell: f"echo {_quoted(dice, shell)} | tr a-z A-Z",
    lambda dice, shell: f"printf '%s\\n' b a c | sort | sed -n 1,{dice.randint(1, 3)}p",
    lambda dice, shell: f"seq 1 {dice.randint(1, 60)}",
    lambda dice, shell: (
        f"sh -c 'sleep 0.0{dice.randint(0, 2)}; echo {_safe(dice)}; "
        f'sh -c "kill -{dice.choice((1, 9, 15))} \\$\\$"; echo $?\' 2>/dev/null'
    ),
    lambda dice, shell: "sh -c '(sleep 0.01; :) & echo started'",
    lambda dice, shell: "sh -c 'cd /tmp && pwd'",
    lambda dice, shell: "ls /nonexistent-folder 2>&1 | wc -l",
)


def _block(dice: random.Random, shell: str) -> str:
    body = "; ".join(_simple(dice, shell) for _ in range(dice.randint(1, 3)))
    if shell == "fish":
        return dice.choice(
            (
                f"for i in 1 2 3\n  {body}\n  echo $i\nend",
                f"if true\n  {body}\nelse\n  echo no\nend",
                f"begin\n  {body}\nend 2>&1 | cat",
                f"switch x\ncase x\n {body}\nend",
            )
        )
    words = "\n".join(_quoted(dice, shell).strip("'\"") for _ in range(dice.randint(0, 5)))
    return dice.choice(
        (
            f"for i in 1 2 3; do\n  {body}\n  echo $i\ndone",
            f"if true; then\n  {body}\nelse\n  echo no\nfi",
            f"while :; do {body}\nbreak\ndone",
            f"case x in\nx) {body};;\nesac",
            f"cat <<'END OF IT'\n{words}\nEND OF IT",
            f"cat <<'E' | tr a-z A-Z\n{words}\nE",
            f"{{\n{body}\n}}",
            f"f() {{\n{body}\n}}; f",
            f"echo one \\\n  two {_quoted(dice, shell)}",
            f"echo 'first line\nsecond {_safe(dice)}\n'",
        )
    )
