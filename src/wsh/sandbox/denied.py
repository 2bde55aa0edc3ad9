"""Whether a failed command's last words sound like the sandbox: a hint for its caller, never a decision."""

from __future__ import annotations

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


HOW_TO_ASK = 'The same call with sandbox "off" and a reason asks a person to run this one command, as it is, without the sandbox.'


def find_denied(profile: str, output: str) -> dict[str, object] | None:
    """The last line of `output` that names a refusal of the kernel's, the profile that holds, and how to ask; None if none does."""
    for line in reversed(output.splitlines()[-_LINES:]):
        lower = line.lower()
        for saying, error in _SAYINGS:
            if saying in lower:
                return {"profile": profile, "error": error, "line": line.strip()[:300], "ask": HOW_TO_ASK}
    return None
