"""`wsh fleet`: set up, join and use a fleet of machines on NATS."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from wsh.cli.declare import Argument, Failure, Option, WrongUse, echo, group, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call, is_server_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from wsh.host.fleet.credential import NodeRole
    from wsh.host.fleet.deploy import FleetDeployment
    from wsh.wire.system.place import Places

_ROLES: tuple[NodeRole, ...] = ("owner", "agent", "serve")
_name = Argument("name", metavar="NAME")
_role = Option(
    "--role",
    choices=_ROLES,
    default="agent",
    show_default=True,
    help="What its callers may be on other nodes: owner for a machine where you sit, serve for one that only serves.",
)


@group("fleet", json_option, runs_alone=True)
def fleet(as_json: bool) -> None:
    """Many machines on one NATS server, with one list of sessions. Alone: list its nodes."""
    _list(as_json)


@fleet.command("list", json_option)
def list_(as_json: bool) -> None:
    """List the nodes of this server's fleet with their tags, load and number of sessions."""
    _list(as_json)


def _list(as_json: bool) -> None:
    found = _get(start=False)
    if as_json:
        print_json(found)
        return
    if found["problem"]:
        echo(f"This server works alone: {found['problem']}.", err=True)
    rows = [
        (
            one["name"],
            "here" if one["here"] and one["online"] else "online" if one["online"] else "out of reach",
            ",".join(one["tags"]),
            "" if one["load"] is None else f"{one['load']:.2f}",
            "" if one["sessions"] is None else one["sessions"],
            one["version"] or "",
            one["role"] or "",
        )
        for one in found["nodes"]
    ]
    columns = ("node", "state", "tags", "load", "sessions", "wsh", "role")
    print_table(columns, rows, empty="This server is in no fleet. Begin with: wsh fleet up")


