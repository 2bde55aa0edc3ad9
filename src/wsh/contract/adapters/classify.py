"""From a fault on the bridge to a code of the taxonomy. The only place where that is decided."""

from __future__ import annotations

from wsh.bridge.fault import (
    BridgeFault,
    Dropped,
    FrameTooLarge,
    HandshakeRefused,
    HandshakeTimeout,
    PeerError,
    Unreachable,
)
from wsh.bridge.frame import Decision
from wsh.contract.reply.fault import ContractFault, bad_field
from wsh.contract.reply.taxonomy import Code

BY_FAULT: dict[type[BridgeFault], Code] = {
    Unreachable: "PM_TERM_GUI_UNAVAILABLE",
    HandshakeTimeout: "PM_TERM_TIMEOUT",
    HandshakeRefused: "PM_TERM_DISCONNECTED",
    Dropped: "PM_TERM_DISCONNECTED",
}
BY_PEER_ERROR: dict[str, Code] = {
    "queue_full": "PM_TERM_GUI_UNAVAILABLE",
    "unknown_terminal": "PM_TERM_NOT_FOUND",
    "terminal_ended": "PM_TERM_NOT_FOUND",
    "frame_too_large": "PM_TERM_INVALID_PAYLOAD",
}
NEXT_STEP: dict[Code, str] = {
    "PM_TERM_GUI_UNAVAILABLE": "Start interactive-terminal on the desktop, then send the request again.",
    "PM_TERM_TIMEOUT": "Look whether the desktop program hangs; restart it, then send the request again.",
    "PM_TERM_DISCONNECTED": "Check that token and versions match on both sides and that the desktop still runs.",
}
_FIELD_OF_REFUSAL = {
    "program_not_found": "execution.command",
    "start_failed": "execution.command",
    "cwd_not_found": "runtime.cwd",
}
_BUSY = frozenset({"line_in_use", "session_taken"})
"""A person, or another line, has the terminal at the moment."""


def classify(fault: BridgeFault, **details: object) -> ContractFault:
    """What the caller is told about `fault`."""
    if isinstance(fault, PeerError):
        code = BY_PEER_ERROR.get(fault.code, "PM_TERM_INTERNAL")
        facts = {"bridge_error": fault.code, **fault.details, **details}
        message = fault.message if code != "PM_TERM_INTERNAL" else "The desktop could not serve the request."
        return ContractFault(code, message, **facts)
    if isinstance(fault, FrameTooLarge):
        return bad_field("execution", "is too large for the bridge", reason="frame_too_large", **fault.details)
    for kind, code in BY_FAULT.items():
        if isinstance(fault, kind):
            return ContractFault(
                code, fault.message, **{"next_recommended_action": NEXT_STEP[code], **fault.details, **details}
            )
    return ContractFault("PM_TERM_DISCONNECTED", "The bridge failed.", **details)


def refusal(decision: Decision, timeout_ms: int) -> ContractFault:
    """What the caller is told about a decision that is not a yes."""
    identity = {"session_id": decision.session_id, "terminal_id": decision.terminal_id}
    match decision.outcome:
        case "declined":
            reason = f": {decision.reason}" if decision.reason else ""
            return ContractFault(
                "PM_TERM_DECLINED",
                f"The person declined the command{reason}.",
                reason=decision.reason,
                declined_by=decision.by,
            )
        case "withdrawn" | "expired":
            return ContractFault(
                "PM_TERM_TIMEOUT",
                "Nobody answered the approval in time; the command did not run and can no longer be approved.",
                timeout_ms=timeout_ms,
                phase="approval",
                ran=False,
            )
        case _:
            return _refused(decision, identity)


def _refused(decision: Decision, identity: dict[str, str]) -> ContractFault:
    code, reason = decision.code or "internal", decision.reason or "The desktop refused it."
    if code in _FIELD_OF_REFUSAL:
        return bad_field(_FIELD_OF_REFUSAL[code], reason.rstrip("."), reason=code)
    if code in _BUSY:
        return ContractFault(
            "PM_TERM_GUI_UNAVAILABLE",
            reason,
            reason=code,
            target=identity,
            next_recommended_action="Wait until the terminal is free, or open another one.",
            user_message="The terminal is in use at the moment, and nothing was typed. Try again, or open another one.",
        )
    if code in {"unknown_terminal", "terminal_ended"}:
        return ContractFault("PM_TERM_NOT_FOUND", reason, reason=code, target=identity)
    if code == "forbidden":
        return ContractFault("PM_TERM_BLOCKED_DESTRUCTIVE", reason, reason="desktop_policy")
    if code == "changed":
        return ContractFault("PM_TERM_BLOCKED_DESTRUCTIVE", reason, reason="changed_since_shown")
    return ContractFault("PM_TERM_INTERNAL", "The desktop could not serve the request.", bridge_error=code)
