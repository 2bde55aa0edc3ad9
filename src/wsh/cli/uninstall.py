"""`wsh uninstall`: everything that wsh wrote on this machine for this user, listed, and removed when asked to."""

from __future__ import annotations

import os
import sys

from wsh.cli.declare import Failure, Option, command, echo, json_option
from wsh.cli.output import print_json


@command(
    "uninstall",
    Option("--purge", kind=bool, help="Remove what is listed. Without this, nothing is removed."),
    Option("--yes", "-y", kind=bool, help="Do not ask."),
    json_option,
)
def uninstall(purge: bool, yes: bool, as_json: bool) -> None:
    """List what wsh wrote for this user: sockets, journals, settings, policy, tokens, units. Remove it with --purge.

    The program itself is removed by whatever installed it, such as pip, pipx or uv.
    """
    from wsh.cli.service import unit_folder
    from wsh.wire.system.runtime_path import config_folder, runtime_folder, server_name, state_folder

    runtime = runtime_folder(os.environ, server_name(os.environ))
    units = unit_folder()
    found = [
        folder for folder in (runtime, state_folder(os.environ), config_folder(os.environ)) if os.path.exists(folder)
    ]
    if os.path.isdir(units):
        found += [os.path.join(units, file) for file in sorted(os.listdir(units)) if _is_unit_of_ours(units, file)]
    if purge and found:
        _check_that_nothing_runs(runtime)
        if not yes:
            _ask(found)
        _end_connections()
        _clear_sandboxes(state_folder(os.environ))
        _remove(found)
    if as_json:
        print_json({"found": found, "removed": purge})
    elif not found:
        echo("wsh has written nothing for this user.")
    else:
        echo("\n".join(f"{'removed ' if purge else ''}{path}" for path in found))
        if not purge:
            echo("Nothing was removed; wsh uninstall --purge removes these.", err=True)


def _is_unit_of_ours(folder: str, file: str) -> bool:
    if not file.startswith("wsh") or not file.endswith((".service", ".socket")):
        return False
    with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    return "Description=wsh: terminals that agents" in text or "Description=Sockets of wsh" in text


def _check_that_nothing_runs(runtime: str) -> None:
    from _socket import AF_UNIX
    from _socket import socket as Socket

    names = [name for name in os.listdir(runtime) if name.endswith(".sock")] if os.path.isdir(runtime) else []
    for name in names:
        probe = Socket(AF_UNIX)
        try:
            probe.connect(os.path.join(runtime, name))
        except OSError:
            continue
        finally:
            probe.close()
        raise Failure(f"{name} is in use: end its sessions first, with `wsh stop` (WSH_SERVER names other servers).")


def _end_connections() -> None:
    from wsh.cli.keeper import end_connections
    from wsh.wire.system.place import find_places

    end_connections(find_places())


def _clear_sandboxes(state: str) -> None:
    """Take away what sandboxes of servers that were killed have left in projects: afterwards nobody knows of it."""
    from pathlib import Path

    from wsh.sandbox.point import sweep_all

    sweep_all(Path(state, "sandbox"))


def _ask(found: list[str]) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("Removing needs a person who types a word, or --yes.")
    echo("These will be removed, with all journals, transcripts and rules in them:\n" + "\n".join(found))
    echo("Type 'remove' to go on: ", end="")
    if sys.stdin.readline().strip() != "remove":
        raise Failure("Nothing was removed.")


def _remove(found: list[str]) -> None:
    from shutil import rmtree

    for path in found:
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path)
        else:
            os.unlink(path)
