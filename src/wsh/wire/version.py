"""The version of this build, and with its commit the `toolingVersion` of every tool. Standard library only."""

from __future__ import annotations

VERSION = "0.2.0"


def describe_tooling() -> str:
    """The version and, where it is known, the commit: `0.2.0+g1234567890ab`."""
    from wsh.wire.commit import find_commit  # here, since every command imports this file

    commit = find_commit()
    return VERSION if commit is None else f"{VERSION}+g{commit[:12]}"


DISTRIBUTION = "wsh-terminal"
"""What package indexes call it; `wsh` there is somebody else's."""


def install_hint(extra: str) -> str:
    """The command that adds an optional part."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
