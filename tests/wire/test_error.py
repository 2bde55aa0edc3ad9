from __future__ import annotations

from wsh.wire.error import LimitReached, SessionExited, SessionNotFound, WaitTimeout, WshError, from_wire


def test_an_error_survives_the_wire_with_class_text_hint_and_facts() -> None:
    for error in (SessionNotFound("x"), SessionExited("x", 3), LimitReached("panels", 5, "session.max_elements")):
        again = from_wire(error.to_wire())
        assert type(again) is type(error)
        assert again.to_wire() == error.to_wire()


def test_a_wait_keeps_its_deadline_across_the_wire() -> None:
    again = from_wire(WaitTimeout("still busy", timeout_ms=12).to_wire())
    assert isinstance(again, WaitTimeout)
    assert again.facts["timeout_ms"] == 12


def test_an_unknown_code_is_kept() -> None:
    again = from_wire({"code": "from_the_future", "message": "m"})
    assert type(again) is WshError and again.code == "from_the_future" and again.message == "m"
