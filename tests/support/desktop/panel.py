"""A desktop's panel as far as a tray icon knows it: a watcher on the session bus that somebody looks at.

    python -m tests.support.desktop.panel FILE

Writes the name of each icon that registers to FILE.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVariant, QDBusVirtualObject

NAME, PATH = "org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher"


class Watcher(QDBusVirtualObject):
    def __init__(self, out: Path) -> None:
        super().__init__()
        self._out = out

    def introspect(self, path: str) -> str:
        return ""

    def handleMessage(self, message: QDBusMessage, connection: QDBusConnection) -> bool:
        values = message.arguments()
        if message.member() == "RegisterStatusNotifierItem":
            with self._out.open("a") as out:
                out.write(f"{values[0]}\n")
            connection.send(message.createReply())
        elif message.member() == "Get":
            known = {"IsStatusNotifierHostRegistered": True, "ProtocolVersion": 0}
            connection.send(message.createReply(QDBusVariant(known.get(values[1], False))))
        else:
            return False
        return True


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    application = QCoreApplication(sys.argv[:1])
    bus = QDBusConnection.sessionBus()
    watcher = Watcher(Path(sys.argv[1]))
    assert bus.registerVirtualObject(PATH, watcher)
    assert bus.registerService(NAME)
    Path(sys.argv[1]).touch()
    application.exec()


if __name__ == "__main__":
    main()
