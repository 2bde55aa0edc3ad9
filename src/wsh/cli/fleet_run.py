"""One command on many nodes at once, with a table that fills as they end."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any

from wsh.cli.output import clean, print_table
from wsh.cli.request import call
from wsh.wire.error import WshError

_AT_ONCE = 32
_HEAR_S = 0.2
_EVERY_S = 0.1
_WAIT_MS = 5000
"""So long one request waits; then the output is asked for again."""
_COLUMNS = ("node", "state", "exit", "seconds", "output")


def run_everywhere(
    nodes: list[dict[str, Any]], words: tuple[str, ...], timeout_s: float, *, live: bool
) -> list[dict[str, Any]]:
    """What came of it on each node, in the order of their names. Ctrl+C ends the waiting; what was begun goes on there."""
    table: dict[str, dict[str, Any]] = {
        one["name"]: {"node": one["name"], "state": "waiting", "exit_code": None, "seconds": None, "output": ""}
        for one in sorted(nodes, key=lambda one: one["name"])
    }
    lock = threading.Lock()
    todo = deque(nodes)
    failures: list[BaseException] = []

    def work(node: dict[str, Any]) -> None:
        row = table[node["name"]]

        def tell(**facts: Any) -> None:
            with lock:
                row.update(facts)

        _run_on(None if node["here"] else node["name"], words, timeout_s, tell)

    def work_off() -> None:
        try:
            while todo:
                work(todo.popleft())
        except IndexError:
            pass  # another took the last one
        except BaseException as problem:
            failures.append(problem)

    # Threads of a pool would be waited for at the end of this process, also after Ctrl+C.
    threads = [threading.Thread(target=work_off, daemon=True) for _ in range(min(_AT_ONCE, len(nodes)))]
    try:
        for thread in threads:
            thread.start()
        if live:
            _show_while(table, lock, lambda: not any(thread.is_alive() for thread in threads))
        for thread in threads:
            while thread.is_alive():  # Python hears a Ctrl+C that comes as a wait begins only when that wait is over
                thread.join(_HEAR_S)
    except KeyboardInterrupt:
        with lock:
            for row in table.values():
                row["state"] = {"waiting": "not begun", "running": "still running"}.get(row["state"], row["state"])
            return [dict(row) for row in table.values()]
    if failures:
        raise failures[0]
    return list(table.values())


def show_table(done: list[dict[str, Any]]) -> None:
    print_table(_COLUMNS, list(map(_row, done)))


def _run_on(host: str | None, words: tuple[str, ...], timeout_s: float, tell: Any) -> None:
    started = time.monotonic()

    def ended(state: str, exit_code: int | None = None) -> None:
        tell(state=state, exit_code=exit_code, seconds=round(time.monotonic() - started, 2))

    tell(state="running")
    request: dict[str, Any] = {
        "action": "execute",
        "invocation": {"mode": "headless", "intent": "execute_command"},
        "execution": {"command": words[0], "args": list(words[1:])},
        "runtime": {"timeout_ms": _WAIT_MS},
    }
    output, refused = "", "refused"
    try:
        while True:
            answer = call("POST", "/terminal", query={"host": host}, json_body=request, doing="")
            result = answer.get("result") or {}
            output += str(result.get("stdout") or "") + str(result.get("stderr") or "")
            tell(output=output)
            if answer.get("status") != "accepted":
                break
            if time.monotonic() - started > timeout_s:
                return ended("still running")
            identity = answer["identity"]["session_id"]
            cursor = result.get("next_cursor")
            refused = "lost"
            request = {
                "action": "read_output",
                "target": {"session_id": identity} | ({} if cursor is None else {"cursor": cursor}),
                "runtime": {"timeout_ms": _WAIT_MS},
            }
    except WshError as problem:
        tell(output=_add_line(output, problem.message))
        return ended("out of reach" if problem.code == "host_unreachable" else refused)
    if answer.get("status") == "failed":
        error = answer.get("error") or {}
        tell(output=_add_line(output, str(error.get("message") or "")))
        return ended(refused)
    ended("ended", result.get("exit_code"))


def _add_line(output: str, line: str) -> str:
    """What was printed stays, and why there is no more comes last."""
    return f"{output}{'' if output.endswith(chr(10)) or not output else chr(10)}{line}"


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    lines = [line for line in str(one["output"]).splitlines() if line.strip()]
    exit_code = "" if one["exit_code"] is None else one["exit_code"]
    return one["node"], one["state"], exit_code, one["seconds"] or "", lines[-1] if lines else ""


def _show_while(table: dict[str, dict[str, Any]], lock: threading.Lock, is_over: Any) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    def draw() -> Table:
        drawn = Table(box=None, pad_edge=False, header_style="bold")
        for column in _COLUMNS:
            drawn.add_column(column, overflow="fold")
        with lock:
            rows = list(map(_row, table.values()))
        for row in rows:
            drawn.add_row(*(Text(clean(cell)) for cell in row))
        return drawn

    with Live(draw(), console=Console(file=sys.stdout), auto_refresh=False) as shown:
        while not is_over():
            time.sleep(_EVERY_S)
            shown.update(draw(), refresh=True)
        shown.update(draw(), refresh=True)