def _get(*, start: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = call("GET", "/fleet", start=start)
    return found


@fleet.command(
    "up",
    Option("--fleet", metavar="NAME", help="Name of the fleet; default: home."),
    Option(
        "--bind",
        metavar="HOST:PORT",
        help="Where NATS listens, by the name or address that nodes use; port 0 takes a free one. Default: 127.0.0.1:4222.",
    ),
    Option("--node", metavar="NAME", help="Name of this machine as a node; default: its host name."),
    Option("--nats", metavar="FILE", help="The nats-server to run; default: the one that is installed."),
    json_option,
)
def up(fleet: str | None, bind: str | None, node: str | None, nats: str | None, as_json: bool) -> None:
    """Start a NATS server for a fleet, with keys and TLS made, and join it.

    A second call starts the same one again; with another --bind it moves there, and nodes need new credentials. Other machines join
    with what `wsh fleet invite` makes.
    """
    import asyncio
    import logging
    import socket

    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each end of a TLS connection
    _check_person()
    from wsh.host.fleet.credential import need_extra

    need_extra()
    from wsh.host.address import check_host_name
    from wsh.host.fleet.deploy import StreamLimits, find_program, start_nats
    from wsh.wire.setting import load
    from wsh.wire.system.config_file import SettingFixed, write_setting
    from wsh.wire.system.place import find_places

    places = find_places()
    own = node and check_host_name(node)
    with _only_here(places.fleet):
        deployment = _set_up(places, fleet, bind)
        _give_credentials(deployment, places.fleet_credentials, own, socket.gethostname().partition(".")[0] or "node")
    settings = load(places.config_file)
    deployment.limits = StreamLimits(
        settings.get_float("fleet.lease_s"),
        settings.get_float("fleet.events_keep_s"),
        settings.get_int("fleet.audit_bytes"),
    )
    asyncio.run(start_nats(deployment, find_program(nats)))
    deployment.reload()
    asyncio.run(_forget_others(deployment))
    try:
        write_setting(places.config_file, "fleet.url", deployment.url, "wsh fleet up")
        if settings.get_str("fleet.credentials"):
            write_setting(places.config_file, "fleet.credentials", "", "wsh fleet up")
    except SettingFixed as fixed:
        raise Failure(str(fixed)) from None
    if is_server_there():
        _join_now(deployment.url, str(places.fleet_credentials))
    if as_json:
        print_json({"fleet": deployment.fleet, "url": deployment.url, "pid": deployment.find_pid()})
        return
    echo(f"The fleet {deployment.fleet} is up: NATS at {deployment.url}, its files in {deployment.folder}.")
    echo("Another machine joins with what this makes: wsh fleet invite NAME")


def _set_up(places: Places, fleet: str | None, bind: str | None) -> FleetDeployment:
    """The fleet of this machine, made or as it was made, where it is to listen."""
    from wsh.host.fleet.deploy import read_deployment, set_up

    deployment = read_deployment(places.fleet)
    host, _, port = (bind or "127.0.0.1:4222").rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise WrongUse(f"--bind takes HOST:PORT, not {bind!r}.")
    if deployment is None:
        if places.fleet_credentials.exists():
            raise _other_fleet(places.fleet_credentials)
        return set_up(places.fleet, fleet or "home", host, int(port))
    if fleet is not None and fleet != deployment.fleet:
        raise Failure(f"The fleet that was set up on this machine is {deployment.fleet!r}. Leave --fleet out.")
    if bind is not None and (host, int(port) or deployment.port) != (deployment.host, deployment.port):
        if deployment.find_pid() is not None:
            raise Failure(f"NATS runs at {deployment.url}. To move it: wsh fleet down, then this again.")
        deployment.move(host, int(port))
        others = sorted(deployment.nodes.keys() - {_read_own(deployment, places.fleet_credentials)})
        if others:
            echo(f"These nodes need new credentials (wsh fleet invite NAME): {', '.join(others)}.", err=True)
    deployment.write()  # what nodes may do is as this version knows it
    return deployment


def _read_own(deployment: FleetDeployment, file: Path) -> str | None:
    """This machine's name in the fleet that was set up on it, if it has one."""
    from wsh.host.fleet.credential import find_public_key, read_credential

    if not file.exists():
        return None
    credential = read_credential(file)
    if credential.authority != find_public_key(deployment.authority_seed):
        raise _other_fleet(file)
    return credential.name


def _other_fleet(file: Path) -> Failure:
    return Failure(
        f"{file} has this machine's credentials of another fleet. Move the file away if the machine is to be in one of its own."
    )


def _give_credentials(deployment: FleetDeployment, file: Path, name: str | None, default: str) -> None:
    """Credentials that fit the deployment as it stands."""
    from wsh.host.fleet.credential import read_credential

    known = _read_own(deployment, file)
    if known is not None and name not in (None, known):
        raise Failure(f"This machine is the node {known!r} of its fleet. Leave --node out.")
    if known is not None:
        credential = read_credential(file)
        fits = (credential.url, credential.ca) == (deployment.url, deployment.ca_file.read_text())
        if fits and deployment.nodes.get(known) == credential.certificate:
            return
    deployment.invite(known or name or default, "owner").write(file)
    deployment.write()


@contextmanager
def _only_here(folder: Path) -> Iterator[None]:
    """Nobody else changes the fleet that is set up in `folder` meanwhile."""
    from wsh.wire.system.lock import drop_lock, take_lock
    from wsh.wire.system.private_file import ensure_private

    path = ensure_private(folder) / "lock"
    lock = take_lock(path, wait=True)
    assert lock is not None
    try:
        yield
    finally:
        drop_lock(path, lock)


@fleet.command("down", json_option)
def down(as_json: bool) -> None:
    """Stop the NATS server that `wsh fleet up` started. Nodes work alone until it is up again."""
    import signal
    import time

    _check_person()
    deployment = _get_deployment()
    pid = deployment.find_pid()
    if pid is None:
        _say(as_json, {"pid": None}, "It does not run.")
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 20
    while deployment.find_pid() is not None:
        if time.monotonic() > deadline:
            raise Failure(f"nats-server (process {pid}) does not end.")
        time.sleep(0.05)
    _say(as_json, {"pid": pid}, "NATS has ended. Nodes work alone until `wsh fleet up`.")


@fleet.command(
    "invite",
    _role,
    Option("--tag", key="tags", multiple=True, help="Tag of the node, such as gpu; may be given again."),
    Option("--output", "-o", metavar="FILE", help="Where to write the credentials; default: NAME.fleet.json here."),
    json_option,
    _name,
)
def invite(role: NodeRole, tags: tuple[str, ...], output: str | None, as_json: bool, name: str) -> None:
    """Make credentials for a node, where the fleet was set up. Those that it had before are worth nothing then."""
    from pathlib import Path

    _check_person()
    from wsh.host.address import check_host_name
    from wsh.wire.name import check_tag

    file = Path(output or f"{name}.fleet.json").absolute()
    with _only_here(_get_deployment().folder):
        deployment = _get_deployment()
        credential = deployment.invite(check_host_name(name), role, tuple(sorted({check_tag(tag) for tag in tags})))
        _write_private(credential, file)
        deployment.write()
        running = deployment.reload()
    if as_json:
        print_json({"name": name, "file": str(file), "url": deployment.url, "role": role, "tags": sorted(tags)})
        return
    echo(f"Credentials of {name} are in {file}. Bring the file to that machine over a safe way, and delete it here.")
    echo(f"There: wsh server --join {deployment.url} --credentials FILE")
    if not running:
        echo("NATS does not run: wsh fleet up", err=True)


def _write_private(credential: Any, file: Path) -> None:
    if not file.parent.is_dir():
        raise Failure(f"There is no folder {file.parent}.")
    credential.write_to(file)


@fleet.command("remove", json_option, _name)
def remove(as_json: bool, name: str) -> None:
    """Take a node's key out of the fleet: it is put out at once, is in no list any more, and cannot join again."""
    import asyncio

    _check_person()
    with _only_here(_get_deployment().folder):
        deployment = _get_deployment()
        if deployment.nodes.pop(name, None) is None:
            raise Failure(
                f"The fleet {deployment.fleet} has no node {name!r}. It has: {', '.join(sorted(deployment.nodes))}."
            )
        deployment.write()
        if deployment.reload():
            asyncio.run(_forget_others(deployment))
    _say(as_json, {"removed": name}, f"The key of {name} is worth nothing any more.")


async def _forget_others(deployment: FleetDeployment) -> None:
    import logging

    from wsh.host.fleet.deploy import forget_others

    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each end of a TLS connection
    try:
        await forget_others(deployment)
    except OSError as problem:
        echo(f"Lists show what is gone until NATS answers and `wsh fleet up` is called: {problem}.", err=True)


@fleet.command(
    "join",
    Option("--credentials", metavar="FILE", help="What `wsh fleet invite` made."),
    json_option,
    Argument("url", metavar="URL"),
)
def join(credentials: str | None, as_json: bool, url: str) -> None:
    """Join a fleet with the server that runs; the settings keep it for the next one."""
    from wsh.wire.system.config_file import SettingFixed, write_setting
    from wsh.wire.system.place import find_places

    _check_person()
    _join_now(url, credentials)
    places = find_places()
    try:
        write_setting(places.config_file, "fleet.url", url, "wsh fleet join")
        if credentials is not None:
            write_setting(places.config_file, "fleet.credentials", os.path.abspath(credentials), "wsh fleet join")
    except SettingFixed as fixed:
        raise Failure(str(fixed)) from None
    _say(as_json, {"url": url}, "Joining; `wsh fleet list` shows the nodes.")


@fleet.command("leave", json_option)
def leave(as_json: bool) -> None:
    """Leave the fleet. Other nodes forget this one; its sessions go on here."""
    from wsh.wire.system.config_file import SettingFixed, write_setting
    from wsh.wire.system.place import find_places

    _check_person()
    if is_server_there():
        call("DELETE", "/fleet")
    try:
        write_setting(find_places().config_file, "fleet.url", "", "wsh fleet leave")
    except SettingFixed as fixed:
        raise Failure(str(fixed)) from None
    _say(as_json, {"left": True}, "This server is in no fleet any more.")


@fleet.command(
    "run",
    Option("--timeout", kind=float, metavar="SECONDS", default=600.0, show_default=True, help="How long to wait."),
    json_option,
    Argument("where", metavar="WHERE"),
    Argument("words", metavar="COMMAND", rest=True),
)
def run(timeout: float, as_json: bool, where: str, words: tuple[str, ...]) -> int:
    """Run COMMAND on every node that WHERE names: a node, tag:NAME, or all. Each node's policy decides, and its audit has it.

    No shell and no terminal, as in the contract's headless mode. Ends with 0 if it ended with 0 everywhere, else with 1.
    """
    from wsh.cli.fleet_run import run_everywhere, show_table

    nodes = choose(_get(), where)
    live = sys.stdout.isatty() and not as_json
    done = run_everywhere(nodes, words, timeout, live=live)
    if as_json:
        print_json(done)
    elif not live:
        show_table(done)
    return 0 if all(one["exit_code"] == 0 for one in done) else 1


def choose(found: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """The nodes that are meant, those with the least load first. Raises where there is none."""
    nodes: list[dict[str, Any]] = found["nodes"]
    kind, _, tag = where.partition(":")
    if where == "all":
        meant = nodes
    elif kind == "tag" and tag:
        meant = [one for one in nodes if tag in one["tags"]]
    else:
        meant = [one for one in nodes if one["name"] == where]
    if not meant:
        tags = sorted({f"tag:{tag}" for one in nodes for tag in one["tags"]})
        known = ", ".join(["all", *tags, *(one["name"] for one in nodes)]) if nodes else "none: it is in no fleet"
        raise Failure(f"No node is meant by {where!r}. This server's fleet has {known}.")
    return sorted(meant, key=lambda one: (not one["online"], one["load"] is None, one["load"], one["sessions"] or 0))


def place(where: str) -> str | None:
    """The node for a new session: the one with the least load of those that are online; None for this server itself."""
    best = choose(_get(), where)[0]
    if not best["online"]:
        raise Failure(f"Every node that {where!r} names is out of reach.")
    return None if best["here"] else str(best["name"])


def _say(as_json: bool, facts: dict[str, Any], text: str) -> None:
    if as_json:
        print_json(facts)
    else:
        echo(text)


def _join_now(url: str, credentials: str | None = None) -> None:
    body = {"url": url} | ({} if credentials is None else {"credentials": os.path.abspath(credentials)})
    call("PUT", "/fleet", json_body=body)


def _get_deployment() -> FleetDeployment:
    from wsh.host.fleet.credential import need_extra

    need_extra()
    from wsh.host.fleet.deploy import read_deployment
    from wsh.wire.system.place import find_places

    deployment = read_deployment(find_places().fleet)
    if deployment is None:
        raise Failure("No fleet was set up on this machine. Begin with: wsh fleet up")
    return deployment


def _check_person() -> None:
    from wsh.wire.error import Refused
    from wsh.wire.system.owner import find_own_fault
    from wsh.wire.system.place import find_places

    fault = find_own_fault(find_places().socket)
    if fault is not None:
        raise Refused(
            f"What runs inside wsh may not change a fleet, and this process {fault}.",
            hint="Open a terminal outside wsh, and do it there.",
        )
