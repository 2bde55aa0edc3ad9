from __future__ import annotations

import sys
import time

from wsh.cli.declare import Argument, Failure, Option, echo, group, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call, is_server_there, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wsh.host.ssh.master import SshTarget

_name = Argument("name", metavar="NAME")
_yes = Option("--yes", "-y", kind=bool, help="Install wsh there without asking.")
_CONNECT_S = 30.0


@group("host", json_option, runs_alone=True)
def host(as_json: bool) -> None:
    """Other machines whose sessions are addressed as HOST/NAME. Alone: list them."""
    _list(as_json)


@host.command("list", json_option)
def list_(as_json: bool) -> None:
    """List hosts, whether they can be reached, and since when."""
    _list(as_json)


def _list(as_json: bool) -> None:
    found = call("GET", "/hosts", start=False) if is_server_there() or read_names() else {"hosts": []}
    if as_json:
        print_json(found)
        return
    rows = [
        (one["name"], _state(one), one["version"] or "", one["target"], one["problem"] or "") for one in found["hosts"]
    ]
    print_table(("name", "state", "wsh", "target", "problem"), rows, empty="No hosts. Begin with: wsh host add NAME")


def read_names() -> list[str]:
    """The hosts that were added, without asking the server."""
    import os

    from wsh.wire.json.text import read_json
    from wsh.wire.system.runtime_path import config_folder

    try:
        with open(os.path.join(config_folder(os.environ), "hosts.json"), "rb") as file:
            return list(read_json(file.read()))
    except (OSError, ValueError):
        return []


def _state(one: dict[str, Any]) -> str:
    if one["online"]:
        return "online" if one["same_as"] is None else f"online, the same server as {one['same_as']}"
    return f"offline, last seen {_ago(one['last_seen'])}" if one["last_seen"] else "offline, not seen yet"


def _ago(then: float) -> str:
    seconds = max(0, int(time.time() - then))
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word} ago"
    return f"{seconds} s ago"


@host.command(
    "add",
    Option("--command", metavar="WORDS", help="How wsh is called there, if not as usual."),
    _yes,
    json_option,
    _name,
    Argument("target", metavar="TARGET", required=False),
)
def add(command: str | None, yes: bool, as_json: bool, name: str, target: str | None) -> None:
    """Add a machine that `ssh TARGET` reaches; without TARGET, `ssh NAME`.

    The first connection is made in this terminal, so that ssh can ask what it has to ask. Later ones ask nothing.
    """
    from wsh.host.address import check_host_name

    check_host_name(name)
    far = _make_target(name, target or name, command)
    _connect_once(far)
    _ensure_wsh(far, yes=yes)
    body = {"target": far.target} | ({} if command is None else {"command": command})
    call("PUT", f"/hosts/{quote(name)}", json_body=body)
    one = _wait_until_known(name)
    if as_json:
        print_json(one)
    elif one["online"]:
        echo(
            f"{name} is online with wsh {one['version']}. Its sessions are {name}/NAME; begin with: wsh new {name}/NAME"
        )
    else:
        echo(f"{name} was added and cannot be reached yet: {one['problem'] or 'it is being connected to'}", err=True)


def _wait_until_known(name: str) -> dict[str, Any]:
    """The host as soon as it is online or its first attempt failed."""
    deadline = time.monotonic() + _CONNECT_S
    while True:
        one: dict[str, Any] = next(each for each in call("GET", "/hosts")["hosts"] if each["name"] == name)
        if one["online"] or one["problem"] or time.monotonic() > deadline:
            return one
        time.sleep(0.1)


@host.command("remove", json_option, _name)
def remove(as_json: bool, name: str) -> None:
    """Forget a machine. Its sessions go on there."""
    left = call("DELETE", f"/hosts/{quote(name)}")
    if as_json:
        print_json(left)
        return
    echo(f"{name} is forgotten; its sessions go on there.")


@host.command("install", _yes, json_option, _name)
def install(yes: bool, as_json: bool, name: str) -> None:
    """Install this version of wsh on a machine, into a folder of its own."""
    far = _find_target(name)
    if not yes and not _ask(f"Install wsh into ~/.local/share/wsh-host on {far.target}?"):
        raise Failure("Nothing was installed.")
    _install(far)
    if as_json:
        print_json({"host": name, "version": far.version})


@host.command("doctor", json_option, _name)
def doctor(as_json: bool, name: str) -> int:
    """Look for what is in the way to a machine."""
    from wsh.host.ssh.doctor import examine

    found = []
    for finding in examine(_find_target(name)):
        found.append(finding)
        if not as_json:
            echo(f"{'ok' if finding.good else 'PROBLEM':8} {finding.what}")
    if as_json:
        print_json({"findings": [{"good": each.good, "what": each.what} for each in found]})
    return 0 if all(each.good for each in found) else 1


def _make_target(name: str, target: str, command: str | None) -> SshTarget:
    from wsh.host.ssh.master import SshTarget
    from wsh.wire.setting import load
    from wsh.wire.system.place import find_places
    from wsh.wire.version import VERSION

    words = load(find_places().config_file).get_list("hosts.ssh")
    return SshTarget(name, target, tuple(words), command, VERSION)


def _find_target(name: str) -> SshTarget:
    from wsh.host.ssh.book import read_entries
    from wsh.wire.error import HostNotFound
    from wsh.wire.system.place import find_places

    entries = read_entries(find_places().config / "hosts.json")
    if name not in entries:
        raise HostNotFound(name, sorted(entries))
    return _make_target(name, entries[name]["target"], entries[name].get("command"))


def _connect_once(far: SshTarget) -> None:
    import subprocess

    quiet = [] if sys.stdin.isatty() else ["-o", "BatchMode=yes"]
    done = subprocess.run([*far.ssh, "-T", "-a", "-x", *quiet, far.target, "true"], check=False)
    if done.returncode != 0:
        raise Failure(f"`ssh {far.target}` failed with status {done.returncode}; try it by itself until it works.")


def _ensure_wsh(far: SshTarget, *, yes: bool) -> None:
    """Ask, and install, where wsh is not there."""
    from wsh.host.ssh.install import find_missing, read_python

    python = find_missing(far)
    if python is None:
        return
    if not read_python(python):
        raise Failure(
            f"wsh is not on {far.target}, and it needs Python 3.11 or newer there (found: {python or 'none'})."
        )
    if not yes and not _ask(f"wsh is not on {far.target}. Install it into ~/.local/share/wsh-host there?"):
        raise Failure("Nothing was added. Install wsh there, or say --command WORDS.")
    _install(far)


def _install(far: SshTarget) -> None:
    from wsh.host.ssh.install import push

    for step in push(far):
        echo(step, err=True)


def _ask(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    echo(f"{question} [y/N] ", err=True, end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
