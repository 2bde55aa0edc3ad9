"""A command that runs in a session, followed by `wsh run`: its lines as they come, and its end however long it takes."""

from __future__ import annotations

import time

from wsh.cli.declare import echo
from wsh.cli.request import call, session_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wsh.wire.error import WshError

_LOOK_S = 0.15
_PAGE = 1000
_BEGIN_S = 30.0
"""How long a shell may take to begin what was typed."""
_WAIT_MS = 24 * 3600 * 1000
"""More than a server grants to one request; it cuts this to its own limit."""


class LineFollower:
    """Prints whole lines of the next command `text` of `session` while it runs, from a thread of its own."""

    def __init__(self, session: str, text: str) -> None:
        from threading import Event, Thread

        self._session, self._text = session, text
        self.printed = 0
        """Lines that were printed."""
        known = call("GET", session_path(session, "/commands"), start=False, doing="")
        self._id = known[-1]["id"] + 1 if known else 1
        self._stop = Event()
        self._thread = Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        from wsh.wire.error import WshError

        is_ours = False
        while not self._stop.wait(_LOOK_S):
            try:
                if not is_ours:
                    # Another caller's command may come first.
                    found = call("GET", session_path(self._session, f"/commands/{self._id}"), start=False, doing="")
                    is_ours = found["command"] == self._text
                    self._id += not is_ours
                if is_ours:
                    self._print_new()
            except WshError:  # it has not begun, or the server is gone, which the request itself tells
                continue

    def _print_new(self) -> None:
        page = read_page(self._session, self._id, self.printed)
        # The last line may not be complete.
        whole = page["lines"] if page["offset"] + len(page["lines"]) < page["total"] else page["lines"][:-1]
        if whole:
            echo("\n".join(whole))
            self.printed += len(whole)


def read_page(session: str, id: int, offset: int) -> Any:
    query = {"offset": offset, "limit": _PAGE}
    return call("GET", session_path(session, f"/commands/{id}/output"), query=query, start=False, doing="")


def wait_on(session: str, late: WshError) -> dict[str, Any]:
    """The end of the command that `late` tells of, as `POST …/run` would have told it. Waits as long as it takes."""
    from wsh.wire.error import WaitTimeout

    facts = late.to_wire()["details"]
    id, generation = facts["command_id"], facts["generation"]
    query = {"command": True, "input_wanted": True, "exit": True, "last_generation": generation}
    query |= {"max_wait_ms": _WAIT_MS, "format": "plain"}
    until = time.monotonic() + _BEGIN_S
    while True:
        try:
            seen = call("GET", session_path(session, "/idle"), query=query, start=False, doing="running")
        except WaitTimeout:
            continue
        id = seen.get("command_id") if id is None else id
        if id is not None or seen["ended_by"] == "exit" or time.monotonic() >= until:
            break
        # It was typed and had not begun at the deadline. The shell that is about to read it wants input, too.
        id = call("GET", session_path(session, "/state"), start=False, doing="").get("command_id")
        time.sleep(_LOOK_S)
    if id is None:
        return {"finished_by": "exit" if seen["ended_by"] == "exit" else "prompt", "screen": seen["screen"]}
    found = call("GET", session_path(session, f"/commands/{id}"), start=False, doing="")
    lines: list[str] = []
    while page := read_page(session, id, len(lines))["lines"]:
        lines += page
    ended = {"command_id": id, "exit_code": found["exit_code"], "duration_ms": found["duration_ms"]}
    # A command that has ended is no program that waits for input, though the shell behind it is.
    how = "exit" if seen["ended_by"] == "exit" else "command" if found["state"] != "running" else "prompt"
    return ended | {"output": "\n".join(lines), "finished_by": how, "screen": seen["screen"]}
