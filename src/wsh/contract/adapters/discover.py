"""Which programs could be the desktop, in the order in which they are tried. Looks, never starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.contract.adapters.inputs import BINARY
from wsh.contract.adapters.mode import AdapterMode
from wsh.contract.reply.fault import bad_field

Source: TypeAlias = Literal["configured", "bundled", "path"]
PROGRAM = "interactive-terminal"

ORDER: dict[AdapterMode, tuple[Source, ...]] = {
    "local": ("configured", "path"),
    "bundled": ("bundled",),
    "local_or_bundled_auto": ("configured", "bundled", "path"),
}


@dataclass(frozen=True)
class DesktopCandidate:
    """`path` is None when there is nothing of that source; `problem` says why it cannot be started."""

    source: Source
    path: str | None
    problem: str | None = None


def discover(
    mode: AdapterMode,
    environ: Mapping[str, str],
    *,
    binary_path: str | None,
    listed_binaries: Collection[str],
    bundled_path: str | None,
    search_path: str,
) -> list[DesktopCandidate]:
    """Candidates in strict order. Raises PM_TERM_INVALID_PAYLOAD for a configured path that may not be used."""
    configured = _configured(environ, binary_path, listed_binaries)
    found: list[DesktopCandidate] = []
    for source in ORDER[mode]:
        match source:
            case "configured":
                if configured is not None:
                    found.append(_check(source, configured))
            case "bundled":
                found.append(_check(source, bundled_path))
            case "path":
                found.append(_check(source, shutil.which(PROGRAM, path=search_path)))
    return found


def _configured(environ: Mapping[str, str], binary_path: str | None, listed: Collection[str]) -> str | None:
    from_environ = environ.get(BINARY, "").strip() or None
    if from_environ is not None and not os.path.isabs(from_environ):
        raise bad_field(BINARY, "must be an absolute path", reason="relative_binary_path", given=from_environ[:256])
    if binary_path is None:
        return from_environ
    if not os.path.isabs(binary_path):
        raise bad_field("runtime.binary_path", "must be an absolute path", reason="relative_binary_path")
    if binary_path != from_environ and binary_path not in listed:
        raise bad_field(
            "runtime.binary_path",
            "is not a program that the operator has listed",
            "The setting bridge.binaries lists what may be used.",
            reason="binary_not_listed",
        )
    return binary_path


def _check(source: Source, path: str | None) -> DesktopCandidate:
    if path is None:
        return DesktopCandidate(source, None, "not found")
    if not os.path.exists(path):
        return DesktopCandidate(source, path, "does not exist")
    if not os.path.isfile(path):
        return DesktopCandidate(source, path, "is not a file")
    if not os.access(path, os.X_OK):
        return DesktopCandidate(source, path, "is not executable")
    return DesktopCandidate(source, path)
