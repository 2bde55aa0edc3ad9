"""What a desktop end must be able to do beside showing and running: tell its policy."""

from __future__ import annotations

from typing import Protocol

from wsh.approval.end import ApprovalEnd
from wsh.bridge.frame import Policy


class DesktopEnd(ApprovalEnd, Protocol):
    """The program at the desktop."""

    def policy(self) -> Policy | None:
        """What the server is told, so that headless commands over there obey this window."""
