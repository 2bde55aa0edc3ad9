"""Names of local sockets that the kernel takes: a path of a unix socket has at most 107 bytes, and ssh adds 17 while it makes one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from wsh.wire.system.private_file import ensure_private
from wsh.wire.system.runtime_path import temporary

_MOST_BYTES = 107
_NAME_BYTES = len("/0123456789.s") + 17


def find_folder(runtime: Path) -> Path:
    """A private folder for them: in the runtime folder, or one with a short name where that is too deep. It exists then."""
    folder = runtime / "h"
    if not _fits(folder):
        name = f"wsh-{os.getuid()}-{hashlib.sha256(os.fsencode(runtime)).hexdigest()[:10]}"
        folder = Path(temporary(name))
        if not _fits(folder):
            folder = Path("/tmp") / name
    ensure_private(folder)
    return folder


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + _NAME_BYTES <= _MOST_BYTES


def make_name(server: str, host: str, target: str) -> str:
    """Ten characters that are the same for the same host of the same server and no other."""
    return hashlib.sha256(f"{server}\0{host}\0{target}".encode()).hexdigest()[:10]
