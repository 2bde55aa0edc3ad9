"""A secret among the words of the command line, taken out of what `ps` shows to everybody."""

from __future__ import annotations

import ctypes

_ARG_START = 45
"""Where /proc/PID/stat has the address of the first word, counted behind the program's name."""


def hide_word(secret: str) -> None:
    """Write stars over each place of `secret` in this process's own words. Does nothing where the kernel does not tell where they are."""
    try:
        with open("/proc/self/stat", "rb") as stat, open("/proc/self/cmdline", "rb") as file:
            address = int(stat.read().rpartition(b")")[2].split()[_ARG_START])
            words = file.read()
    except (OSError, ValueError, IndexError):
        return
    told = secret.encode()
    at = words.find(told) if address and told else -1
    while at >= 0:
        ctypes.memset(address + at, ord("*"), len(told))
        at = words.find(told, at + len(told))
