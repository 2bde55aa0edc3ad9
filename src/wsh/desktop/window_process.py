"""The window's process, seen from the core: started, spoken with, and started again when its display went away.

Qt ends a process whose display breaks, and there is no way around that; so requests and terminals live here, in the core, and the window is
something that comes and goes. When the display is back, or another is named by a second start, a new window is told everything.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wsh.desktop.link import Unpacker, pack

log = logging.getLogger(__name__)

DISPLAY_VARIABLES = (
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_SESSION_TYPE",
    "XDG_CURRENT_DESKTOP",
    "DBUS_SESSION_BUS_ADDRESS",
)
_LOOK_S = 0.5
_MOST_UNREAD = 64 << 20
_END_S = 5.0
_MOST_CRASHES = 5
_CRASH_SPAN_S = 60.0


def can_show(environ: Mapping[str, str]) -> bool:
    """Whether a display answers. Platforms that need none always do."""
    probe = find_display(environ)
    if probe is not None:
        probe.close()
    return probe is not None


def find_display(environ: Mapping[str, str]) -> socket.socket | None:
    """A connection to the display that a window would be shown on, or None. The caller closes it.

    An X server that loses its last client starts over and turns away who comes meanwhile, so it is closed when the window is there.
    """
    platform = environ.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if platform and platform not in ("xcb", "wayland", "wayland-egl"):
        return socket.socket(socket.AF_UNIX)
    wayland, display = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    if wayland and platform != "xcb":
        path = Path(environ.get("XDG_RUNTIME_DIR", "/run")) / wayland
        found = _connect(socket.AF_UNIX, str(path))
        if found is not None:
            return found
    if not display or platform.startswith("wayland"):
        return None
    host, _, number = display.rpartition(":")
    number = number.partition(".")[0]
    if not number.isdigit():
        return None
    if host and host != "unix":
        return _connect(socket.AF_INET, (host, 6000 + int(number)))
    path = Path(f"/tmp/.X11-unix/X{number}")
    return _connect(socket.AF_UNIX, str(path)) or _connect(socket.AF_UNIX, f"\0{path}")


def _connect(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket | None:
    probe = socket.socket(family, socket.SOCK_STREAM)
    probe.settimeout(1)
    try:
        probe.connect(address)
    except OSError:
        probe.close()
        return None
    return probe


class NoDisplay(Exception):
    """There is nowhere to show a window."""


class WindowProcess:
    """`hear` gets what the window asks for, `on_up` is called when a window can be told everything."""

    def __init__(
        self, arguments: list[str], hear: Callable[[str, tuple[object, ...]], None], on_up: Callable[[], None]
    ) -> None:
        self._arguments = arguments
        self._hear = hear
        self._on_up = on_up
        self._environ = dict(os.environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._end: socket.socket | None = None
        self._probe: socket.socket | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._moved = asyncio.Event()
        self._ending = False
        self.up = False
        self.shown_before = False

    # speaking

    def tell(self, value: object) -> None:
        """Pass a value on; nothing happens while there is no window, which is told everything when there is."""
        if self._writer is None or not self.up:
            return
        self._writer.write(pack(value))
        if self._writer.transport.get_write_buffer_size() > _MOST_UNREAD and self._process is not None:
            log.warning("the window does not read any more; it is started anew")
            self._process.kill()

    # living

    def spawn(self) -> None:
        """Start the process; it says when it is ready. Raises NoDisplay."""
        self._let_go()
        self._probe = find_display(self._environ)
        if self._probe is None:
            raise NoDisplay
        ours, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, "-m", "wsh.desktop.window.main", str(theirs.fileno()), *self._arguments]
            self._process = subprocess.Popen(words, env=self._environ, pass_fds=(theirs.fileno(),))
        ours.setblocking(False)
        self._end = ours

    def _let_go(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    async def run(self) -> None:
        """Until the person closes the window for good. Raises NoDisplay if the very first window cannot be shown."""
        crashes: list[float] = []
        while True:
            if self._process is None:
                await self._wait_for_display()
            if self._process is None:
                return
            await self._converse()
            status = await self._reap()
            if self._ending or status == 0:
                return
            if not self.shown_before and (crashes or not can_show(self._environ)):
                raise NoDisplay
            log.warning("the window ended with %d; requests and terminals go on without it", status)
            now = time.monotonic()
            crashes = [moment for moment in crashes if now - moment < _CRASH_SPAN_S] + [now]
            if len(crashes) > _MOST_CRASHES:
                await self._pause(_CRASH_SPAN_S)

    async def _wait_for_display(self) -> None:
        while not self._ending:
            try:
                self.spawn()
                return
            except NoDisplay:
                await self._pause(_LOOK_S)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._moved.wait(), seconds)
        except TimeoutError:
            pass
        if not self._ending:
            self._moved.clear()

    async def _converse(self) -> None:
        assert self._end is not None
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        unpacker = Unpacker()
        try:
            while data := await reader.read(1 << 20):
                for verb, arguments in unpacker.feed(data):
                    if verb == "ready":
                        if self._ending:  # it came up while it was asked to go
                            continue
                        self.up = self.shown_before = True
                        self._let_go()
                        self._on_up()
                    else:
                        self._hear(verb, arguments)
        except OSError:
            pass
        finally:
            self.up = False
            self._let_go()
            self._writer.close()
            self._writer = self._end = None

    async def _reap(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        try:
            return await asyncio.to_thread(process.wait, _END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return await asyncio.to_thread(process.wait)

    def move(self, environ: Mapping[str, str]) -> bool:
        """Show the window on the display that `environ` names. True if it moves to another display."""
        named = {name: environ[name] for name in DISPLAY_VARIABLES if environ.get(name)}
        displays = ("DISPLAY", "WAYLAND_DISPLAY")
        if not any(name in named for name in displays):
            return False
        other = any(named.get(name) != self._environ.get(name) for name in displays)
        if other and can_show({**named, "XDG_RUNTIME_DIR": self._environ.get("XDG_RUNTIME_DIR", "")}):
            kept = {name: value for name, value in self._environ.items() if name not in DISPLAY_VARIABLES}
            platform = kept.get("QT_QPA_PLATFORM", "")
            if platform in ("offscreen", "minimal"):
                del kept["QT_QPA_PLATFORM"]
            self._environ = {**kept, **named}
            if self._process is not None:
                self._process.kill()
        self._moved.set()
        return other

    def end(self) -> None:
        """Ask the window to go; `run` returns when it has."""
        self._ending = True
        self._moved.set()
        self.tell(("quit",))
        if not self.up and self._process is not None:
            self._process.terminate()
