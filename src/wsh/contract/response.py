"""The one answer to a request: success and failure in the shapes of the contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from wsh.contract.alias import Resolution
from wsh.contract.correlation import Correlated
from wsh.contract.fault import ContractFault
from wsh.contract.model import Mode
from wsh.contract.taxonomy import BY_CODE


@dataclass(frozen=True)
class Outcome:
    """What a route came to."""

    status: Literal["accepted", "completed"]
    result: dict[str, Any]
    identity: dict[str, str] = field(default_factory=dict)


@dataclass
class Envelope:
    """What every answer to this request carries, filled in as it becomes known."""

    correlated: Correlated
    resolution: Resolution
    mode: Mode | None = None

    def _head(self, success: bool, status: str) -> dict[str, Any]:
        resolution = self.resolution
        head: dict[str, Any] = {
            "success": success,
            "action": resolution.canonical_action,
            "status": status,
            "correlation": self.correlated.to_wire(),
            "resolved": {
                "canonical_action": resolution.canonical_action,
                "alias_applied": resolution.alias_applied,
                "legacy_action": resolution.legacy_action,
                "mode": self.mode,
            },
        }
        compat = resolution.to_compat()
        if compat is not None:
            head["compat"] = compat
        return head

    def succeed(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **self._head(True, outcome.status),
            "identity": outcome.identity,
            "result": outcome.result,
            "error": None,
        }

    def fail(self, fault: ContractFault) -> dict[str, Any]:
        entry = BY_CODE[fault.code]
        next_action: str | None = None
        if entry.next_action == "list":
            next_action = "list"
        elif entry.next_action == "same":
            next_action = self.resolution.canonical_action
        details = dict(fault.details)
        answer = self._head(False, "failed")
        identity = details.pop("identity", None)
        if identity:
            answer["identity"] = identity
        if fault.code == "PM_TERM_BLOCKED_DESTRUCTIVE":
            answer["result"] = {"authorization": "blocked"}
        answer["error"] = {
            "code": entry.code,
            "category": entry.category,
            "message": fault.message,
            "retriable": entry.retriable,
            "details": details,
        }
        answer["fallback"] = {
            "strategy": entry.strategy,
            "next_action": next_action,
            "recommended_mode": entry.recommended_mode,
            "user_message": entry.user_message,
            "can_auto_retry": False,
        }
        return answer

    def fail_internally(self) -> dict[str, Any]:
        """An unclassified failure: ids to look it up by, and nothing of the exception."""
        return self.fail(
            ContractFault(
                "PM_TERM_INTERNAL",
                "The request failed inside the server.",
                trace_id=self.correlated.trace_id,
                request_id=self.correlated.request_id,
            )
        )
