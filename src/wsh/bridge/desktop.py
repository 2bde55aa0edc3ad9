"""What a desktop end must be able to do beside showing and running: tell its policy."""

from __future__ import annotations

from typing import Protocol

from wsh.approval.approver import Approver
from wsh.bridge.frame import PolicyFrame


class DesktopApprover(Approver, Protocol):
    """The program at the desktop."""

    def policy(self) -> PolicyFrame | None:
        """What the server is told, so that headless commands over there obey this window."""
