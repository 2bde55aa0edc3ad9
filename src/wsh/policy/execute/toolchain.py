"""Programs whose version a folder chooses: cargo and rustc by rustup, go, the shims of asdf and its kin.

Asking one for its version is allowed as shipped. It must neither run what a folder names by its path, nor fetch.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

ENVIRONMENT: Mapping[str, str] = {"GOTOOLCHAIN": "local", "RUSTUP_AUTO_INSTALL": "0"}
_SELECTORS = (
    "rust-toolchain.toml", "rust-toolchain", ".tool-versions", "mise.toml", ".mise.toml", ".python-version", ".node-version", ".nvmrc", ".ruby-version",
    ".java-version", ".go-version", ".php-version",
)  # fmt: skip
_MAX_BYTES = 64 * 1024


def asks_version(argv: Sequence[str]) -> bool:
    return len(argv) == 2 and argv[1] in ("--version", "-version", "-V", "-v", "version")


def find_selector(program: str, cwd: str) -> str | None:
    """The file that makes `program` run something from a path when it is started in `cwd`; None if there is none."""
    if os.path.basename(os.path.realpath(program)) != "rustup" and "/shims/" not in program:
        return None
    folder = cwd
    while True:
        for name in _SELECTORS:
            selector = os.path.join(folder, name)
            if _names_path(selector):
                return selector
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _names_path(selector: str) -> bool:
    try:
        # A FIFO in its place would be waited for.
        with open(os.open(selector, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return True
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    lines = [line.partition(b"#")[0] for line in text.splitlines()]
    return len(text) > _MAX_BYTES or any(b"/" in line or b"\\" in line for line in lines)
