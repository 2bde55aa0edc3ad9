"""Closing the window: into the tray where the desktop has one, else for good."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from tests.support.desktop.window import Desk, desk, virtual_screen
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


class _Message(ctypes.Structure):
    """XClientMessageEvent, as large as any event."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("rest", ctypes.c_long * 24),
    )


def _close(window: Desk) -> None:
    """As a window manager does when somebody clicks on the cross; there is none here that could."""
    (found,) = window._tool("search", "--onlyvisible", "--name", "interactive-terminal").split()
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x.XInternAtom.restype = ctypes.c_ulong
    x.XSendEvent.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    x.XCloseDisplay.argtypes = [ctypes.c_void_p]
    display = x.XOpenDisplay(window.display.encode())
    assert display
    message = _Message(type=33, window=int(found), format=32)
    message.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", 0)
    message.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
    assert x.XSendEvent(display, int(found), 0, 0, ctypes.byref(message))
    x.XCloseDisplay(display)


def test_with_a_tray_closing_hides_the_window_and_the_icon_brings_it_back(places: Places, tmp_path: Path) -> None:
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert bus.stdout is not None
    environ = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": bus.stdout.readline().strip()}
    icons = tmp_path / "icons"
    panel = subprocess.Popen([sys.executable, "-m", "tests.support.desktop.panel", str(icons)], env=environ)
    try:
        wait_until(icons.exists, "the panel")
        with virtual_screen() as display, desk(places, display, environ=environ) as window:
            wait_until(icons.read_text, "the icon in the tray")
            _close(window)
            wait_until(lambda: not window.title(), "the window to hide")
            assert window.process.poll() is None
            icon = ["--dest", icons.read_text().strip(), "--object-path", "/StatusNotifierItem"]
            call = ["gdbus", "call", "--session", *icon, "--method", "org.kde.StatusNotifierItem.Activate", "0", "0"]
            subprocess.run(call, env=environ, check=True, timeout=60, stdout=subprocess.DEVNULL)
            wait_until(window.title, "the window to come back")
    finally:
        panel.terminate()
        panel.wait(60)
        bus.terminate()
        bus.wait(60)
        bus.stdout.close()


def test_without_a_tray_closing_the_window_ends_the_program(places: Places) -> None:
    with virtual_screen() as display, desk(places, display) as window:
        _close(window)
        assert window.process.wait(60) == 0
