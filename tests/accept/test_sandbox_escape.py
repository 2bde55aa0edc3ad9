"""Every attempt to get out of a sandbox, on each backend, as an ordinary user and as this one."""

from __future__ import annotations

import pytest

from tests.support.sandbox.attempts import ATTEMPTS
from tests.support.sandbox.fight import Who, fight, list_claims
from tests.support.sandbox.held import BackendName, each_backend

pytestmark = pytest.mark.accept


@each_backend
@pytest.mark.parametrize("attempt", sorted(ATTEMPTS))
def test_an_attempt_stays_inside(backend: BackendName, attempt: str) -> None:
    told = fight(backend, "workspace", "ordinary")[attempt]
    claimed = told["claim"] in {claim.value for claim in list_claims(backend, "workspace")}
    assert not (claimed and told["escaped"]), told


@each_backend
@pytest.mark.parametrize("who", ["ordinary", "self"])
@pytest.mark.parametrize("profile", ["read-only", "workspace"])
def test_no_attempt_gets_out(backend: BackendName, profile: str, who: Who) -> None:
    found = dict(fight(backend, profile, who))
    end = found.pop("end")
    claims = {claim.value for claim in list_claims(backend, profile)}
    out = {name: told["why"] for name, told in found.items() if told["escaped"] and told["claim"] in claims}
    assert out == {}
    assert (end["stray"], end["left"]) == ([], [])
    assert len(found) == len(ATTEMPTS) >= 120
    if "protected" in claims:
        assert end["protected"] == []
