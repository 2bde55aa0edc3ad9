"""wsh: one terminal server that AI agents and people share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wsh.wire.version import VERSION as __version__

__all__ = ["__version__", "connect"]

if TYPE_CHECKING:
    from wsh.client.client import connect


def __getattr__(name: str) -> Any:
    # Late, so that importing one room does not import the client.
    if name == "connect":
        from wsh.client.client import connect

        return connect
    raise AttributeError(name)
