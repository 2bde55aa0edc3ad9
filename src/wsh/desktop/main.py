"""`interactive-terminal`: the program on the person's desktop.

One per user: a second start brings the first one to the front, on the display where it was made. This process is the core; Qt is loaded in
another, so that a machine without it gets a sentence and not a traceback, and a display that breaks takes nothing with it.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import importlib.util
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.wire.setting import SettingError, load
from wsh.wire.system.place import Places, ensure_private, find_places, write_private
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.desktop.service import DesktopService

ALREADY_RUNS, NO_QT, NO_PORT, NO_DISPLAY = 3, 4, 5, 6


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="interactive-terminal", description="The window where a person sees and decides what agents run."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 for any (default: the setting bridge.port)")
    parser.add_argument("--hidden", action="store_true", help="start without showing the window")
    parser.add_argument("--theme", choices=["system", "dark", "light"], help="looks, for this run")
    parser.add_argument("--version", action="version", version=f"interactive-terminal {VERSION}")
    return parser.parse_args(argv)


def display_file(places: Places) -> Path:
    """The file where a second launch records its display."""
    return places.runtime / "interactive-terminal.display"


def lock_instance(places: Places) -> int | None:
    """A lock that a crash releases; None if another instance holds it, which is then told where to show itself."""
    # Until the loop hears it, a second start must not end us.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    ensure_private(places.runtime)
    fd = os.open(places.runtime / "interactive-terminal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        from wsh.desktop.window_process import DISPLAY_VARIABLES

        here = {name: os.environ[name] for name in DISPLAY_VARIABLES if name in os.environ}
        try:
            write_private(display_file(places), json.dumps(here).encode())
            os.kill(int(os.read(fd, 32) or b"0"), signal.SIGUSR1)
        except (OSError, ValueError):
            pass
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.write(fd, str(os.getpid()).encode())
    return fd


def main(argv: Sequence[str] | None = None) -> None:
    sys.exit(run(parse(argv)))


def run(arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    places = find_places()
    try:
        settings = load(places.config_file)
    except SettingError as problem:
        return _say(2, str(problem))
    lock = lock_instance(places)
    if lock is None:
        return _say(ALREADY_RUNS, "it runs already; its window was raised")
    if importlib.util.find_spec("PySide6") is None:
        return _say(NO_QT, "PySide6 is missing; pip install 'wsh-terminal[gui]'")
    from wsh.desktop.service import DesktopOptions, DesktopService, PortTaken
    from wsh.desktop.window_process import NoDisplay

    port = arguments.port if arguments.port is not None else settings.get_int("bridge.port")
    token = os.environ.get("PM_INTERACTIVE_TERMINAL_TOKEN") or None
    options = DesktopOptions(arguments.host, port, token, arguments.hidden, arguments.theme)
    core = DesktopService(places, settings, options, display_file(places), lambda: _say_where(core))
    try:
        with asyncio.Runner(loop_factory=_make_loop) as runner:
            runner.run(core.run())
    except PortTaken as taken:
        why = taken.problem.strerror or taken.problem
        return _say(
            NO_PORT, f"cannot listen on {arguments.host}:{port}: {why}; choose another with --port, or 0 for any"
        )
    except NoDisplay:
        return _say(NO_DISPLAY, "there is no display to show a window on; set DISPLAY or WAYLAND_DISPLAY")
    return 0


def _make_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


def _say(status: int, sentence: str) -> int:
    print(f"interactive-terminal: {sentence}", file=sys.stderr)
    return status


def _say_where(core: DesktopService) -> None:
    assert core.endpoint is not None
    print(f"listening on {core.endpoint.host}:{core.endpoint.port}", flush=True)


if __name__ == "__main__":
    main()
