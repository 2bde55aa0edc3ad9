"""`interactive-terminal`: the program on the person's desktop.

One per user: a second start brings the first one to the front. Qt is imported only when there is a window to make, so that a machine
without it gets a sentence and not a traceback.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Sequence

from wsh.wire.place import Places, ensure_private, find_places
from wsh.wire.setting import SettingError, load
from wsh.wire.version import VERSION

log = logging.getLogger("wsh.desktop")

ALREADY_RUNS, NO_QT, NO_PORT = 3, 4, 5


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="interactive-terminal", description="The window where a person sees and decides what agents run."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 for any (default: the setting bridge.port)")
    parser.add_argument("--hidden", action="store_true", help="start without showing the window")
    parser.add_argument("--theme", choices=["system", "dark", "light"], default="system")
    parser.add_argument("--version", action="version", version=f"interactive-terminal {VERSION}")
    return parser.parse_args(argv)


def lock_instance(places: Places) -> int | None:
    """A lock that a crash releases; None if another instance holds it."""
    ensure_private(places.runtime)
    fd = os.open(places.runtime / "interactive-terminal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
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
        print(f"interactive-terminal: {problem}", file=sys.stderr)
        return 2
    lock = lock_instance(places)
    if lock is None:
        print("interactive-terminal: it runs already; its window was raised", file=sys.stderr)
        return ALREADY_RUNS
    try:
        from wsh.desktop.program import show
    except ImportError as problem:
        print(f"interactive-terminal: {problem.name or problem} is missing; pip install 'wsh[gui]'", file=sys.stderr)
        return NO_QT
    port = arguments.port if arguments.port is not None else settings.get_int("bridge.port")
    return show(places, settings, arguments.host, port, hidden=arguments.hidden, theme=arguments.theme)


if __name__ == "__main__":
    main()
