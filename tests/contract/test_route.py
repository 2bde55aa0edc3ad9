"""The routing matrix, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from wsh.contract.route import ContractRoute, find_route

MATRIX = [
    ("execute", "interactive", ContractRoute.INTERACTIVE_EXECUTE, "interactive-terminal", "user mediation"),
    ("execute", "headless", ContractRoute.HEADLESS_EXECUTE, "headless subset gate", "allowlist and destructive block"),
    ("read_output", "interactive", ContractRoute.INTERACTIVE_READ, "interactive-terminal", "ownership"),
    ("read_output", "headless", ContractRoute.HEADLESS_READ, "headless session read", "session existence"),
    ("terminate", "interactive", ContractRoute.INTERACTIVE_TERMINATE, "interactive-terminal", "identity validation"),
    ("terminate", "headless", ContractRoute.HEADLESS_TERMINATE, "headless session terminate", "session existence"),
    ("list", "interactive", ContractRoute.LIST, "registry", "scope filtering"),
    ("list", "headless", ContractRoute.LIST, "registry", "scope filtering"),
    ("list", None, ContractRoute.LIST, "registry", "scope filtering"),
]


@pytest.mark.parametrize(("action", "mode", "route", "path", "gate"), MATRIX)
def test_a_row_of_the_matrix(action: Any, mode: Any, route: ContractRoute, path: str, gate: str) -> None:
    found = find_route(action, mode)
    assert found is route
    assert path in found.path and gate in found.gate


def test_every_route_is_in_the_matrix() -> None:
    assert {row[2] for row in MATRIX} == set(ContractRoute)
