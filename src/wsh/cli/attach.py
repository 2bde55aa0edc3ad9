from __future__ import annotations

from wsh.cli.declare import Argument, Option, command, echo, json_option
from wsh.cli.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wsh.client.attach.look_back import CopyKeys
    from wsh.wire.json.object import JsonObject


def find_last(host: str | None = None) -> str:
    """The session that was attached last, or else the one that was used last, on `host` if that is given. Raises where there is none."""
    from wsh.cli.request import ANSWER_S, call, is_server_there
    from wsh.wire.error import InvalidRequest
    from wsh.wire.system.place import find_places

    found: list[JsonObject] = []
    if host or is_server_there():
        found = call("GET", "/sessions", query={"host": host}, doing="", answer_s=ANSWER_S)
    running = [session for session in found if session["running"]] or found
    if not running:
        raise InvalidRequest(
            "There is no session to attach to.", hint="`wsh` opens one here, `wsh new` one in the background."
        )
    try:
        attached = find_places().last_attached.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        attached = []
    names = {str(session["name"]) for session in running}
    for name in attached:
        if name in names:
            return name
    return str(min(running, key=lambda session: int(session["last_activity_ms"]))["name"])


def show(
    name: str,
    *,
    read_only: bool = False,
    status: bool = True,
    scrollback: int = 0,
    as_json: bool = False,
    shows_ended: bool = False,
) -> int:
    """Show a session in this terminal until detached; returns the exit status for this process.

    `shows_ended`: one that has ended is shown to be read; else its end is told at once.
    """
    import os

    from wsh.cli.output import NOT_KNOWN
    from wsh.cli.request import check_health
    from wsh.client import tty

    if os.environ.get("WSH_SESSION") == name:
        from wsh.wire.error import InvalidRequest

        raise InvalidRequest(
            f"This is session {name!r} already; a session inside of itself helps nobody.",
            hint="Attach to another one, or from another terminal.",
        )
    if not tty.is_terminal():
        from wsh.wire.error import InvalidRequest

        raise InvalidRequest(
            "Attaching needs a terminal on both sides.",
            hint="Read the screen with: wsh screen NAME, type with: wsh send NAME",
        )
    from wsh.client.attach.attach import ViewOptions, view
    from wsh.client.attach.prefix import Bindings
    from wsh.wire.setting import load
    from wsh.wire.system.place import find_places

    settings = load(find_places().config_file)
    bindings = Bindings(settings.get_str("attach.prefix"), settings.get_list("attach.keys"))
    copy_keys: CopyKeys = "emacs" if settings.get_str("attach.copy_keys") == "emacs" else "vi"
    with tty.raw_mode() as held:
        held.status = status
        wheel = settings.get_bool("attach.mouse")
        options = ViewOptions(read_only, status, scrollback, bindings, copy_keys, wheel, shows_ended)
        end = view(name, options, held, check_health)
        held.used_rows = end.row
    name = end.session
    unknown = NOT_KNOWN if end.reason == "exited" else 0
    if as_json:
        print_json({"session": name, "reason": end.reason, "exit_code": end.exit_code})
        return unknown if end.exit_code is None else end.exit_code
    if end.exit_code is not None:
        echo(f"[exited {end.exit_code} · {name}]", err=True)
        return end.exit_code
    echo(f"[{end.reason} · {name}]" if end.reason == "detached" else f"[{name}: {end.reason}]", err=True)
    if unknown:
        echo(f"wsh: {name} ended, and nobody could tell with which status.", err=True)
    return unknown


@command(
    "attach",
    Option("--read-only", "-r", kind=bool, help="Look, but do not type."),
    Option("--scrollback", kind=int, default=0, metavar="LINES", help="Print so many earlier lines first."),
    Option("--no-status", kind=bool, help="No status line."),
    json_option,
    Argument("session", complete="session", required=False),
)
def attach(read_only: bool, scrollback: int, no_status: bool, as_json: bool, session: str | None) -> int:
    """Show SESSION in this terminal and type into it; without a name the one that you attached to last.

    HOST/ is the session that was used last on another machine. Ctrl+\\ is a prefix and shows what may follow: ? explains all, d detaches. Pressed twice it detaches, too, and it takes captured keys
    back. A session that has ended is shown as it was, to be read, searched and copied from; q leaves it. With --json the last line says how it ended.
    """
    if session is None or session.endswith("/"):
        session = find_last(session and session[:-1])
    return show(
        session,
        read_only=read_only,
        status=not no_status,
        scrollback=scrollback,
        as_json=as_json,
        shows_ended=True,
    )
