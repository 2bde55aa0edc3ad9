"""The failures of the contract: one table that code, tests and the operators' guide share.

One code has one category, one answer to "may it be tried again" and one fallback strategy, always. Headless mode is
recommended only where the policy would allow the same request there. `can_auto_retry` is false everywhere: trying again
is the caller's decision, never the server's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Code: TypeAlias = Literal[
    "PM_TERM_INVALID_ACTION",
    "PM_TERM_INVALID_PAYLOAD",
    "PM_TERM_INVALID_MODE",
    "PM_TERM_DECLINED",
    "PM_TERM_TIMEOUT",
    "PM_TERM_DISCONNECTED",
    "PM_TERM_GUI_UNAVAILABLE",
    "PM_TERM_BLOCKED_DESTRUCTIVE",
    "PM_TERM_NOT_FOUND",
    "PM_TERM_INTERNAL",
]
Category: TypeAlias = Literal[
    "validation",
    "user_decision",
    "runtime_timeout",
    "transport",
    "runtime_unavailable",
    "authorization",
    "identity",
    "internal",
]
Strategy: TypeAlias = Literal[
    "reject_no_retry",
    "report_decline",
    "suggest_retry_headless_or_interactive",
    "suggest_reconnect_retry",
    "fallback_to_headless_if_allowed",
    "reject_with_safety_hint",
    "refresh_list_then_retry",
    "deterministic_internal_fallback",
]
NextAction: TypeAlias = Literal["same", "list", "none"]
"""What to call next: the same canonical action (corrected, or again), `list`, or nothing."""


@dataclass(frozen=True)
class TaxonomyEntry:
    code: Code
    category: Category
    trigger: str
    retriable: bool
    strategy: Strategy
    next_action: NextAction
    may_be_headless: bool
    """Whether the same request could be tried in headless mode, if the policy allows it there."""
    user_message: str


TAXONOMY: tuple[TaxonomyEntry, ...] = (
    TaxonomyEntry(
        "PM_TERM_INVALID_ACTION",
        "validation",
        "unknown action or alias, or an alias that is no longer accepted",
        False,
        "reject_no_retry",
        "none",
        False,
        "The action is not known. Use execute, read_output, terminate or list.",
    ),
    TaxonomyEntry(
        "PM_TERM_INVALID_PAYLOAD",
        "validation",
        "a field is missing, unknown, of the wrong type, or does not go with the action",
        False,
        "reject_no_retry",
        "same",
        False,
        "The request does not fit the contract. Correct the fields that error.details.fields names and send it again.",
    ),
    TaxonomyEntry(
        "PM_TERM_INVALID_MODE",
        "validation",
        "unknown invocation.mode, or an adapter whose configuration is missing or malformed",
        False,
        "reject_no_retry",
        "same",
        False,
        "The mode cannot be used. Choose an allowed mode, or complete the configuration that error.details names.",
    ),
    TaxonomyEntry(
        "PM_TERM_DECLINED",
        "user_decision",
        "the person at the desktop said no",
        False,
        "report_decline",
        "none",
        False,
        "The person declined this command. Do not send it again; ask what they would prefer.",
    ),
    TaxonomyEntry(
        "PM_TERM_TIMEOUT",
        "runtime_timeout",
        "launch or handshake took too long, or nobody answered an approval in time",
        True,
        "suggest_retry_headless_or_interactive",
        "same",
        True,
        "The interactive path timed out. You can retry now.",
    ),
    TaxonomyEntry(
        "PM_TERM_DISCONNECTED",
        "transport",
        "the bridge refused the handshake or dropped the connection",
        True,
        "suggest_reconnect_retry",
        "same",
        False,
        "The connection to the desktop was lost. Check that its window is running, then send the request again.",
    ),
    TaxonomyEntry(
        "PM_TERM_GUI_UNAVAILABLE",
        "runtime_unavailable",
        "no desktop program or endpoint could be reached or started",
        True,
        "fallback_to_headless_if_allowed",
        "same",
        True,
        "No desktop is available to ask. Start interactive-terminal, then send the request again.",
    ),
    TaxonomyEntry(
        "PM_TERM_BLOCKED_DESTRUCTIVE",
        "authorization",
        "the safety policy blocked the command",
        False,
        "reject_with_safety_hint",
        "none",
        False,
        "The policy blocked this command. Change the command, ask a person in interactive mode, or change the policy.",
    ),
    TaxonomyEntry(
        "PM_TERM_NOT_FOUND",
        "identity",
        "unknown session or terminal, or one that belongs to another caller",
        False,
        "refresh_list_then_retry",
        "list",
        False,
        "There is no such session or terminal of yours. List them, then use an id from that list.",
    ),
    TaxonomyEntry(
        "PM_TERM_INTERNAL",
        "internal",
        "an unclassified failure of the server",
        True,
        "deterministic_internal_fallback",
        "same",
        False,
        "Something failed inside the server. Its log has the details under the trace id; trying again may help.",
    ),
)

BY_CODE: dict[Code, TaxonomyEntry] = {entry.code: entry for entry in TAXONOMY}
