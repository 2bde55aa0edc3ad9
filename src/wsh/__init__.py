"""wsh: one terminal server that AI agents and people share."""

from __future__ import annotations

from wsh.wire.version import VERSION as __version__

__all__ = ["__version__", "connect"]

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported: every command would pay for it
    from wsh.client.client import connect


def __getattr__(name: str) -> object:
    # Late, so that importing one room does not import the client.
    if name == "connect":
        from wsh.client.client import connect

        return connect
    raise AttributeError(name)
