"""Which adapter a request uses. Fixed precedence: the request, the server's configuration, the container signal, the
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.contract.reply.fault import ContractFault, bad_field
from wsh.contract.request.model import ADAPTER_OVERRIDES

AdapterMode: TypeAlias = Literal["local", "bundled", "container_bridge", "local_or_bundled_auto"]
Source: TypeAlias = Literal["request", "configuration", "container", "default"]

MODE_VARIABLE = "PM_TERM_ADAPTER_MODE"
CONTAINER_VARIABLE = "PM_RUNNING_IN_CONTAINER"
_YES = {"true", "1", "yes", "on"}
_NO = {"", "false", "0", "no", "off"}


@dataclass(frozen=True)
class Resolved:
    mode: AdapterMode
    source: Source


def resolve_mode(override: str | None, environ: Mapping[str, str]) -> Resolved:
    """The mode and what settled it. Raises PM_TERM_INVALID_PAYLOAD for an override that is not known."""
    if override is not None:
        return Resolved(_explicit("runtime.adapter_override", override, environ), "request")
    configured = environ.get(MODE_VARIABLE, "").strip()
    if configured:
        return Resolved(_explicit(MODE_VARIABLE, configured, environ), "configuration")
    if is_in_container(environ):
        return Resolved("container_bridge", "container")
    return Resolved("local_or_bundled_auto", "default")


def _explicit(where: str, value: str, environ: Mapping[str, str]) -> AdapterMode:
    match value:
        case "local":
            return "local"
        case "bundled":
            return "bundled"
        case "container_bridge":
            return "container_bridge"
        case "auto":
            return "container_bridge" if is_in_container(environ) else "local_or_bundled_auto"
        case _:
            allowed = ", ".join(ADAPTER_OVERRIDES)
            raise bad_field(where, f"there is no adapter {value[:64]!r}", f"One of {allowed}.", given=value[:64])


def is_in_container(environ: Mapping[str, str]) -> bool:
    value = environ.get(CONTAINER_VARIABLE, "").strip().lower()
    if value in _YES:
        return True
    if value in _NO:
        return False
    raise ContractFault(
        "PM_TERM_INVALID_MODE",
        f"{CONTAINER_VARIABLE} must be true or false.",
        malformed=[{"name": CONTAINER_VARIABLE, "problem": "must be true or false"}],
    )
