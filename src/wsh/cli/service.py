"""`wsh service`: the server as a systemd user unit, started by the first connection to its socket.

The unit has no hardening on purpose: sessions would inherit it, and NoNewPrivileges, Protect*, Private* and Restrict* break sudo,
bubblewrap and ordinary work in them. Sessions live in the keeper, so only the server's own process is ended or restarted (KillMode).
"""

from __future__ import annotations

import os
import sys

from wsh.cli.declare import Failure, Option, echo, group, json_option
from wsh.cli.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WITHOUT_SYSTEMD = (
    "Without systemd: start `wsh server` from whatever starts your session (a line in ~/.profile, cron's @reboot, runit, s6), "
    "or do nothing: `wsh` and `wsh mcp` start a server of their own when none runs."
)

_SERVICE = """\
[Unit]
Description=wsh: terminals that agents and people share ({name})
Requires={unit}.socket
After={unit}.socket

[Service]
Type=notify
ExecStart={program} server --name {name}
KillMode=process
Restart=on-failure
RestartSec=1

[Install]
Also={unit}.socket
WantedBy=default.target
"""

_SOCKET = """\
[Unit]
Description=Sockets of wsh ({name})

[Socket]
ListenStream=%t/wsh/{name}.sock
ListenStream={bind}
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""

name_option = Option("--name", default="default", show_default=True, help="Name of the server.")


@group("service")
def service() -> None:
    """Run the server as a systemd user unit."""


@service.command(
    "install",
    name_option,
    Option("--bind", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="Where the page is."),
    Option("--no-start", kind=bool, help="Write the units and leave starting them to you."),
    json_option,
)
def install(name: str, bind: str, no_start: bool, as_json: bool) -> None:
    """Write the units and start listening. The first connection starts the server; a crash restarts it with its sessions.

    A user's units end with their last login unless lingering is on: `loginctl enable-linger` keeps them from boot on.
    """
    files = make_units(name, bind)
    folder = unit_folder()
    os.makedirs(folder, exist_ok=True)
    for file, text in files.items():
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.write(text)
    unit = unit_name(name)
    problem = None if no_start else _systemctl("daemon-reload") or _systemctl("enable", "--now", f"{unit}.socket")
    paths = [os.path.join(folder, file) for file in files]
    if as_json:
        print_json({"units": paths, "started": not no_start and problem is None, "problem": problem})
        return
    for path in paths:
        echo(f"wrote {path}")
    if problem is not None:
        echo(f"systemd did not take them: {problem}", err=True)
        echo(WITHOUT_SYSTEMD, err=True)
    elif no_start:
        echo(f"start with: systemctl --user daemon-reload && systemctl --user enable --now {unit}.socket")
    else:
        echo(f"listening; the page is at http://{bind}/ (wsh link signs a browser in)")
        echo("to keep it running while you are not logged in: loginctl enable-linger")


@service.command("remove", name_option, json_option)
def remove(name: str, as_json: bool) -> None:
    """Stop listening and remove the units. Sessions go on in their keeper; `wsh stop` ends them."""
    unit = unit_name(name)
    _systemctl("disable", "--now", f"{unit}.socket", f"{unit}.service")
    removed = []
    for file in (f"{unit}.service", f"{unit}.socket"):
        path = os.path.join(unit_folder(), file)
        if os.path.exists(path):
            os.unlink(path)
            removed.append(path)
    _systemctl("daemon-reload")
    if as_json:
        print_json({"removed": removed})
    else:
        echo("\n".join(f"removed {path}" for path in removed) or f"There is no unit {unit}.")


@service.command("status", name_option, json_option)
def status(name: str, as_json: bool) -> int:
    """Say whether the units are there, fit this installation, and run. Status 1 if not."""
    found = look(name)
    if as_json:
        print_json(found)
    else:
        echo(f"units    {'installed' if found['installed'] else 'not installed: wsh service install'}")
        if found["stale"]:
            echo("program  the unit starts another wsh than this one: wsh service install writes it anew")
        echo(f"socket   {found['socket']}\nserver   {found['service']}")
        if not found["systemd"]:
            echo(WITHOUT_SYSTEMD)
    return 0 if found["installed"] and not found["stale"] else 1


def look(name: str = "default") -> dict[str, object]:
    """What is known of the units of the server `name`."""
    unit = unit_name(name)
    path = os.path.join(unit_folder(), f"{unit}.service")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    answer = _ask(("is-active", f"{unit}.socket", f"{unit}.service"))
    states = answer[1].split() if answer is not None else []  # none where no systemd looks after this user
    socket, service = states if len(states) == 2 else ("unknown", "unknown")
    return {
        "systemd": bool(states),
        "installed": bool(text),
        "stale": bool(text) and f"ExecStart={_program()} " not in text,
        "socket": socket,
        "service": service,
    }


def make_units(name: str, bind: str) -> dict[str, str]:
    """File name and text of the two units."""
    unit = unit_name(name)
    words = {"name": name, "unit": unit, "program": _program(), "bind": bind}
    return {f"{unit}.service": _SERVICE.format(**words), f"{unit}.socket": _SOCKET.format(**words)}


def unit_name(name: str) -> str:
    from wsh.wire.name import check_session_name

    check_session_name(name)
    return "wsh" if name == "default" else f"wsh-{name}"


def unit_folder() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "systemd", "user")


def _program() -> str:
    """This installation's `wsh`, quoted as systemd reads it."""
    beside = os.path.join(os.path.dirname(sys.executable), "wsh")
    path = beside if os.path.exists(beside) else os.path.abspath(sys.argv[0])
    if any(character in path for character in "\n\r"):
        raise Failure(f"systemd cannot start a program at {path!r}.")
    quoted = path.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"' if " " in path or quoted != path else path


def _systemctl(*words: str) -> str | None:
    """Runs it; None if it worked, else what it said."""
    done = _ask(words)
    if done is None:
        return "systemctl is not on this machine"
    status, _, problem = done
    return None if status == 0 else problem or f"systemctl ended with {status}"


def _ask(words: Sequence[str]) -> tuple[int, str, str] | None:
    """Status and what systemctl wrote to its two streams, each a few lines; None where it is not there. `subprocess` costs more than this."""
    outs = os.pipe()
    faults = os.pipe()
    moves = [(os.POSIX_SPAWN_DUP2, outs[1], 1), (os.POSIX_SPAWN_DUP2, faults[1], 2)]
    try:
        pid = os.posix_spawnp("systemctl", ["systemctl", "--user", *words], os.environ, file_actions=moves)
    except OSError:
        os.close(outs[0])
        os.close(faults[0])
        return None
    finally:
        os.close(outs[1])
        os.close(faults[1])
    with open(outs[0], errors="replace") as out, open(faults[0], errors="replace") as fault:
        printed, said = out.read(), fault.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), printed.strip(), said.strip()
