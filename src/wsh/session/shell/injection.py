"""Giving a shell that wsh starts its marks, without touching a file of the user's.

`plan_injection` looks at what is to be started. Where that is an interactive bash, zsh or fish it says which arguments and
variables change and what the shell finds on descriptor 9; otherwise it says nothing, and the session falls back to
quiescence. The nonce travels on that descriptor alone: arguments, environment and listings of variables never hold it. The
scripts themselves are in `integration/`.
"""

from __future__ import annotations

import os

from wsh.wire.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:  # `wsh shell-integration` imports this, and is a short command
    from collections.abc import Mapping, Sequence
    from typing import Literal, TypeAlias

    ShellName: TypeAlias = Literal["bash", "zsh", "fish"]
else:
    ShellName = str

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "integration")
NONCE_FD = 9


@frozen
class Injection:
    """What to start instead, and the secret that its marks will carry."""

    shell: ShellName
    argv: tuple[str, ...]
    env: dict[str, str]
    content: str
    """To be readable on descriptor 9."""
    nonce: str


def plan_injection(argv: Sequence[str], executable: str, env: Mapping[str, str]) -> Injection | None:
    """How to start `argv` with marks, or None if it is no shell of ours, or not an interactive one."""
    name = os.path.basename(argv[0]).removeprefix("-")
    actual = os.path.basename(os.path.realpath(executable))
    if name == "bash" and actual.startswith("bash"):
        return _bash(argv, env)
    if name == "zsh" and actual.startswith("zsh"):
        return _zsh(argv, env)
    if name == "fish" and actual.startswith("fish"):
        return _fish(argv, env)
    return None


# Single letters that `set` knows and that leave bash interactive.
_BASH_FLAGS = frozenset("abefhkmptuvxBCEHPTil")


def _bash(argv: Sequence[str], env: Mapping[str, str]) -> Injection | None:
    login = argv[0].startswith("-")
    rcfile, profile = "", True
    long: list[str] = []
    short: list[str] = []
    words = iter(argv[1:])
    for word in words:
        if word in ("-l", "--login"):
            login = True
        elif word == "--norc":
            rcfile = "-"
        elif word == "--noprofile":
            profile = False
        elif word in ("--rcfile", "--init-file"):
            given = next(words, None)
            if given is None:
                return None
            rcfile = given
        elif word in ("--noediting", "--verbose"):
            long.append(word)
        elif word in ("-o", "+o", "-O", "+O"):
            option = next(words, None)
            if option is None or option == "posix":
                return None
            short += [word, option]
        elif len(word) > 1 and word[0] in "-+" and set(word[1:]) <= _BASH_FLAGS:
            if word[0] == "+" and "i" in word:
                return None
            login = login or "l" in word
            short.append(word)
        else:
            return None
    # Each pair of numbers gives one half of the nonce by xor: what the shell keeps in variables is not the nonce.
    halves = [_random(), _random()]
    masks = [_random(), _random()]
    numbers = [halves[0] ^ masks[0], masks[0], halves[1] ^ masks[1], masks[1]]
    script = os.path.join(SCRIPTS, "bash.sh")
    changed = dict(env)
    if login:
        # `-l` ignores --rcfile; in POSIX mode the file that ENV names is read, and the script undoes both.
        start, file = "login", "" if profile else "-"
        changed["ENV"] = script
        new = (argv[0], "--posix", *long, *(["-l"] if not argv[0].startswith("-") else []), *_without_login(short))
    elif rcfile == "-":
        # With --rcfile a bash of Debian's would read the system's file, which --norc forbids as well.
        start, file = "posix", "-"
        changed["ENV"] = script
        new = (argv[0], "--posix", *long, *short)
    else:
        start, file = "rc", rcfile
        new = (argv[0], "--rcfile", script, *long, *short)
    user_env = "+" + env["ENV"] if "ENV" in env else "-"
    content = _fields(*numbers, start, file, user_env)
    return Injection("bash", new, changed, content, f"{halves[0]}.{halves[1]}")


