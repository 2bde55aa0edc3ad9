"""A policy as the engine uses it: rules and limits, already checked."""

from __future__ import annotations

from dataclasses import dataclass, field

from wsh.policy.request import Mode
from wsh.policy.rule.default import ENV_ALLOW, HEADLESS_ALLOW
from wsh.policy.rule.rule import Rule, RuleEffect, parse_pattern
from wsh.policy.verdict import Kind
from wsh.sandbox.section import SandboxPolicy, strictest

SHIPPED = "the shipped defaults"
"""Origin of rules that nobody wrote."""


@dataclass(frozen=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    cwd_roots: tuple[str, ...] = ()
    """Canonical folders that commands may run in; none means anywhere."""
    env_allow: tuple[str, ...] = ENV_ALLOW
    """Names (or prefixes ending in `*`) of variables that a caller may set."""
    blocked: frozenset[Kind] = frozenset(Kind)
    """Classes of destruction that block. What is irrecoverable is refused whatever this says."""
    also_destructive: tuple[tuple[str, ...], ...] = ()
    lifetime_ms: int | None = None
    """Longest life of a command; None leaves it to the settings."""
    approval_ms: int | None = None
    """Longest time that a request waits for a person; None leaves it to the settings."""
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    broken: str | None = None
    """Why the policy file could not be used. Then nothing is allowed."""
    source: str = "built-in"
    digest: str = ""
    """SHA-256 of the file's text, for the audit."""
    warnings: tuple[str, ...] = field(default_factory=tuple)

    def allows_variable(self, name: str) -> bool:
        return any(name == known or (known.endswith("*") and name.startswith(known[:-1])) for known in self.env_allow)


def allow_rules(patterns: tuple[str, ...] | list[str], mode: Mode, origin: str = "built-in") -> tuple[Rule, ...]:
    made = []
    for pattern in patterns:
        tokens, any_arguments = parse_pattern(pattern)
        made.append(Rule(RuleEffect.ALLOW, tokens, any_arguments, frozenset({mode}), origin=origin))
    return tuple(made)


def default_policy() -> Policy:
    return Policy(rules=allow_rules(HEADLESS_ALLOW, Mode.HEADLESS, SHIPPED))


def strictest_policy(problem: str, source: str, text: str | None = None) -> Policy:
    """What holds while the policy file is broken: nothing runs headless, everything else is asked, every sandbox is the strictest.

    A `text` that names no sandbox asks for none; without a text nobody knows, and agents get one.
    """
    sandbox = SandboxPolicy() if text is not None and "sandbox" not in text else strictest(problem)
    return Policy(env_allow=(), sandbox=sandbox, broken=problem, source=source)
