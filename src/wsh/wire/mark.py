"""Was this process started, at any distance, by a keeper?

Every descendant of a keeper carries a mark that survives new sessions, double forks and emptied environments: a limit on
real-time scheduling that nobody else sets (see `wsh.process`). What is for people alone is refused to whoever carries it.
"""

from __future__ import annotations

MARK_BASE = 1 << 50


def is_kept(pid: int | str = "self") -> bool:
    """Whether process `pid` descends from a keeper. A process that is gone or cannot be read counts as one that does."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii", errors="replace") as source:
            for line in source:
                if line.startswith("Max realtime timeout"):
                    soft = line.split()[3]
                    return soft != "unlimited" and int(soft) >= MARK_BASE
    except (OSError, ValueError, IndexError):
        return True
    return False