def _without_login(short: Sequence[str]) -> list[str]:
    kept = [word.replace("l", "") if word[0] in "-+" and word not in ("-o", "-O") else word for word in short]
    return [word for word in kept if word not in ("-", "+")]


_ZSH_FLAGS = frozenset("il")


def _zsh(argv: Sequence[str], env: Mapping[str, str]) -> Injection | None:
    words = iter(argv[1:])
    for word in words:
        if word in ("--login", "--interactive"):
            continue
        if word in ("-o", "+o"):
            option = next(words, None)
            # Without startup files ours would not be read either.
            if option is None or option.replace("_", "").lower() in ("norcs", "rcs", "shinstdin"):
                return None
        elif not (len(word) > 1 and word[0] == "-" and set(word[1:]) <= _ZSH_FLAGS):
            return None
    nonce = _nonce()
    home = "+" + env["ZDOTDIR"] if "ZDOTDIR" in env else "-"
    changed = dict(env) | {"ZDOTDIR": os.path.join(SCRIPTS, "zsh")}
    return Injection("zsh", tuple(argv), changed, _fields(nonce, home), nonce)


def _fish(argv: Sequence[str], env: Mapping[str, str]) -> Injection | None:
    for word in argv[1:]:
        long = word in ("--login", "--interactive", "--no-config", "--private")
        if not long and not (len(word) > 1 and word[0] == "-" and set(word[1:]) <= frozenset("ilNP")):
            return None
    nonce = _nonce()
    script = os.path.join(SCRIPTS, "wsh.fish").replace("\\", "\\\\").replace("'", "\\'")
    new = (*argv, "--init-command", f"source '{script}'")
    cut = len(nonce) // 3
    return Injection("fish", new, dict(env), f"{nonce[cut:]}\x1e{nonce[:cut]}", nonce)


def _nonce() -> str:
    return f"{_random()}.{_random()}"


def _random() -> int:
    """62 bits that nobody can guess."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def _read_script(name: str) -> str:
    with open(os.path.join(SCRIPTS, name), encoding="utf-8") as file:
        return file.read()


def _fields(*values: object) -> str:
    return "".join(f"{value}\0" for value in values)


def write_by_hand(shell: ShellName) -> str:
    """A script for a shell that runs already, inside of a session: sourced there, it tells prompts and commands as well.

    It introduces itself to the server with a nonce of its own, which is in the script; every call makes a new one.
    """
    nonce = _nonce()
    introduce = f"printf '\\033]133;I;wsh=%s.%s;shell={shell}\\007' {nonce.replace('.', ' ')} >/dev/tty"
    if shell == "bash":
        halves = [int(half) for half in nonce.split(".")]
        masks = [_random(), _random()]
        numbers = [halves[0] ^ masks[0], masks[0], halves[1] ^ masks[1], masks[1]]
        fields = " ".join(str(number) for number in numbers)
        body = _read_script("bash.sh")
        return f"unset __wsh\nexec 9< <(printf '%s\\0' {fields} rc - -)\n{body}{introduce}\n"
    if shell == "zsh":
        body = _read_script("zsh/.zshenv")
        body = body[: body.rindex("\nif [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]")]
        home = "if [[ -n ${ZDOTDIR+x} ]]; then builtin printf '+%s\\0' \"$ZDOTDIR\"; else builtin printf '%s\\0' -; fi"
        return f"exec 9< <(builtin printf '%s\\0' {nonce}; {home})\n{body}\n{introduce}\n"
    body = _read_script("wsh.fish")
    cut = len(nonce) // 3
    read = "    read -z -d \\x1e __wsh_a __wsh_b </dev/fd/9\n"
    assert read in body
    body = body.replace(read, f"    set __wsh_a {nonce[cut:]}\n    set __wsh_b {nonce[:cut]}\n")
    return f"set -e __wsh_n\n{body}{introduce}\n"
