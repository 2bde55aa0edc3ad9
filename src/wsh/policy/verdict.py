"""What the engine answers: an effect, a risk class, the rule and the reason.

Values only. How they are reached is `engine`'s business, how they are shown is the doors'.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsh.policy.risk.label import LabelReason


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Risk(StrEnum):
    NONE = "none"
    DESTRUCTIVE = "destructive"
    IRRECOVERABLE = "irrecoverable"

    @property
    def rank(self) -> int:
        return ("none", "destructive", "irrecoverable").index(self.value)


class Kind(StrEnum):
    """The classes of destruction. A policy may unblock any of them except what is irrecoverable."""

    DELETE = "delete"
    OVERWRITE = "overwrite"
    PERMISSION = "permission"
    DEVICE = "device"
    REPOSITORY = "repository"
    CONTAINER = "container"
    INFRASTRUCTURE = "infrastructure"
    DATABASE = "database"
    PACKAGE = "package"
    PUBLISH = "publish"
    PROCESS = "process"
    SYSTEM = "system"
    ACCOUNT = "account"
    UNKNOWN = "unknown"
    CUSTOM = "custom"


class Reason(StrEnum):
    """Why; one word that programs compare."""

    ALLOWED = "allowed"
    NO_COMMAND = "no_command"
    NOT_ALLOWLISTED = "not_allowlisted"
    DENIED_BY_RULE = "denied_by_rule"
    DESTRUCTIVE = "destructive"
    IRRECOVERABLE = "irrecoverable"
    SHELL_SYNTAX = "shell_syntax"
    CWD_OUTSIDE_ROOTS = "cwd_outside_roots"
    ENV_NOT_ALLOWED = "env_not_allowed"
    PARSE_ERROR = "parse_error"
    NOT_HEADLESS = "not_headless"
    POLICY_BROKEN = "policy_broken"
    OWN_FILES = "own_files"


@dataclass(frozen=True)
class RiskReason:
    """One finding: what a command would do, and which words say so."""

    risk: Risk
    kind: Kind
    what: str
    command: str = ""

    def to_wire(self) -> dict[str, str]:
        return {"risk": self.risk.value, "kind": self.kind.value, "what": self.what, "command": self.command}


@dataclass(frozen=True)
class Verdict:
    effect: Effect
    risk: Risk
    reason: Reason
    message: str
    rule: str | None = None
    argv: tuple[tuple[str, ...], ...] = ()
    """Segments as they would run; empty when the command was not understood word by word."""
    operators: tuple[str, ...] = ()
    risk_reasons: tuple[RiskReason, ...] = ()
    hint: str | None = None
    labels: tuple[LabelReason, ...] = ()
    """What it does beside destroying: becomes root, reads secrets, leaves the machine, stays behind, installs code."""

    @property
    def allowed(self) -> bool:
        return self.effect is Effect.ALLOW

    def to_wire(self) -> dict[str, object]:
        return {
            "effect": self.effect.value,
            "risk": self.risk.value,
            "reason": self.reason.value,
            "rule": self.rule,
            "message": self.message,
            "hint": self.hint,
            "argv": [list(segment) for segment in self.argv],
            "operators": list(self.operators),
            "risk_reasons": [found.to_wire() for found in self.risk_reasons],
            "labels": [found.to_wire() for found in self.labels],
        }
