"""A desktop's notification service as far as its callers know it.

    python -m tests.support.desktop.notification_service FILE

Writes each notification to FILE as a line of JSON.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVirtualObject

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


class NotificationService(QDBusVirtualObject):
    def __init__(self, out: Path) -> None:
        super().__init__()
        self._out = out
        self._shown = 0

    def introspect(self, path: str) -> str:
        return ""

    def handleMessage(self, message: QDBusMessage, connection: QDBusConnection) -> bool:
        if message.member() != "Notify":
            return False
        self._shown += 1
        _, _, _, title, text, *_ = message.arguments()
        with self._out.open("a") as out:
            out.write(json.dumps([title, text]) + "\n")
        connection.send(message.createReply(self._shown))
        return True


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    application = QCoreApplication(sys.argv[:1])
    bus = QDBusConnection.sessionBus()
    service = NotificationService(Path(sys.argv[1]))
    assert bus.registerVirtualObject(PATH, service)
    assert bus.registerService(NAME)
    Path(sys.argv[1]).touch()
    application.exec()


if __name__ == "__main__":
    main()
