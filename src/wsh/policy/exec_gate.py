"""The simple gate in front of `execute_command`: programs by name, folders by root.

`ALLOWED_COMMANDS` is comma-separated, `*` means all, unset means none. `ALLOWED_CWD_ROOTS` limits a `cwd` that a
caller gives. No shell: the command is split into literal words. Decides only; running is somebody else's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wsh.policy.parse.hygiene import find_argv_fault, find_fault
from wsh.policy.parse.lexer import Broken, NotLiteral, lex
from wsh.policy.parse.shell import TooComplicated
from wsh.policy.risk.assess import CommandSetting, assess_argv
from wsh.policy.rule.rule import is_within
from wsh.policy.verdict import Risk, RiskReason

NO_SHELL_HINT = (
    "This tool runs one program without a shell: no pipes, redirections, variables, globs or command lists. "
    "Quote special characters, or call the tool once per program."
)
Fault = Literal["invalid", "forbidden", "missing", "misconfigured"]


class GateRefusal(Exception):
    """The gate says no. `fault` is the kind, `message` and `hint` are for the caller."""

    def __init__(self, fault: Fault, reason: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.reason = reason
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class ExecGate:
    commands: tuple[tuple[str, ...], ...] = ()
    """Permitted argv prefixes; usually one word each."""
    everything: bool = False
    roots: tuple[str, ...] = ()
    """As configured; resolved anew for each request, since links and folders change."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ExecGate:
        entries = [part.strip() for part in environ.get("ALLOWED_COMMANDS", "").split(",")]
        roots = tuple(part.strip() for part in environ.get("ALLOWED_CWD_ROOTS", "").split(",") if part.strip())
        commands = []
        for entry in entries:
            words = tuple(entry.split())
            if len(words) > 1 and words[-1] == "*":
                words = words[:-1]
            if words and words != ("*",):
                commands.append(words)
        return cls(tuple(commands), "*" in entries, roots)

    def permits(self, argv: tuple[str, ...]) -> bool:
        """By exact words: a program given as a path passes only if that very path is listed."""
        return self.everything or any(argv[: len(prefix)] == prefix for prefix in self.commands)


def split_command(command: str) -> tuple[str, ...]:
    """The one argv in `command`; raises GateRefusal for anything but literal words."""
    fault = find_fault(command)
    if fault is not None:
        raise GateRefusal("invalid", "parse_error", f"The command cannot be run: {fault}.")
    if not command.strip():
        raise GateRefusal("invalid", "parse_error", "The command is empty.", "Name a program and its arguments.")
    try:
        literal = lex(command)
    except NotLiteral as problem:
        raise GateRefusal("invalid", "shell_syntax", f"The command uses {problem.what}.", NO_SHELL_HINT) from None
    except Broken as problem:
        raise GateRefusal(
            "invalid", "parse_error", f"The command cannot be read: {problem.what}.", NO_SHELL_HINT
        ) from None
    if literal.operators:
        raise GateRefusal(
            "invalid", "shell_syntax", f"The command uses the shell operator {literal.operators[0]!r}.", NO_SHELL_HINT
        )
    argv = literal.segments[0]
    fault = find_argv_fault(argv)
    if fault is not None:
        raise GateRefusal("invalid", "parse_error", f"The command cannot be run: {fault}.")
    return argv


def check_program(gate: ExecGate, argv: tuple[str, ...], cwd: str | None, home: str | None) -> tuple[RiskReason, ...]:
    """Raise GateRefusal unless `argv` may run; returns what it could destroy, for the audit."""
    if not gate.permits(argv):
        listed = ", ".join(" ".join(words) for words in gate.commands) or "none"
        raise GateRefusal(
            "forbidden",
            "not_allowlisted",
            f"The command {argv[0]!r} is not allowed.",
            f"Allowed commands: {listed}. The operator sets them in ALLOWED_COMMANDS.",
        )
    try:
        assessment = assess_argv(argv, CommandSetting(cwd, home))
    except (TooComplicated, RecursionError):
        raise GateRefusal("forbidden", "parse_error", "The command is too complicated to be judged.") from None
    for found in assessment.reasons:
        if found.risk is Risk.IRRECOVERABLE:
            raise GateRefusal(
                "forbidden",
                "irrecoverable",
                f"Refused: {found.what} ({found.command}), and nothing could bring it back.",
                "If it must be, a person has to do it by hand.",
            )
    return tuple(assessment.reasons)


def resolve_cwd(gate: ExecGate, cwd: str | None, base: str) -> str:
    """The canonical folder to run in; raises GateRefusal. Roots restrict only a `cwd` that was given."""
    if cwd is not None and (find_fault(cwd) is not None or not cwd):
        raise GateRefusal("invalid", "parse_error", "cwd is not a usable path.", "Give the path of an existing folder.")
    roots: list[str] = []
    if cwd is not None:
        for root in gate.roots:
            try:
                roots.append(os.path.realpath(os.path.join(base, os.path.expanduser(root)), strict=True))
            except (OSError, ValueError):
                raise GateRefusal(
                    "misconfigured",
                    "cwd_outside_roots",
                    f"There is a configuration problem with ALLOWED_CWD_ROOTS: {root!r} cannot be resolved.",
                    "The operator must correct ALLOWED_CWD_ROOTS; until then leave cwd out.",
                ) from None
    given = base if cwd is None else os.path.join(base, cwd)
    try:
        found = os.path.realpath(given, strict=True)
    except (OSError, ValueError):
        found = ""
    if roots and found and not any(is_within(found, root) for root in roots):
        raise _outside(given, roots)
    if not found or not os.path.isdir(found):
        # Do not tell apart what exists outside the roots.
        if roots and not any(is_within(os.path.realpath(given), root) for root in roots):
            raise _outside(given, roots)
        raise GateRefusal(
            "missing",
            "cwd",
            f"The working directory {given!r} {'is not a folder' if found else 'does not exist'}.",
            "Choose an existing folder.",
        )
    return found


def _outside(given: str, roots: list[str]) -> GateRefusal:
    return GateRefusal(
        "forbidden",
        "cwd_outside_roots",
        f"The cwd {given!r} is not allowed: it is not within ALLOWED_CWD_ROOTS.",
        f"Allowed roots: {', '.join(roots)}.",
    )
