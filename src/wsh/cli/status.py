from __future__ import annotations

import os
import sys

from wsh.cli.declare import command, echo, json_option
from wsh.cli.output import NO_SERVER, clean, print_json
from wsh.cli.request import ANSWER_S, call, is_keeper_there
from wsh.wire.json.text import read_json
from wsh.wire.system.runtime_path import server_name, server_socket


@command("status", json_option)
def status(as_json: bool) -> None:
    """Say whether a server runs, where it listens and what it holds. Status 6 when none runs."""
    socket = server_socket(os.environ)
    if not os.path.exists(socket):
        _tell_of_none(socket, as_json)
    try:
        with open(socket.removesuffix(".sock") + ".json", "rb") as file:
            known: dict[str, object] = read_json(file.read())
    except (OSError, ValueError):
        known = {}
    try:
        info = call("GET", "/server/info", start=False, answer_s=ANSWER_S)
        sessions = call("GET", "/sessions", start=False, answer_s=ANSWER_S)
    except Exception as problem:
        if getattr(problem, "code", "") != "server_gone":
            raise
        _tell_of_none(socket, as_json)
    found = {
        "running": True,
        "url": known.get("url"),
        "pid": known.get("pid"),
        "socket": socket,
        "server": server_name(os.environ),
        "version": info["version"],
        "sessions": len(sessions),
        "live_sessions": sum(1 for session in sessions if session["running"]),
        "ephemeral": known.get("ephemeral", False),
        "warnings": info.get("warnings", []),
    }
    if as_json:
        print_json(found)
        return
    echo(f"{found['url']}  (wsh {found['version']}, pid {found['pid']}{', ephemeral' if found['ephemeral'] else ''})")
    echo(f"{found['live_sessions']} of {found['sessions']} sessions run; unix socket {found['socket']}")
    for warning in found["warnings"]:
        echo(f"warning: {clean(warning)}", err=True)


def _tell_of_none(socket: str, as_json: bool) -> None:
    if as_json:
        print_json({"running": False, "url": None, "pid": None, "socket": socket, "sessions": 0})
    else:
        echo("No server runs. Start one with: wsh server")
        if is_keeper_there():
            echo(
                "The sessions of the last one go on: their keeper holds them, and nothing is lost. `wsh attach` brings them back, too."
            )
    sys.exit(NO_SERVER)
