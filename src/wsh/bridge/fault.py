"""What can go wrong on the bridge, told apart by what an operator would do about it.

These never reach a caller as they are: the contract turns each into one code of its taxonomy.
"""

from __future__ import annotations

from typing import Any


class BridgeFault(Exception):
    """Root. `details` holds facts that may be shown to the caller; never a token."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class Unreachable(BridgeFault):
    """No TCP connection came about: refused, no such host, no route, no answer to the connection attempt."""


class HandshakeTimeout(BridgeFault):
    """Somebody accepted the connection and then said nothing."""


class HandshakeRefused(BridgeFault):
    """The other end answered, and will not talk to us: token, version, or no bridge at all."""


class Dropped(BridgeFault):
    """The connection ended under us. Whether a request that was under way ran is not known."""


class FrameTooLarge(BridgeFault):
    """A frame over the agreed size, seen before it was sent or while it was read."""


class Malformed(BridgeFault):
    """A line that is not a frame."""


class PeerError(BridgeFault):
    """The other end answered with an error frame; `code` is that frame's."""

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message, **details)
        self.code = code
