"""The window's process: Qt, the scene, tray and notifications. Started by the core, which it talks to over one socket.

    python -m wsh.desktop.window.main FD [--theme THEME] [--renderer RENDERER]

It ends with 0 when the person is done, and in whatever way Qt chooses when its display breaks; the core tells these apart.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
from pathlib import Path

from PySide6.QtCore import QSocketNotifier
from PySide6.QtQuick import QQuickWindow, QSGRendererInterface
from PySide6.QtWidgets import QApplication

from wsh.desktop.link import WindowLink
from wsh.desktop.window.controller import Look, WindowController, load_window
from wsh.desktop.window.icon import make_icon
from wsh.desktop.window.layout import WindowLayout
from wsh.desktop.window.pyside_refcount import keep_constants
from wsh.desktop.window.timing import Timing
from wsh.desktop.window.tray import Tray

TIMES = "WSH_DESKTOP_FRAMES"
"""Names a file that is given the time of every frame and key at the end, for measuring."""
LAYOUT = "WSH_DESKTOP_LAYOUT"
"""Names the file with the places of all named items in the window."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m wsh.desktop.window.main")
    parser.add_argument("fd", type=int)
    parser.add_argument("--theme", choices=["system", "dark", "light"])
    parser.add_argument("--renderer", choices=["software", "gpu"], default="software")
    return parser.parse_args()


def main() -> int:
    keep_constants()
    # The core hears the person's interrupt and says when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    arguments = parse()
    link = WindowLink(socket.socket(fileno=arguments.fd))
    # Painting is in Python, so it belongs in this thread: a render thread that waits for the interpreter while this one, holding it,
    # waits for that thread (to quit, to hide) would never wake.
    os.environ["QSG_RENDER_LOOP"] = "basic"
    if arguments.renderer == "software" and "QT_QUICK_BACKEND" not in os.environ:
        # Draws what changed and nothing else, and needs no driver: for text that is quicker than it sounds.
        QQuickWindow.setGraphicsApi(QSGRendererInterface.GraphicsApi.Software)
    application = QApplication(sys.argv[:1])
    application.setApplicationName("interactive-terminal")
    application.setDesktopFileName("interactive-terminal")
    application.setQuitOnLastWindowClosed(False)
    application.setWindowIcon(make_icon(0))
    look = Look(arguments.theme)
    window = WindowController(link, look)
    engine = load_window(window, look)
    scene = engine.rootObjects()[0]
    assert isinstance(scene, QQuickWindow)
    tray = Tray(application, scene, window)
    times = Timing(scene, window) if os.environ.get(TIMES) else None
    layout = WindowLayout(scene, Path(os.environ[LAYOUT])) if os.environ.get(LAYOUT) else None

    def hear() -> None:
        for value in link.receive():
            window.hear(value)
        if link.closed:
            application.exit(1)

    notifier = QSocketNotifier(link.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(hear)
    # What is loaded stays: looking through it again and again for garbage costs a frame each time.
    gc.collect()
    gc.freeze()
    link.send("ready")
    status = int(application.exec())
    if times is not None:
        times.write(Path(os.environ[TIMES]))
    notifier.setEnabled(False)
    tray.close()
    del layout
    scene.close()
    return status


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Qt's own teardown of a scene with Python items is not worth waiting for, nor always safe.
    os._exit(status)
