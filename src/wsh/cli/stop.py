from __future__ import annotations

import os
import time

from wsh.cli.declare import Failure, Option, command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call

_ANSWER_S = 10.0
_END_S = 30.0


@command("stop", Option("--keep", kind=bool, help="Leave the sessions running for the next server."), json_option)
def stop(keep: bool, as_json: bool) -> None:
    """Stop the server and end its sessions; returns when it is gone.

    Where no server runs, or it does not answer, the sessions are ended through their keeper.
    """

    try:
        query = {"keep": keep or None}
        answer = call("POST", "/server/stop", query=query, start=False, doing="stopping", answer_s=_ANSWER_S)
        pid = int(answer["pid"])
    except Exception as problem:
        code = getattr(problem, "code", "")
        if code == "server_silent" and not keep:
            raise _stop_without(problem) from None
        if code != "server_gone":
            raise
        from wsh.cli.keeper import count_children, stop_keeper

        ended = count_children() if keep else stop_keeper()
        if as_json:
            print_json({"stopped": not keep and ended is not None, "pid": None, "kept": keep and bool(ended)})
        elif ended is None:
            echo("No server runs.")
        elif keep:
            echo(f"No server runs; {ended} sessions wait for the next one.")
        else:
            echo(f"No server runs; {ended} sessions were ended through their keeper.")
        return
    if not _is_gone(pid):
        raise Failure(f"Process {pid} was told to end and does not; look into its log.")
    if as_json:
        print_json({"stopped": True, "pid": pid, "kept": keep})


def _stop_without(problem: Exception) -> Exception:
    """Ends the sessions of a server that does not answer. What is left is its process, and the error says so."""
    from wsh.cli.keeper import stop_keeper
    from wsh.wire.error import ServerSilent

    return ServerSilent(problem.facts["pid"], stop_keeper()) if isinstance(problem, ServerSilent) else problem


def _is_gone(pid: int) -> bool:
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if _is_unreaped(pid):
            return True
        time.sleep(0.02)
    return False


def _is_unreaped(pid: int) -> bool:
    """True for a process that has ended and whose parent has not yet collected its status."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
