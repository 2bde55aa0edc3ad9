"""Which policy holds for a caller: this machine's file, or that of the window across its container's bridge.

The window's settings are authoritative where there is a window. A policy that came over one bridge holds for the callers
of that bridge and for nobody else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Protocol

from wsh.bridge.frame import PolicyFrame
from wsh.contract.adapters.inputs import BridgeInputs, read_bridge_inputs
from wsh.contract.adapters.mode import resolve_mode
from wsh.contract.reply.fault import ContractFault
from wsh.policy import Policy, strictest_policy
from wsh.policy.file.document import PolicyError, parse_policy

log = logging.getLogger("wsh.contract")

SOURCE = "the desktop across the bridge"


class PolicyFile(Protocol):
    """This machine's policy, as the file stands now."""

    def current(self) -> Policy: ...


class PolicySource:
    def __init__(self, file: PolicyFile) -> None:
        self._file = file
        self._remote: dict[BridgeInputs, Policy] = {}

    def learn(self, inputs: BridgeInputs, frame: PolicyFrame) -> None:
        """A policy came over a bridge. One that cannot be understood is the strictest."""
        try:
            policy = parse_policy(frame.text, SOURCE, time.time())
        except PolicyError as problem:
            log.warning("the desktop's policy cannot be used: %s", problem)
            policy = strictest_policy(str(problem), SOURCE)
        self._remote[inputs] = policy
        log.info("policy %s of the desktop is in force", frame.digest[:16])

    def current(self, environ: Mapping[str, str]) -> Policy:
        if self._remote:
            try:
                if resolve_mode(None, environ).mode == "container_bridge":
                    remote = self._remote.get(read_bridge_inputs(environ))
                    if remote is not None:
                        return remote
            except ContractFault:
                pass  # a bridge that is not configured has no say
        return self._file.current()
