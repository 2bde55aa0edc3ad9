"""What a profile needs and what a backend holds. A profile is started only on a backend that claims everything it needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from wsh.sandbox.profile import Profile


class Claim(StrEnum):
    WRITES = "writes"
    READS = "reads"
    ATTRIBUTES = "attributes"
    PROTECTED = "protected"
    NETWORK = "network"
    LOOPBACK = "loopback"
    SOCKETS = "sockets"
    SIGNALS = "signals"
    PROCESSES = "processes"
    OBJECTS = "objects"
    TERMINAL = "terminal"
    PRIVILEGES = "privileges"
    FILE_SIZE = "file_size"
    PROCESS_COUNT = "process_count"
    MEMORY = "memory"


MEANING: Mapping[Claim, str] = {
    Claim.WRITES: "no file outside the writable roots is changed, made, moved, linked or removed",
    Claim.READS: "no file outside the readable roots is read or executed, and no folder there is listed",
    Claim.ATTRIBUTES: "mode, owner, times and extended attributes outside the writable roots stay as they are",
    Claim.PROTECTED: "the protected paths of a project cannot be changed although it is writable",
    Claim.NETWORK: "nothing outside is reached unless the profile says so",
    Claim.LOOPBACK: "with `loopback`, servers inside are reached from inside only, and none outside is reached",
    Claim.SOCKETS: "no unix, raw, packet or netlink socket is opened",
    Claim.SIGNALS: "no process outside gets a signal",
    Claim.PROCESSES: "processes outside cannot be seen",
    Claim.OBJECTS: "shared memory, semaphores and message queues of others are not reached",
    Claim.TERMINAL: "nothing is typed into a terminal",
    Claim.PRIVILEGES: "no privilege is gained and no namespace is made",
    Claim.FILE_SIZE: "no file grows past the profile's limit",
    Claim.PROCESS_COUNT: "the session has at most so many processes",
    Claim.MEMORY: "the session has at most so much memory",
}

_ALWAYS = frozenset(
    {
        Claim.WRITES,
        Claim.READS,
        Claim.ATTRIBUTES,
        Claim.SOCKETS,
        Claim.SIGNALS,
        Claim.OBJECTS,
        Claim.TERMINAL,
        Claim.PRIVILEGES,
    }
)


def find_needs(profile: Profile) -> frozenset[Claim]:
    """What must hold for the profile to be what it says. That others' processes are hidden is welcome and not needed."""
    needs = set(_ALWAYS)
    if profile.writes:
        needs.add(Claim.PROTECTED)
    if profile.network != "on":
        needs.add(Claim.NETWORK)
    if profile.network == "loopback":
        needs.add(Claim.LOOPBACK)
    if profile.file_bytes is not None:
        needs.add(Claim.FILE_SIZE)
    if profile.processes is not None:
        needs.add(Claim.PROCESS_COUNT)
    if profile.memory_bytes is not None:
        needs.add(Claim.MEMORY)
    return frozenset(needs)


def explain(missing: frozenset[Claim] | set[Claim]) -> str:
    return "; ".join(f"{claim.value}: {MEANING[claim]}" for claim in Claim if claim in missing)
