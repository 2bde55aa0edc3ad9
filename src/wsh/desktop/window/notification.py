"""A desktop notification, by whichever program of the desktop can send one.

The call takes an unsigned number that the Qt binding cannot make, so a small program that every desktop has is asked to make it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_SHOWN_MS = "10000"


def find_sender(environ: Mapping[str, str]) -> str | None:
    """The program that will be asked; None where there is no desktop to notify."""
    if not environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return None
    return next((name for name in ("notify-send", "gdbus", "busctl") if shutil.which(name)), None)


def make_words(sender: str, title: str, text: str, *, urgent: bool) -> Sequence[str]:
    """The command that shows `title` and `text`, which are data: nothing in them is an option or markup."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if sender == "notify-send":
        level = "critical" if urgent else "normal"
        return ["notify-send", "-a", "interactive-terminal", "-u", level, "-t", _SHOWN_MS, "--", title, text]
    if sender == "gdbus":
        quoted = [_quote(part) for part in ("interactive-terminal", "utilities-terminal", title, text)]
        where = ["--session", "--dest", _NAME, "--object-path", _PATH, "--method", f"{_NAME}.Notify"]
        hints = "{'urgency': <byte " + ("2" if urgent else "1") + ">}"
        return ["gdbus", "call", *where, quoted[0], "0", quoted[1], quoted[2], quoted[3], "@as []", hints, _SHOWN_MS]
    values = ["interactive-terminal", "0", "utilities-terminal", title, text, "0", "0", _SHOWN_MS]
    return ["busctl", "--user", "call", _NAME, _PATH, _NAME, "Notify", "susssasa{sv}i", "--", *values]


def _quote(text: str) -> str:
    """A text as GVariant writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def notify(title: str, text: str, *, urgent: bool = False) -> bool:
    """Fire and forget. True if a notifier exists."""
    sender = find_sender(os.environ)
    if sender is None:
        return False
    words = list(make_words(sender, title, text, urgent=urgent))
    # Runs in its own session, so that a hung notifier cannot block us.
    subprocess.Popen(
        ["sh", "-c", '"$@" & exit 0', "notify", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ).wait()
    return True
