"""The version of this build: `toolingVersion` of every tool, `version` of the server. Standard library only."""

from __future__ import annotations

VERSION = "0.1.0"
DISTRIBUTION = "wsh-terminal"
"""What package indexes call it; `wsh` there is somebody else's."""


def install_hint(extra: str) -> str:
    """The command that adds an optional part."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
