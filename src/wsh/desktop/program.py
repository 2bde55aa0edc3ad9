"""The running program: core, window, tray and notifications, from start to end."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from PySide6.QtCore import QSocketNotifier
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtQuick import QQuickWindow

from wsh.desktop.core import Core, CoreOptions
from wsh.desktop.main import NO_PORT
from wsh.desktop.steady import keep_constants
from wsh.desktop.window import Look, Window, load_window
from wsh.wire.place import Places
from wsh.wire.setting import Settings

FRAMES = "WSH_DESKTOP_FRAMES"
"""Names a file that is given the time of every frame at the end, for measuring."""


def show(places: Places, settings: Settings, host: str, port: int, *, hidden: bool, theme: str) -> int:
    """Run until the window is closed for good or a signal comes."""
    keep_constants()
    # Painting is in Python, so it belongs in this thread: a render thread that waits for the interpreter while this one, holding it,
    # waits for that thread (to quit, to hide) would never wake.
    os.environ["QSG_RENDER_LOOP"] = "basic"
    # A terminal that prints without end keeps the core's thread busy; the screen must not wait long for its turn.
    sys.setswitchinterval(0.0005)
    application = QGuiApplication(sys.argv[:1])
    application.setApplicationName("interactive-terminal")
    application.setDesktopFileName("interactive-terminal")
    application.setQuitOnLastWindowClosed(not hidden)
    token = os.environ.get("PM_INTERACTIVE_TERMINAL_TOKEN") or None
    window = Window(lambda tell: Core(places, settings, CoreOptions(host, port, token), tell))
    try:
        endpoint = window.core.start()
    except OSError as problem:
        print(
            f"interactive-terminal: cannot listen on {host}:{port}: {problem.strerror or problem}; "
            "choose another with --port, or 0 for any",
            file=sys.stderr,
        )
        return NO_PORT
    print(f"listening on {endpoint.host}:{endpoint.port}", flush=True)
    look = Look()
    look.chosen = theme  # type: ignore[assignment]
    engine = load_window(window, look)
    scene = engine.rootObjects()[0]
    assert isinstance(scene, QQuickWindow)
    scene.setIcon(_icon())

    def come_forward() -> None:
        scene.show()
        scene.raise_()
        scene.requestActivate()

    window.raised.connect(lambda: scene.alert(0) if scene.isVisible() else come_forward())
    if not hidden:
        scene.show()
    frames = _Frames(scene) if os.environ.get(FRAMES) else None
    signals = _Signals(application, come_forward)
    try:
        return int(application.exec())
    finally:
        if frames is not None:
            frames.write(Path(os.environ[FRAMES]))
        signals.close()
        scene.close()
        window.core.stop()
        del engine


class _Signals:
    """Unix signals inside Qt's loop: SIGTERM and SIGINT end it, SIGUSR1 brings the window forward."""

    def __init__(self, application: QGuiApplication, come_forward: object) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read)

        def heard() -> None:
            for number in self._reader.recv(64):
                if number == signal.SIGUSR1:
                    assert callable(come_forward)
                    come_forward()
                else:
                    application.quit()

        self._notifier.activated.connect(heard)

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()


class _Frames:
    """When each frame was shown, by the monotonic clock."""

    def __init__(self, scene: QQuickWindow) -> None:
        self._times: list[float] = []
        scene.frameSwapped.connect(lambda: self._times.append(time.monotonic()))

    def write(self, path: Path) -> None:
        path.write_text("".join(f"{moment:.6f}\n" for moment in self._times), encoding="utf-8")


def _icon() -> QIcon:
    picture = QPixmap(64, 64)
    picture.fill("#14161a")
    return QIcon(picture)
