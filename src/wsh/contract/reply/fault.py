"""A failure on its way to a response: a code of the taxonomy, a message, and details an operator can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wsh.contract.reply.taxonomy import Code
from wsh.wire.error import WshError


class ContractFault(Exception):
    """Raised anywhere in this room, answered once in `dispatch`."""

    def __init__(self, code: Code, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def short_of(shortage: WshError) -> ContractFault:
    """The machine has no room for it. Nothing ran: a decision that cannot be recorded allows nothing."""
    said = f"{shortage.message} The request could not be recorded, so nothing was run."
    return ContractFault(
        "PM_TERM_BLOCKED_DESTRUCTIVE", said, reason=shortage.code, hint=shortage.hint, **shortage.facts
    )


@dataclass(frozen=True)
class FieldHint:
    """One field that does not fit: where, what is wrong, and what would be right."""

    field: str
    problem: str
    hint: str | None = None

    def to_wire(self) -> dict[str, str]:
        wire = {"field": self.field, "problem": self.problem}
        return wire | {"hint": self.hint} if self.hint else wire


def invalid_payload(hints: Sequence[FieldHint], **details: object) -> ContractFault:
    first = hints[0]
    where = first.field or "the request"
    more = f" (and {len(hints) - 1} more)" if len(hints) > 1 else ""
    return ContractFault(
        "PM_TERM_INVALID_PAYLOAD",
        f"{where}: {first.problem}{more}.",
        fields=[hint.to_wire() for hint in hints],
        **details,
    )


def bad_field(field: str, problem: str, hint: str | None = None, **details: object) -> ContractFault:
    return invalid_payload([FieldHint(field, problem, hint)], **details)
