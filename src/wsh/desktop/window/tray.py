"""What the person sees of the program while its window is hidden: the icon in the tray, notifications, and the way back."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QCloseEvent
from PySide6.QtQuick import QQuickWindow
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from wsh.desktop.message import CardRow
from wsh.desktop.window.controller import WindowController
from wsh.desktop.window.icon import make_icon
from wsh.desktop.window.notification import notify


class Tray(QObject):
    """Shows and hides `scene`. Without a tray on this desktop, closing the window ends the program."""

    def __init__(self, application: QApplication, scene: QQuickWindow, window: WindowController) -> None:
        super().__init__()
        self._application = application
        self._scene = scene
        self._window = window
        self._icon: QSystemTrayIcon | None = None
        self._menu: QMenu | None = None
        scene.installEventFilter(self)
        window.greeted.connect(self._on_hello)
        window.asked.connect(self._on_request)
        window.raiseWanted.connect(self.come_forward)
        window.quitWanted.connect(lambda: application.exit(0))
        window.pendingChanged.connect(self._on_pending)

    def _on_hello(self, visible: bool) -> None:
        if QSystemTrayIcon.isSystemTrayAvailable():
            self._make_icon()
        if visible:
            self._scene.show()

    def _make_icon(self) -> None:
        self._menu = QMenu()
        self._menu.addAction("Show", self.come_forward)
        self._menu.addAction("New terminal", self._open_terminal)
        self._menu.addSeparator()
        self._menu.addAction("Quit and end its terminals", lambda: self._application.exit(0))
        self._icon = QSystemTrayIcon(make_icon(0))
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._on_click)
        self._on_pending()
        self._icon.show()

    def _open_terminal(self) -> None:
        self.come_forward()
        self._window.openTerminal()

    def _on_click(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason == QSystemTrayIcon.ActivationReason.Trigger:
            if self._scene.isVisible() and self._scene.isActive():
                self._scene.hide()
            else:
                self.come_forward()

    def come_forward(self) -> None:
        self._scene.show()
        self._scene.raise_()
        self._scene.requestActivate()

    def _on_pending(self) -> None:
        if self._icon is not None:
            count = len(self._window.requests.rows)
            self._icon.setIcon(make_icon(count))
            self._icon.setToolTip(f"{count} waiting for you" if count else "interactive-terminal")

    def _on_request(self, row: CardRow) -> None:
        """Something is asked: nothing more to do for somebody who looks at it."""
        if self._scene.isVisible() and self._scene.isActive():
            return
        wanted = self._window.preferences
        if wanted.come_forward:
            self._window.page = "requests"  # type: ignore[assignment]  # a Qt property, which the stubs see as a descriptor
            self.come_forward()
        elif self._scene.isVisible():
            self._scene.alert(0)
        if wanted.notify:
            grave, command = bool(row.card["hold"]), str(row.card["command"])[:200]
            title = "Hard to take back: an agent asks" if grave else "An agent asks"
            told = notify(title, f"{command}\n{row.card['asker']}", urgent=grave)
            if not told and self._icon is not None:
                self._icon.showMessage(title, command)
                told = True
            if not told and not self._scene.isVisible():
                # Nothing else on this desktop can say that somebody waits.
                self.come_forward()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._scene and isinstance(event, QCloseEvent) and event.spontaneous():
            if self._icon is not None and self._window.preferences.keep_in_tray:
                self._scene.hide()
                event.ignore()
                return True
            self._application.exit(0)
        return False

    def close(self) -> None:
        self._scene.removeEventFilter(self)
        if self._icon is not None:
            self._icon.hide()
