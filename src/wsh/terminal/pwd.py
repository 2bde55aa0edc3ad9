"""The working directory a program reports, as a path that may be believed to be one of this host."""

from __future__ import annotations

import os
from urllib.parse import unquote_to_bytes, urlsplit

MAX_PATH = 4096


def path_of(raw: bytes) -> str | None:
    """An OSC 7 URL (or a bare absolute path, as OSC 9;9 has it) to a path; nothing for other hosts and for rubbish."""
    if not raw or len(raw) > 3 * MAX_PATH:
        return None
    text = raw.decode("utf-8", "replace")
    if text.startswith("/"):
        return _checked(text)
    try:
        url = urlsplit(text)
        host = (url.hostname or "").lower()
    except ValueError:
        return None
    if url.scheme not in ("file", "kitty-shell-cwd"):
        return None
    here = os.uname().nodename.lower()
    if host not in ("", "localhost", here, here.partition(".")[0]) and host.partition(".")[0] != here:
        return None
    # urlsplit takes '?' and '#' for a query; in a path that a shell did not escape they are part of the name
    path = text.split("://", 1)[1]
    path = path[path.index("/") :] if "/" in path else ""
    if url.scheme == "file":
        path = os.fsdecode(unquote_to_bytes(path))
    return _checked(path)


def _checked(path: str) -> str | None:
    if not path.startswith("/") or len(path) > MAX_PATH:
        return None
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in path):
        return None
    return path
