"""The HTTP status of an answer of the terminal contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from wsh.http.route.table import HttpAnswer, dump_json
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.contract.dispatch import ContractAnswer
    from wsh.contract.reply.taxonomy import Code

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
SHORTAGE_STATUS = {"disk_full": 507, "no_descriptors": 503}
"""Where `details.reason` says that the machine has no room, as everywhere else on this wire."""
OWN_STATUSES = (202, *sorted(set(STATUS.values())))


def show_contract(result: object) -> HttpAnswer:
    """`accepted` is 202; a failure has its own payload."""
    answer: ContractAnswer = cast(Any, result)
    if answer.code is not None:
        error: JsonObject = cast(Any, answer.payload["error"])
        reason = error.get("details", {}).get("reason")
        return HttpAnswer(dump_json(answer.payload), SHORTAGE_STATUS.get(reason, STATUS[answer.code]))
    return HttpAnswer(dump_json(answer.payload), 202 if answer.payload["status"] == "accepted" else 200)
