"""The one part of deciding that must look at the disk: where a folder really is."""

from __future__ import annotations

import os

from wsh.wire.error import CwdNotFound


def canonical_cwd(cwd: str | None, base: str) -> str:
    """`cwd` (relative to `base`) without `..` and symbolic links. Raises CwdNotFound if it is no folder."""
    given = base if cwd is None else os.path.join(base, cwd)
    try:
        found = os.path.realpath(given, strict=True)
        if not os.path.isdir(found) or not os.access(found, os.X_OK):
            raise CwdNotFound(given)
    except (OSError, ValueError):
        raise CwdNotFound(given) from None
    return found
