from __future__ import annotations

from wsh.approval.expiry import Expiry
from wsh.approval.ledger import Ledger


async def test_what_has_ended_has_no_time_left_however_early_its_end_came() -> None:
    ledger, closed = Ledger(), list[float]()
    ledger.open("a", object(), 60)
    expiry = Expiry(ledger, "a", 60, lambda: closed.append(expiry.left_s))
    assert expiry.left_s > 0
    assert expiry.end() and not expiry.end()
    expiry.cancel()
    assert len(closed) == 1 and closed[0] <= 0
    assert ledger.state("a") == "expired"
