"""Whether a failed command's last words sound like the sandbox: a hint for its caller, never a decision."""

from __future__ import annotations

from wsh.sandbox.hold import Holding

_LINES = 20
_SAYINGS: tuple[tuple[str, str], ...] = (
    ("read-only file system", "EROFS"),
    ("permission denied", "EACCES"),
    ("network is unreachable", "ENETUNREACH"),
    ("operation not permitted", "EPERM"),
    ("erofs", "EROFS"),
    ("eacces", "EACCES"),
    ("enetunreach", "ENETUNREACH"),
)


def find_denied(holding: Holding, output: str) -> dict[str, object] | None:
    """The last line of `output` that names a refusal of the kernel's, with what holds the session; None if none does."""
    for line in reversed(output.splitlines()[-_LINES:]):
        lower = line.lower()
        for saying, error in _SAYINGS:
            if saying in lower:
                return {"profile": holding.profile.name, "error": error, "line": line.strip()[:300]}
    return None
