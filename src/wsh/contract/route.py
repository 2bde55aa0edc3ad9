"""The routing matrix, to be read beside the one in the contract: which path a request takes, behind which gate.

Aliases are gone by the time this is asked, so the core knows canonical names only. There is no path around it: every
door and every adapter for an older shape ends in `find_route`.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from wsh.contract.request.model import Action, Mode


class ContractRoute(Enum):
    """A path and the gate before it."""

    INTERACTIVE_EXECUTE = ("interactive-terminal, then its terminal runtime", "interactive safety and user mediation")
    HEADLESS_EXECUTE = ("headless subset gate, then the runner", "strict allowlist and destructive block")
    INTERACTIVE_READ = ("interactive-terminal session and terminal read", "identity ownership validation")
    HEADLESS_READ = ("headless session read", "session existence and policy")
    INTERACTIVE_TERMINATE = ("interactive-terminal terminate", "identity validation")
    HEADLESS_TERMINATE = ("headless session terminate", "session existence and policy")
    LIST = ("active identity registry", "scope filtering by mode and context")

    def __init__(self, path: str, gate: str) -> None:
        self.path = path
        self.gate = gate


def find_route(action: Action, mode: Mode | None) -> ContractRoute:
    """The matrix. `mode` is the request's for execute, the identity's for follow-ups, ignored for `list`."""
    if action == "list":
        return ContractRoute.LIST
    assert mode is not None, "a mode is settled before routing"
    interactive = mode == "interactive"
    match action:
        case "execute":
            return ContractRoute.INTERACTIVE_EXECUTE if interactive else ContractRoute.HEADLESS_EXECUTE
        case "read_output":
            return ContractRoute.INTERACTIVE_READ if interactive else ContractRoute.HEADLESS_READ
        case "terminate":
            return ContractRoute.INTERACTIVE_TERMINATE if interactive else ContractRoute.HEADLESS_TERMINATE
        case _:
            assert_never(action)
