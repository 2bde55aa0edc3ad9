"""The start of a server: sockets first, so that a client which comes while we import waits in the backlog; then an early gateway; then the rooms.

Only `wire` and a little of the standard library are imported at the top: not even asyncio, which takes as long as all the rest until we listen. The rest
is imported in steps, and each module of them imports plainly: `door` answers `/health` and holds everything else until the rooms are open, `compose` opens
the rooms, `deferred` those that take longest, beside the first requests.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.app.migration import bring_up_to_date
from wsh.http.server.listen import Doors, ServerRuns, load_tls, notify_systemd, open_doors
from wsh.wire.setting import SETTINGS, SettingError, Settings
from wsh.wire.system.crash import leave_traces
from wsh.wire.system.owner import hide_memory
from wsh.wire.system.package import open_package
from wsh.wire.system.place import Places, ensure_private
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("wsh.app")

GRACE_S = 2.0
"""How long requests under way may take to finish when the server ends."""


@dataclass(frozen=True)
class ServerOptions:
    ephemeral: bool = False
    token: str | None = None
    """One more owner's token, for this run alone."""
    announce: Callable[[str], None] = print
    as_json: bool = False
    """Announce in one line of JSON, for the program that started us."""
    stand_in: bool = False
    """Started by a client in place of a persistent server that was killed: gives way to the next `wsh server`."""
    arguments: tuple[str, ...] = ()
    """The words after `wsh server` that start one like this, without its address."""


def run_server(places: Places, settings: Settings, options: ServerOptions) -> int:
    """Serve until told to stop. The exit status: 0, 2 for a setting that cannot be, 3 if one runs already."""
    _set_up_logging()
    hide_memory()
    try:
        _check_stage()
        _bring_up_to_date(places)
        tls = load_tls(settings.get_str("server.tls_cert"), settings.get_str("server.tls_key"))
        doors = _open_doors(places, settings, options, tls)
    except ServerRuns as problem:
        print(f"wsh: {problem}; `wsh status` shows it, `wsh stop` ends it", file=sys.stderr)
        return 3
    except (SettingError, OSError) as problem:
        print(f"wsh: {problem}", file=sys.stderr)
        return 2
    try:
        ensure_private(places.state)
        _record(doors, options, persistent=not options.ephemeral)
        # Until everything is imported there is no garbage worth looking for.
        gc.disable()
        import asyncio

        import uvloop

        with leave_traces(places), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(doors, settings, options))
    finally:
        doors.close()
    return 0


def _bring_up_to_date(places: Places) -> None:
    try:
        bring_up_to_date(places)
    except OSError as problem:
        # A full disk must not keep the server from serving; the next start tries again.
        log.warning("the state folder was not brought up to date: %s", problem)


def _open_doors(places: Places, settings: Settings, options: ServerOptions, tls: ssl.SSLContext | None) -> Doors:
    def open_now() -> Doors:
        return open_doors(places, settings.get_str("server.bind"), tls)

    try:
        return open_now()
    except ServerRuns:
        if options.ephemeral or options.stand_in:
            raise
        from wsh.http.server.takeover import take_over

        return take_over(places, open_now)


def _record(doors: Doors, options: ServerOptions, *, persistent: bool) -> None:
    """What clients need to know of us, also after we were killed: whether to wait for us, and how we were started."""
    doors.write_runtime_info(
        version=VERSION,
        ephemeral=not persistent,
        stand_in=options.stand_in,
        arguments=list(options.arguments),
        environ={s.env: os.environ[s.env] for s in SETTINGS if s.env in os.environ},
    )


async def _serve(doors: Doors, settings: Settings, options: ServerOptions) -> None:
    import asyncio
    import signal

    open_package("uvicorn")
    _skip_plugins()
    from wsh.app.door import EarlyDoor

    door = EarlyDoor(doors, settings, ephemeral=options.ephemeral, token=options.token)
    lifetime = door.lifetime
    lifetime.told = lambda persistent: _record(doors, options, persistent=persistent)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: lifetime.stop(keep_sessions=True))
    await door.start()
    from wsh.app.compose import Composition

    composition = Composition(door)
    try:
        await composition.open()
        composition.announce(options.announce, as_json=options.as_json, quiet=options.ephemeral)
        notify_systemd("READY=1")
        lifetime.look()
        await lifetime.stopping.wait()
    finally:
        notify_systemd("STOPPING=1")
        lifetime.close()
        await asyncio.gather(door.aclose(GRACE_S), composition.deferred.aclose())
        await composition.aclose(keep_sessions=lifetime.keep_sessions, forsaken=lifetime.forsaken)


def _skip_plugins() -> None:
    """Let pydantic look for no plugins: it would read the descriptions of all installed packages. The variable is not left to sessions."""
    name = "PYDANTIC_DISABLE_PLUGINS"
    before = os.environ.get(name)
    os.environ[name] = "__all__"
    try:
        from pydantic import TypeAdapter

        TypeAdapter(int)  # it looks now, and not again
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _check_stage() -> None:
    from wsh.contract.request.stage import find_bad_stage

    problem = find_bad_stage(os.environ)
    if problem is not None:
        raise SettingError(problem)


def _set_up_logging() -> None:
    level = os.environ.get("WSH_LOG", "info").upper()
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("wsh").setLevel(level if level in {"DEBUG", "INFO", "WARNING", "ERROR"} else "INFO")
