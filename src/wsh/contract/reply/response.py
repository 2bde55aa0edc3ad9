"""The one answer to a request: success and failure in the shapes of the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wsh.contract.reply.fault import ContractFault
from wsh.contract.reply.taxonomy import BY_CODE, TaxonomyEntry
from wsh.contract.request.alias import CANONICAL_TOOL, Resolution
from wsh.contract.request.correlation import Correlated
from wsh.contract.request.model import Mode
from wsh.wire.json.object import JsonObject


@dataclass(frozen=True)
class Outcome:
    """What a route came to."""

    status: Literal["accepted", "completed"]
    result: JsonObject
    identity: dict[str, str] = field(default_factory=dict)


@dataclass
class Envelope:
    """What every answer to this request carries, filled in as it becomes known."""

    correlated: Correlated
    resolution: Resolution
    mode: Mode | None = None

    def _head(self, success: bool, status: str) -> JsonObject:
        resolution = self.resolution
        head: JsonObject = {
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

    def succeed(self, outcome: Outcome) -> JsonObject:
        return {
            **self._head(True, outcome.status),
            "identity": outcome.identity,
            "result": outcome.result,
            "error": None,
        }

    def fail(self, fault: ContractFault) -> JsonObject:
        entry = BY_CODE[fault.code]
        next_action: str | None = None
        if entry.next_action == "list":
            next_action = "list"
        elif entry.next_action == "same":
            # A legacy tool takes its own words alone.
            is_canonical = self.resolution.tool == CANONICAL_TOOL
            next_action = self.resolution.canonical_action if is_canonical else self.resolution.given
        details = dict(fault.details)
        said = details.pop("user_message", None) or _explain(entry, details, self.mode)
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
            "user_message": said,
            "can_auto_retry": False,
        }
        if entry.may_be_headless and self.resolution.canonical_action == "execute":
            answer["fallback"] |= _advise_headless(said, details.get("headless_verdict"))
        return answer

    def fail_internally(self) -> JsonObject:
        """An unclassified failure: ids to look it up by, and nothing of the exception."""
        return self.fail(
            ContractFault(
                "PM_TERM_INTERNAL",
                "The request failed inside the server.",
                trace_id=self.correlated.trace_id,
                request_id=self.correlated.request_id,
            )
        )


def _explain(entry: TaxonomyEntry, details: Mapping[str, Any], mode: Mode | None) -> str:
    """What to tell a person, where the code alone does not say it."""
    if entry.code == "PM_TERM_INVALID_ACTION" and (allowed := details.get("allowed_actions")):
        return f"The action is not known here. Use {_listed(allowed)}."
    if entry.code == "PM_TERM_BLOCKED_DESTRUCTIVE" and details.get("risk") == "irrecoverable":
        return "What this command destroys cannot be brought back, so neither mode runs it for anybody. Change the command."
    if entry.code == "PM_TERM_BLOCKED_DESTRUCTIVE" and mode == "interactive":
        return "The policy blocks this command also with a person to ask. Change the command, or the policy."
    return entry.user_message


def _advise_headless(said: str, verdict: Mapping[str, object] | None) -> JsonObject:
    """Headless mode is recommended where the policy would allow the same request there; else it is said why not."""
    if verdict is None:
        why = "Headless mode has no terminals to open or to type into"
    elif verdict["effect"] == "allow":
        message = f"{said} The policy would also allow it in headless mode."
        return {"recommended_mode": "headless", "user_message": message}
    else:
        why = f"Headless mode would refuse it ({str(verdict.get('message') or verdict['reason']).rstrip('.')})"
    return {"user_message": f"{said} {why}."}


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
