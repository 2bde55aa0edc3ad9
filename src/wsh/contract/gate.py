"""The question put to the policy before anything runs, and its answer. One gate for both modes and every door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from wsh.contract.fault import ContractFault
from wsh.contract.model import Mode

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Risk: TypeAlias = Literal["none", "destructive", "irrecoverable"]


@dataclass(frozen=True)
class Question:
    """Either `argv` (as it is) or `command` (to be parsed). `action` is what would be done with it."""

    mode: Mode
    action: Literal["execute", "send", "open"]
    actor: str
    argv: tuple[str, ...] | None = None
    command: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workspace_id: str | None = None
    caller_surface: str | None = None


@dataclass(frozen=True)
class Ruling:
    effect: Effect
    risk: Risk
    reason: str
    """One word that programs compare, such as `not_allowlisted`."""
    message: str
    rule: str | None = None
    hint: str | None = None
    argv: tuple[tuple[str, ...], ...] = ()
    """Segments as they would run; empty when not understood word by word."""
    risk_reasons: Sequence[str] = ()

    def to_details(self) -> dict[str, Any]:
        details: dict[str, Any] = {"reason": self.reason, "risk": self.risk}
        if self.rule is not None:
            details["rule"] = self.rule
        if self.risk_reasons:
            details["risk_reasons"] = list(self.risk_reasons)
        if self.hint is not None:
            details["hint"] = self.hint
        return details

    def to_verdict(self) -> dict[str, Any]:
        """What `details.headless_verdict` says."""
        return {"effect": self.effect, "reason": self.reason, "rule": self.rule, "message": self.message}


class Gate(Protocol):
    def decide(self, question: Question) -> Ruling: ...

    def lifetime_ms(self) -> int:
        """Longest life of a command; 0 means no limit."""


class Recorder(Protocol):
    """The audit trail. `event` is a flat JSON object; the recorder adds time and chain."""

    def record(self, event: Mapping[str, Any]) -> None: ...


def blocked(ruling: Ruling) -> ContractFault:
    return ContractFault("PM_TERM_BLOCKED_DESTRUCTIVE", ruling.message, **ruling.to_details())
