"""What could be wrong with this installation, looked at one by one."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from wsh.cli.declare import command, echo, json_option
from wsh.cli.output import clean, print_json
from wsh.wire.setting import SettingError, load
from wsh.wire.system.crash import LOOP_DEATHS, LOOP_S, SET_ASIDE, left_trace, read_deaths
from wsh.wire.system.place import Places, find_places
from wsh.wire.version import install_hint

State: TypeAlias = Literal["ok", "note", "wrong"]


@dataclass(frozen=True)
class Finding:
    state: State
    what: str
    advice: str = ""


def _python(places: Places) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info >= (3, 11)
    yield Finding("ok" if enough else "wrong", f"Python {version}", "" if enough else "wsh needs Python 3.11 or newer")


def _engine(places: Places) -> Iterator[Finding]:
    try:
        from wsh.client.probe import probe_engine

        yield Finding("ok", f"terminal engine {probe_engine()}")
    except Exception as problem:
        yield Finding("wrong", f"the terminal engine does not load: {problem}", "reinstall the package pyghostty")


def _folders(places: Places) -> Iterator[Finding]:
    for path in (places.runtime, places.state, places.config):
        yield _folder(path)


def _folder(path: Path) -> Finding:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return Finding("ok", f"{path} will be made when it is needed")
    except OSError as problem:
        return Finding("wrong", f"{path} cannot be looked at: {problem.strerror}", "make its parent a folder of yours")
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        return Finding("wrong", f"{path} is not a folder of this user", "remove it")
    free = shutil.disk_usage(path).free
    if free < 100 << 20:
        return Finding("wrong", f"{path} has {free >> 20} MiB left", "journals stop when the disk is full: make room")
    return Finding("ok", f"{path} ({free >> 30} GiB free)")


def _configuration(places: Places) -> Iterator[Finding]:
    try:
        load(places.config_file)
    except SettingError as problem:
        yield Finding("wrong", str(problem), "correct the file; `wsh config` lists all settings")
    else:
        yield Finding("ok", f"{places.config_file}" + ("" if places.config_file.exists() else " (none: defaults)"))
    for path in (places.tokens,):
        if path.exists() and path.stat().st_mode & 0o077:
            yield Finding("wrong", f"{path} can be read by others", f"chmod 600 {path}")


def _descriptors(places: Places) -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = hard != resource.RLIM_INFINITY and hard < 4096
    yield Finding(
        "note" if few else "ok",
        f"{hard} file descriptors allowed",
        "each session needs about four: raise the hard limit for many sessions" if few else "",
    )


def _extras(places: Places) -> Iterator[Finding]:
    gui = find_spec("PySide6") is not None
    yield Finding(
        "ok" if gui else "note",
        "desktop window" if gui else "no desktop window",
        "" if gui else install_hint("gui"),
    )
    for shell in ("bash", "zsh", "fish"):
        if shutil.which(shell):
            yield Finding("ok", f"{shell}, with shell integration")


def _server(places: Places) -> Iterator[Finding]:
    from wsh.cli.request import ANSWER_S, call
    from wsh.wire.error import ServerGone, WshError

    try:
        count = len(call("GET", "/sessions", start=False, answer_s=ANSWER_S))
    except ServerGone:
        yield Finding("note", "no server runs", "start one with: wsh server")
    except WshError as error:
        yield Finding("wrong", error.message, error.hint or "")
    else:
        yield Finding("ok", f"a server answers on {places.socket} and holds {count} sessions")


def _keeper(places: Places) -> Iterator[Finding]:
    """A keeper outlives upgrades: it may be of an earlier version than what is installed."""
    import socket
    import struct

    from wsh.process.launch import why_outdated

    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(str(places.keeper_socket))
            pid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        except OSError:
            return
    fault = why_outdated(pid)
    if fault is None:
        yield Finding("ok", f"the keeper (pid {pid}) is that of this installation")
    else:
        advice = "its sessions go on; the first program that is started after the last of them has ended gets a new one"
        yield Finding("note", f"the keeper (pid {pid}) {fault}", advice)


def _deaths(places: Places) -> Iterator[Finding]:
    """Servers that their terminal engine killed in the last day, and whether one after the other."""
    day = [death for death in read_deaths(places.deaths) if death.trace and time.time() - death.time < 86_400]
    if left_trace(places).exists() or _has_text(places.crash):
        yield Finding("wrong", "the last server was killed by native code", "start one: it will find out by what")
    if not day:
        return
    blamed = sorted({death.name for death in day if death.name})
    times = f"the terminal engine killed the server {len(day)} times in the last day"
    loop = any(later.time - death.time < LOOP_S for death, later in zip(day, day[LOOP_DEATHS - 1 :], strict=False))
    aside = sorted({death.name for death in day if death.outcome == SET_ASIDE})
    if loop or aside:
        names = ", ".join(aside or blamed) or "no session in particular"
        advice = f"`wsh kill {aside[0]}` ends it; it is tried again at the next start" if aside else "look into the log"
        yield Finding("wrong", f"{times}, {LOOP_DEATHS} of them within a minute, over {names}", advice)
    else:
        yield Finding("note", f"{times}, over {', '.join(blamed) or 'no session'}: {day[-1].outcome or day[-1].trace}")


def _has_text(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _installation(places: Places) -> Iterator[Finding]:
    from wsh.cli.service import look

    first, ours = shutil.which("wsh"), Path(sys.executable).parent / "wsh"
    if first is not None and ours.exists() and not os.path.samefile(first, ours):
        advice = f"put {ours.parent} first in PATH, or remove the other (a package called wsh is somebody else's)"
        yield Finding("note", f"`wsh` on PATH is {first}, another program than this one", advice)
    if look()["stale"]:
        yield Finding("wrong", "the systemd unit starts another wsh than this one", "run: wsh service install")


def _sandbox(places: Places) -> Iterator[Finding]:
    from wsh.sandbox.hold import Sandboxes
    from wsh.sandbox.section import SandboxPolicy

    policy = SandboxPolicy()
    if places.policy_file.exists():  # the policy's room takes long to import
        from wsh.policy.file.store import PolicyStore

        policy = PolicyStore(places.policy_file).current().sandbox
    told = Sandboxes(places).describe(policy)
    wanted = told["agents"] != "off"
    for backend in told["backends"]:
        name = backend["name"] + (f" (ABI {backend['abi']})" if "abi" in backend else "")
        if not backend["available"]:
            yield Finding("note", f"sandbox backend {name} is not there", backend["missing"])
        else:
            uncovered = ", ".join(backend["not_covered"]) or "nothing"
            yield Finding("ok", f"sandbox backend {name} holds; of `workspace` it does not cover: {uncovered}")
    for name, held in told["profiles"].items():
        if held["backend"] is None:
            bad = wanted and name == told["agents"]
            yield Finding("wrong" if bad else "note", f"no session gets the sandbox {name}", held["missing"])
        elif held["weaker"]:
            yield Finding("note", f"sandbox {name}: {held['backend']}, accepted without {', '.join(held['weaker'])}")
        else:
            yield Finding("ok", f"sandbox {name}: {held['backend']}")
    yield Finding("ok", f"agents get the sandbox {told['agents']}")


CHECKS: tuple[Callable[[Places], Iterator[Finding]], ...] = (
    _python,
    _engine,
    _folders,
    _configuration,
    _descriptors,
    _extras,
    _sandbox,
    _installation,
    _keeper,
    _deaths,
    _server,
)


@command("doctor", json_option)
def doctor(as_json: bool) -> int:
    """Look for what is wrong with this installation and say what to do. Status 1 if something is."""
    places = find_places()
    findings = [finding for check in CHECKS for finding in check(places)]
    if as_json:
        print_json([{"state": f.state, "what": f.what, "advice": f.advice} for f in findings])
    else:
        signs = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
        for finding in findings:
            text = clean(f"{finding.what}{': ' + finding.advice if finding.advice else ''}")
            echo(f"{signs[finding.state]} {text}")
    return 1 if any(f.state == "wrong" for f in findings) else 0
