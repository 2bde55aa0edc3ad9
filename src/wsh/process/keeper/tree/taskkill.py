"""The Windows branch of killing a tree: `taskkill`. Kept apart because it shares nothing with the marks of POSIX."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Run = Callable[[Sequence[str]], tuple[int, str]]


_NOT_FOUND = 128


def command_line(pid: int) -> list[str]:
    return ["taskkill", "/pid", str(pid), "/T", "/F"]


def kill_tree(pid: int, run: Run) -> str | None:
    """Kill `pid` and its descendants. None is success, "not found" included; otherwise what taskkill said."""
    code, output = run(command_line(pid))
    if code == 0 or code == _NOT_FOUND or "not found" in output.lower():
        return None
    return output.strip() or f"taskkill ended with status {code}"
