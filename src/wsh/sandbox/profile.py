"""A profile: what a sandboxed session may do. `None` stands for `off`, a session without a sandbox."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

Network: TypeAlias = Literal["off", "loopback", "on"]
NETWORKS: tuple[Network, ...] = get_args(Network)

OFF = "off"

ENVIRONMENT = tuple(
    "TERM COLORTERM LANG LANGUAGE LC_* TZ PATH HOME USER LOGNAME SHELL EDITOR VISUAL PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER LESS "
    "DEBIAN_FRONTEND CI NO_COLOR FORCE_COLOR WSH_SESSION PWD".split()
)
"""Variables that are kept unless a profile says otherwise. Names of secrets are not among them."""

_NEVER_KEPT = ("WSH_", "PM_")
_NEVER_KEPT_NAMES = frozenset(
    "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR DOCKER_HOST".split()
)
"""Doors to the outside; their names would only mislead inside."""


@dataclass(frozen=True)
class Profile:
    """Roots are canonical folders. The session's own folder is always readable, and writable with `workspace`."""

    name: str
    workspace: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    """Beside the folders of the system."""
    network: Network = "off"
    environment: tuple[str, ...] = ENVIRONMENT
    processes: int | None = None
    file_bytes: int | None = None
    memory_bytes: int | None = None

    @property
    def writes(self) -> bool:
        return self.workspace or bool(self.writable)

    def keeps_variable(self, name: str) -> bool:
        if name != "WSH_SESSION" and (name.startswith(_NEVER_KEPT) or name in _NEVER_KEPT_NAMES):
            return False
        exact, beginnings = _split_names(self.environment)
        return name in exact or name.startswith(beginnings)

    def to_facts(self) -> dict[str, Any]:
        """As it is kept with a session, so that a changed policy does not change what is known of it."""
        return {
            "name": self.name,
            "workspace": self.workspace,
            "writable": list(self.writable),
            "readable": list(self.readable),
            "network": self.network,
            "environment": list(self.environment),
            "processes": self.processes,
            "file_bytes": self.file_bytes,
            "memory_bytes": self.memory_bytes,
        }


@functools.lru_cache(32)
def _split_names(names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Whole names, and beginnings that ended in `*`."""
    return frozenset(name for name in names if name[-1] != "*"), tuple(name[:-1] for name in names if name[-1] == "*")


def read_facts(facts: Mapping[str, Any]) -> Profile:
    """The inverse of `to_facts`."""

    def texts(key: str) -> tuple[str, ...]:
        return tuple(map(str, facts.get(key) or ()))

    network = facts.get("network")
    return Profile(
        str(facts["name"]),
        bool(facts.get("workspace")),
        writable=texts("writable"),
        readable=texts("readable"),
        network=network if network in NETWORKS else "off",
        environment=texts("environment"),
        processes=facts.get("processes"),
        file_bytes=facts.get("file_bytes"),
        memory_bytes=facts.get("memory_bytes"),
    )


READ_ONLY = Profile("read-only")
WORKSPACE = Profile("workspace", workspace=True)
WORKSPACE_NETWORK = replace(WORKSPACE, name="workspace+network", network="on")
BUILT_IN = {profile.name: profile for profile in (READ_ONLY, WORKSPACE, WORKSPACE_NETWORK)}
STRICTEST = READ_ONLY


def is_within(inner: Profile | None, outer: Profile | None) -> bool:
    """Whether `inner` allows nothing that `outer` does not allow too. The folders of the two sessions are not compared."""
    if outer is None:
        return True
    if inner is None:
        return False
    return (
        (outer.workspace or not inner.workspace)
        and all(_covered(root, outer.writable) for root in inner.writable)
        and all(_covered(root, (*outer.readable, *outer.writable)) for root in inner.readable)
        and NETWORKS.index(inner.network) <= NETWORKS.index(outer.network)
        and all(_keeps(outer, name) for name in inner.environment)
        and all(
            most is None or (own is not None and own <= most)
            for own, most in (
                (inner.processes, outer.processes),
                (inner.file_bytes, outer.file_bytes),
                (inner.memory_bytes, outer.memory_bytes),
            )
        )
    )


def _keeps(outer: Profile, name: str) -> bool:
    exact, beginnings = _split_names(outer.environment)
    return name in exact or name.startswith(beginnings)


def _covered(root: str, roots: tuple[str, ...]) -> bool:
    return any(contains(other, root) for other in roots)


def contains(folder: str, path: str) -> bool:
    """Whether `path` is `folder` or below it. Both are absolute and normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
