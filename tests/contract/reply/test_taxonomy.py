"""The table of failures, row by row, and the shape of every failing answer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.contract.world import HEADLESS, opened
from wsh.contract.reply.fault import ContractFault
from wsh.contract.reply.response import Envelope
from wsh.contract.reply.taxonomy import BY_CODE, TAXONOMY
from wsh.contract.request.alias import Resolution
from wsh.contract.request.correlation import Correlated, correlate, make_id
from wsh.http.route.contract_status import STATUS

ROWS = {
    "PM_TERM_INVALID_ACTION": ("validation", False, "reject_no_retry", False),
    "PM_TERM_INVALID_PAYLOAD": ("validation", False, "reject_no_retry", False),
    "PM_TERM_INVALID_MODE": ("validation", False, "reject_no_retry", False),
    "PM_TERM_DECLINED": ("user_decision", False, "report_decline", False),
    "PM_TERM_TIMEOUT": ("runtime_timeout", True, "suggest_retry_headless_or_interactive", True),
    "PM_TERM_DISCONNECTED": ("transport", True, "suggest_reconnect_retry", False),
    "PM_TERM_GUI_UNAVAILABLE": ("runtime_unavailable", True, "fallback_to_headless_if_allowed", True),
    "PM_TERM_BLOCKED_DESTRUCTIVE": ("authorization", False, "reject_with_safety_hint", False),
    "PM_TERM_NOT_FOUND": ("identity", False, "refresh_list_then_retry", False),
    "PM_TERM_INTERNAL": ("internal", True, "deterministic_internal_fallback", False),
}


def test_the_table_has_exactly_the_codes_of_the_contract() -> None:
    assert {entry.code for entry in TAXONOMY} == set(ROWS) and len(TAXONOMY) == len(ROWS)
    assert set(STATUS) == set(ROWS)


@pytest.mark.parametrize("code", ROWS)
def test_a_code_has_one_category_and_one_strategy(code: Any) -> None:
    entry = BY_CODE[code]
    assert (entry.category, entry.retriable, entry.strategy, entry.may_be_headless) == ROWS[code]


@pytest.mark.parametrize("code", ROWS)
@pytest.mark.parametrize("action", ["execute", "read_output", "terminate", "list", None])
def test_a_failing_answer_has_the_whole_shape_whatever_the_action(code: Any, action: Any) -> None:
    envelope = Envelope(Correlated("req_1", "trace_1", "mine"), Resolution(action, True, "send"), "interactive")
    answer = envelope.fail(ContractFault(code, "What happened.", timeout_ms=30000))
    assert answer["success"] is False and answer["status"] == "failed" and answer["action"] == action
    assert answer["correlation"] == {"request_id": "req_1", "trace_id": "trace_1", "client_request_id": "mine"}
    assert answer["resolved"] == {
        "canonical_action": action,
        "alias_applied": True,
        "legacy_action": "send",
        "mode": "interactive",
    }
    category, retriable, strategy, _ = ROWS[code]
    assert answer["error"] == {
        "code": code,
        "category": category,
        "message": "What happened.",
        "retriable": retriable,
        "details": {"timeout_ms": 30000},
    }
    fallback = answer["fallback"]
    assert fallback["strategy"] == strategy and "recommended_mode" not in fallback
    assert fallback["can_auto_retry"] is False and fallback["user_message"]
    assert fallback["next_action"] in {action, "list", None}


def test_a_missing_identity_points_to_list() -> None:
    answer = Envelope(Correlated("r", "t"), Resolution("terminate")).fail(ContractFault("PM_TERM_NOT_FOUND", "m"))
    assert answer["fallback"]["next_action"] == "list"


def test_ids_are_made_before_anything_else_and_kept_when_given() -> None:
    made = correlate({})
    assert made.request_id.startswith("req_") and made.trace_id.startswith("trace_") and made.client_request_id is None
    assert correlate({}) != made
    given = {"request_id": "req_01HX", "trace_id": "trace_abc", "client_request_id": "Ünïcode 7"}
    assert correlate({"correlation": given}).to_wire() == given
    assert len({make_id("req") for _ in range(1000)}) == 1000


@pytest.mark.parametrize("bad", [None, 5, "", "a b", "x" * 129, "new\nline", ["a"]])
def test_an_id_that_cannot_be_accepted_is_replaced_so_that_a_refusal_has_one_too(bad: object) -> None:
    made = correlate({"correlation": {"request_id": bad, "trace_id": bad}})
    assert made.request_id.startswith("req_") and made.trace_id.startswith("trace_")


async def test_an_unexpected_exception_shows_ids_and_nothing_of_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as world:

        def explode() -> Any:
            raise RuntimeError("secret path /root/key")

        world.policy.current = explode  # type: ignore[method-assign]
        with caplog.at_level(logging.ERROR):
            answer = await world.ask(
                {
                    "action": "execute",
                    "invocation": HEADLESS,
                    "execution": {"command": "ls"},
                    "correlation": {"trace_id": "trace_boom"},
                }
            )
        assert answer["error"]["code"] == "PM_TERM_INTERNAL"
        assert answer["error"]["details"] == {
            "trace_id": "trace_boom",
            "request_id": answer["correlation"]["request_id"],
        }
        assert "secret" not in str(answer) and "RuntimeError" not in str(answer)
        assert "secret path" in caplog.text and "trace_boom" in caplog.text
