"""Rules: an argv prefix by whole tokens, what it permits or forbids, and where it holds.

A plain allow entry permits the arguments that the program's model (`harmless`) knows to do nothing; ` *` at its end
permits any. A deny entry forbids the prefix with any arguments, also behind wrappers and paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wsh.policy.danger import find_models
from wsh.policy.harmless import PROGRAMS
from wsh.policy.parse.lexer import Broken, NotLiteral, lex
from wsh.policy.parse.option import Arity, scan
from wsh.policy.request import Mode, PolicyRequest

BOTH = frozenset({Mode.HEADLESS, Mode.INTERACTIVE})


class RuleEffect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class RuleError(ValueError):
    """A pattern that cannot be a rule; the message says why."""


@dataclass(frozen=True)
class Rule:
    effect: RuleEffect
    tokens: tuple[str, ...]
    any_arguments: bool = False
    modes: frozenset[Mode] = BOTH
    cwd: str | None = None
    """Canonical folder; the rule holds there and below, an exact one there alone."""
    workspace: str | None = None
    caller_surface: str | None = None
    expires: float | None = None
    comment: str = ""
    origin: str = "built-in"
    """Where it was written: a file and line, or the shipped defaults."""
    exact: bool = False
    """These words and no others."""

    @property
    def pattern(self) -> str:
        words = [token if _is_plain(token) else "'" + token + "'" for token in self.tokens]
        return " ".join([*words, "*"] if self.any_arguments else words)

    @property
    def label(self) -> str:
        return f"{self.effect.value} {'exactly ' if self.exact else ''}{self.pattern}"

    @property
    def rank(self) -> tuple[int, int, int]:
        """More specific is higher: tokens, then scopes, then how deep the folder lies."""
        scopes = sum(scope is not None for scope in (self.cwd, self.workspace, self.caller_surface))
        return len(self.tokens), scopes, len(self.cwd or "")

    def holds(self, request: PolicyRequest) -> bool:
        """Whether the rule speaks about this place, caller, mode and time."""
        if request.mode not in self.modes:
            return False
        if self.expires is not None:
            # Without a clock an allow has ended and a denial has not.
            ended = self.effect is RuleEffect.ALLOW if request.now is None else request.now >= self.expires
            if ended:
                return False
        if self.workspace is not None and self.workspace != request.workspace:
            return False
        if self.caller_surface is not None and self.caller_surface != request.caller_surface:
            return False
        if self.cwd is None or request.cwd is None:
            return self.cwd is None
        return request.cwd == self.cwd if self.exact else is_within(request.cwd, self.cwd)


@dataclass(frozen=True)
class RuleFit:
    """How a rule and an argv meet: `matched`, or the prefix fits and `fault` says why the arguments do not."""

    matched: bool
    fault: str | None = None


def fits(rule: Rule, argv: tuple[str, ...]) -> RuleFit:
    """An allow rule against the argv that would run; nothing is looked through."""
    size = len(rule.tokens)
    if argv[:size] != rule.tokens or (rule.exact and len(argv) != size):
        return RuleFit(False)
    if rule.any_arguments or len(argv) == size:
        return RuleFit(True)
    if size == 0:
        return RuleFit(False)
    judge = PROGRAMS.get(argv[0])
    if judge is None:
        return RuleFit(
            False, f"{argv[0]!r} has no argument model: write {rule.pattern!r} with ' *' to allow any arguments"
        )
    fault = judge(argv[1:])
    return RuleFit(fault is None, fault)


def forbids(rule: Rule, words: tuple[str, ...]) -> bool:
    """A deny rule against a command that was seen, with paths and global options looked through."""
    name = words[0].rpartition("/")[2]
    size = len(rule.tokens)
    if rule.tokens in (words[:size], (name, *words[1:size])):
        return True
    if size < 2 or name != rule.tokens[0]:
        return False
    models = find_models(name)
    arity = models[0].arity if models else Arity()
    operands = scan(words[1:], Arity(arity.short, arity.long, arity.single_dash, True)).operands
    return tuple(operands[: size - 1]) == rule.tokens[1:]


def parse_pattern(pattern: str) -> tuple[tuple[str, ...], bool]:
    """Tokens, and whether any arguments may follow. Raises RuleError."""
    text = pattern.strip()
    if text == "*":
        return (), True
    any_arguments = text.endswith(" *")
    if any_arguments:
        text = text[:-2].rstrip()
    try:
        literal = lex(text)
    except NotLiteral as problem:
        raise RuleError(
            f"{pattern!r} holds {problem.what}; a rule is literal words, with ' *' at most at its end"
        ) from None
    except Broken as problem:
        raise RuleError(f"{pattern!r} is no rule: {problem.what}") from None
    if len(literal.segments) != 1 or literal.operators:
        raise RuleError(f"{pattern!r} holds several commands; write one rule for each")
    tokens = literal.segments[0]
    if not tokens[0]:
        raise RuleError(f"{pattern!r} names no program")
    return tokens, any_arguments


def is_within(path: str, root: str) -> bool:
    """Containment of canonical paths."""
    return path == root or root == "/" or path.startswith(root.rstrip("/") + "/")


def _is_plain(token: str) -> bool:
    try:
        return lex(f"x {token}").segments == (("x", token),)
    except (NotLiteral, Broken):
        return False
