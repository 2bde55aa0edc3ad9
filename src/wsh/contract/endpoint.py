"""The same contract for callers without MCP: `POST /terminal`, as the HTTP door mounts it."""

from __future__ import annotations

from typing import Any

from wsh.contract.caller import Caller
from wsh.contract.dispatch import Contract
from wsh.contract.taxonomy import Code

STATUS: dict[Code, int] = {
    "PM_TERM_INVALID_ACTION": 400,
    "PM_TERM_INVALID_PAYLOAD": 400,
    "PM_TERM_INVALID_MODE": 400,
    "PM_TERM_DECLINED": 403,
    "PM_TERM_TIMEOUT": 408,
    "PM_TERM_DISCONNECTED": 502,
    "PM_TERM_GUI_UNAVAILABLE": 503,
    "PM_TERM_BLOCKED_DESTRUCTIVE": 403,
    "PM_TERM_NOT_FOUND": 404,
    "PM_TERM_INTERNAL": 500,
}

SHORTAGE_STATUS: dict[str, int] = {"disk_full": 507, "no_descriptors": 503}
"""Where `details.reason` says that the machine has no room, as everywhere else on this wire."""


async def handle_terminal(contract: Contract, body: object, caller: Caller) -> tuple[int, dict[str, Any]]:
    """HTTP status and response for one request; `body` is the parsed JSON, whatever it is.

    `accepted` is 202. A handler whose client went away cancels this task, and what the call started ends with it.
    """
    answer = await contract.handle(body, caller)
    if answer.code is not None:
        reason = answer.payload["error"].get("details", {}).get("reason")
        if reason in SHORTAGE_STATUS:
            return SHORTAGE_STATUS[reason], answer.payload
        return STATUS[answer.code], answer.payload
    return (202 if answer.payload["status"] == "accepted" else 200), answer.payload
