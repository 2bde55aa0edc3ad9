from __future__ import annotations

import random
import threading

import pytest

from wsh.approval.ledger import DuplicateId, Ledger, QueueFull


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_withdrawn_request_can_never_start() -> None:
    ledger = Ledger()
    ledger.open("a", self_ := object(), 10)
    assert ledger.withdraw("a")
    assert not ledger.claim("a") and not ledger.start("a") and not ledger.decline("a") and not ledger.expire("a")
    assert ledger.state("a") == "withdrawn"
    assert ledger.withdraw_all(self_) == []


def test_a_withdrawal_between_yes_and_start_still_wins() -> None:
    ledger = Ledger()
    ledger.open("a", object(), 10)
    assert ledger.claim("a") and ledger.withdraw("a") and not ledger.start("a")


def test_a_withdrawal_after_the_start_is_too_late() -> None:
    ledger = Ledger()
    ledger.open("a", object(), 10)
    assert ledger.claim("a") and ledger.start("a") and not ledger.withdraw("a")
    assert ledger.state("a") == "started"


def test_an_approval_is_used_once() -> None:
    ledger = Ledger()
    ledger.open("a", object(), 10)
    assert ledger.claim("a") and not ledger.claim("a")
    assert ledger.start("a") and not ledger.start("a")


def test_a_yes_after_the_deadline_does_not_count() -> None:
    clock = Clock()
    ledger = Ledger(clock=clock)
    ledger.open("a", object(), 10)
    clock.now += 10
    assert not ledger.claim("a")
    assert ledger.state("a") == "expired" and ledger.pending == 0


def test_a_caller_that_vanished_takes_its_own_requests_along() -> None:
    ledger = Ledger()
    mine, other = object(), object()
    for key, owner in (("a", mine), ("b", other), ("c", mine)):
        ledger.open(key, owner, 10)
    assert ledger.claim("c")
    assert ledger.withdraw_all(mine) == ["a", "c"]
    assert not ledger.start("c") and ledger.claim("b")


def test_the_queue_is_bounded_and_an_id_is_used_once() -> None:
    ledger = Ledger(max_pending=2)
    ledger.open("a", object(), 10)
    ledger.open("b", object(), 10)
    with pytest.raises(QueueFull):
        ledger.open("c", object(), 10)
    assert ledger.decline("a")
    ledger.open("c", object(), 10)
    with pytest.raises(DuplicateId):
        ledger.open("a", object(), 10)


def test_a_grant_ends_with_its_time() -> None:
    clock = Clock()
    ledger = Ledger(clock=clock)
    ledger.grant("binding", 60)
    assert ledger.is_granted("binding") and not ledger.is_granted("another")
    clock.now += 60
    assert not ledger.is_granted("binding")


def test_of_yes_no_and_withdrawal_in_one_instant_from_many_threads_exactly_one_wins() -> None:
    for round_ in range(300):
        ledger = Ledger()
        ledger.open("a", object(), 10)
        outcomes: list[str] = []
        gate = threading.Barrier(4)

        def run_it(ledger: Ledger = ledger, gate: threading.Barrier = gate, outcomes: list[str] = outcomes) -> None:
            gate.wait()
            if ledger.claim("a") and ledger.start("a"):
                outcomes.append("ran")

        def withdraw(ledger: Ledger = ledger, gate: threading.Barrier = gate, outcomes: list[str] = outcomes) -> None:
            gate.wait()
            if ledger.withdraw("a"):
                outcomes.append("withdrawn")

        def decline(ledger: Ledger = ledger, gate: threading.Barrier = gate, outcomes: list[str] = outcomes) -> None:
            gate.wait()
            if ledger.decline("a"):
                outcomes.append("declined")

        works = [run_it, run_it, withdraw, decline]
        random.Random(round_).shuffle(works)
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
