"""The window's controller: values from the core become models and properties, what the person does becomes calls to the core."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Property, QObject, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtQml import QQmlApplicationEngine, qmlRegisterType

from wsh.desktop.core import Core, as_history_line
from wsh.desktop.model import ListModel
from wsh.desktop.scene import Frame, HistoryRow, Notice, PolicyView, RequestRow, RuleRow, SessionRow
from wsh.desktop.terminal_item import TerminalItem
from wsh.look import load

QML = Path(__file__).parent / "qml"


class Look(QObject):
    """The tokens for QML, following the system between dark and light."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._tokens = load()
        self._chosen = "system"
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(lambda _: self.changed.emit())

    def _get_theme(self) -> str:
        if self._chosen != "system":
            return self._chosen
        scheme = QGuiApplication.styleHints().colorScheme()
        return "light" if scheme == Qt.ColorScheme.Light else "dark"

    def _get_colors(self) -> dict[str, str]:
        return dict(self._tokens[self._get_theme()])

    def _get_chosen(self) -> str:
        return self._chosen

    def _set_chosen(self, value: str) -> None:
        if value in ("system", "dark", "light") and value != self._chosen:
            self._chosen = value
            self.changed.emit()

    theme = Property(str, _get_theme, notify=changed)
    c = Property("QVariantMap", _get_colors, notify=changed)  # type: ignore[arg-type]  # Qt takes its own names of types
    chosen = Property(str, _get_chosen, _set_chosen, notify=changed)


class Window(QObject):
    """What QML calls `app`."""

    arrived = Signal(object)
    pendingChanged = Signal()
    selectedChanged = Signal()
    pageChanged = Signal()
    shownChanged = Signal()
    noticed = Signal(str, bool)
    frameChanged = Signal(object)
    policyChanged = Signal()
    clockChanged = Signal()
    holdWanted = Signal(str, str)
    raised = Signal()

    def __init__(self, make_core: Callable[[Callable[[object], None]], Core]) -> None:
        super().__init__()
        self.requests: ListModel[RequestRow] = ListModel(RequestRow, "rid")
        self.sessions: ListModel[SessionRow] = ListModel(SessionRow, "sid")
        self.history: ListModel[HistoryRow] = ListModel(HistoryRow, "id")
        self.rules: ListModel[RuleRow] = ListModel(RuleRow, "command")
        self._policy = PolicyView((), "", "", "")
        self._selected = ""
        self._page = "requests"
        self._command = ""
        self.arrived.connect(self._hear, Qt.ConnectionType.QueuedConnection)
        self.selectedChanged.connect(self.shownChanged)
        self.pageChanged.connect(self.shownChanged)
        self._clock = QTimer(self)
        self._clock.setInterval(500)
        self._clock.timeout.connect(self.clockChanged)
        self.core = make_core(self.arrived.emit)

    # hearing the core

    def _hear(self, value: object) -> None:
        match value:
            case Frame():
                if value.sid == self._selected:
                    self.frameChanged.emit(value)
                # After what is waiting to be drawn.
                QTimer.singleShot(0, lambda: self.core.submit(self.core.frame_taken))
            case RequestRow():
                self.requests.put(value)
                self._clock.start()
                self.pendingChanged.emit()
                self.raised.emit()
            case HistoryRow():
                self.history.put(value, first=True)
            case PolicyView():
                self._policy = value
                self.rules.replace(value.rules)
                self.policyChanged.emit()
            case Notice():
                self.noticed.emit(value.text, value.bad)
            case ("closed", str(id), str(outcome), str(reason)):
                self._close(id, outcome, reason)
            case ("hold", str(id), str(why)):
                self.holdWanted.emit(id, why)
            case ("opened", str(sid)):
                self.select(sid)
            case tuple():
                self._show_sessions([row for row in value if isinstance(row, SessionRow)])

    def _close(self, id: str, outcome: str, reason: str) -> None:
        row = self.requests.take(id)
        if not self.requests.rows:
            self._clock.stop()
        self.pendingChanged.emit()
        if row is not None and outcome in ("withdrawn", "expired"):
            word = "was withdrawn by its caller" if outcome == "withdrawn" else "ran out of time"
            self.noticed.emit(f"“{row.command[:60]}” {word}; it can no longer run.", False)

    def _show_sessions(self, rows: list[SessionRow]) -> None:
        self.sessions.replace(rows)
        self.shownChanged.emit()
        if self._selected and self.sessions.find(self._selected) < 0:
            self._selected = ""
            self.frameChanged.emit(None)
            self.selectedChanged.emit()

    # properties

    def _get_pending(self) -> int:
        return len(self.requests.rows)

    def _get_selected(self) -> str:
        return self._selected

    def _get_page(self) -> str:
        return self._page

    def _set_page(self, value: str) -> None:
        if value != self._page:
            self._page = value
            self.pageChanged.emit()

    def _get_warning(self) -> str:
        return self._policy.warning

    def _get_policy_path(self) -> str:
        return self._policy.path

    def _get_roots(self) -> str:
        return self._policy.roots

    def _get_address(self) -> str:
        end = self.core.endpoint
        return f"{end.host}:{end.port}" if end is not None else ""

    def _get_shown_name(self) -> str:
        at = self.sessions.find(self._selected)
        return self.sessions.rows[at].name if at >= 0 and self._page == "terminal" else ""

    shownName = Property(str, _get_shown_name, notify=shownChanged)
    pending = Property(int, _get_pending, notify=pendingChanged)
    selected = Property(str, _get_selected, notify=selectedChanged)
    page = Property(str, _get_page, _set_page, notify=pageChanged)
    warning = Property(str, _get_warning, notify=policyChanged)
    policyPath = Property(str, _get_policy_path, notify=policyChanged)
    roots = Property(str, _get_roots, notify=policyChanged)
    address = Property(str, _get_address, constant=True)

    def _get_requests(self) -> QObject:
        return self.requests

    def _get_sessions(self) -> QObject:
        return self.sessions

    def _get_history(self) -> QObject:
        return self.history

    def _get_rules(self) -> QObject:
        return self.rules

    requestModel = Property(QObject, _get_requests, constant=True)
    sessionModel = Property(QObject, _get_sessions, constant=True)
    historyModel = Property(QObject, _get_history, constant=True)
    ruleModel = Property(QObject, _get_rules, constant=True)

    # what the person does

    @Slot(str)
    def select(self, sid: str) -> None:
        self._selected = sid
        self._set_page("terminal")
        self.core.submit(lambda: self.core.watch(sid))
        self.selectedChanged.emit()

    @Slot(int)
    def step(self, by: int) -> None:
        """The next terminal of the list, or the one before."""
        count = len(self.sessions.rows)
        if count:
            at = self.sessions.find(self._selected)
            self.select(self.sessions.rows[(at + by) % count if at >= 0 else (0 if by > 0 else -1)].sid)

    @Slot()
    def openTerminal(self) -> None:
        self.core.submit(lambda: self.core.open_session())

    @Slot(str)
    def killSession(self, sid: str) -> None:
        self.core.submit(lambda: self.core.kill(sid))

    @Slot(str, str, str)
    def approve(self, id: str, scope: str, rule: str) -> None:
        self.core.submit(lambda: self.core.answer(id, True, scope=scope, rule=rule))

    @Slot(str, str)
    def decline(self, id: str, reason: str) -> None:
        self.core.submit(lambda: self.core.answer(id, False, reason=reason))

    @Slot(str, str, bool, result=str)
    def approveEdited(self, id: str, text: str, held: bool) -> str:
        """Approve with other words; they are judged anew, and what destroys must have been `held`. Returns what is wrong with them."""
        try:
            argv = shlex.split(text)
        except ValueError as problem:
            return f"The command cannot be read: {problem}."
        if not argv:
            return "The command is empty."
        self.core.submit(lambda: self.core.answer(id, True, argv=argv, held=held))
        return ""

    @Slot(str, result=str)
    def editable(self, id: str) -> str:
        """The command of a request as a person would type it."""
        at = self.requests.find(id)
        return shlex.join(self.requests.rows[at].raw_argv) if at >= 0 else ""

    @Slot(float, result=int)
    def secondsLeft(self, deadline: float) -> int:
        return max(0, round(deadline - time.time()))

    @Slot(str, str, str)
    def addRule(self, command: str, modes: str, comment: str) -> None:
        self.core.submit(lambda: self.core.add_rule(command, modes, comment))

    @Slot(str)
    def removeRule(self, command: str) -> None:
        self.core.submit(lambda: self.core.remove_rule(command))

    @Slot(str)
    def setRoots(self, text: str) -> None:
        roots = [part.strip() for part in text.split(",") if part.strip()]
        self.core.submit(lambda: self.core.set_roots(roots))

    @Slot(str, result=str)
    def preview(self, pattern: str) -> str:
        """What a rule would have allowed among recent requests."""
        words = pattern.split()
        if not words:
            return ""
        seen = [row.command for row in self.history.rows]
        hit = [command for command in seen if command.split()[: len(words)] == words]
        return f"Begins {len(hit)} of the last {len(seen)} commands." if seen else "No history yet to compare with."

    @Slot(QUrl)
    def exportHistory(self, url: QUrl) -> None:
        path = Path(url.toLocalFile())
        try:
            path.write_text(
                "".join(json.dumps(as_history_line(row)) + "\n" for row in self.history.rows), encoding="utf-8"
            )
        except OSError as problem:
            self.noticed.emit(f"The history could not be written: {problem}", True)
        else:
            self.noticed.emit(f"Written to {path}.", False)

    @Slot(QObject)
    def connectTerminal(self, item: QObject) -> None:
        """Wire the one terminal view to the core."""
        assert isinstance(item, TerminalItem)
        core = self.core
        self.frameChanged.connect(item.show_frame)
        item.keyPressed.connect(lambda key: core.submit(lambda: core.press(key)))
        item.textTyped.connect(lambda text: core.submit(lambda: core.type_text(text)))
        item.pasted.connect(lambda text: core.submit(lambda: core.paste(text)))
        item.scrolled.connect(lambda lines: core.submit(lambda: core.scroll(lines)))
        item.resized.connect(lambda rows, cols: core.submit(lambda: core.resize(rows, cols)))
        item.pointed.connect(lambda action, button, row, col: core.submit(lambda: core.mouse(action, button, row, col)))

    @Slot(str)
    def find(self, text: str) -> None:
        self.core.submit(lambda: self.core.search(text))


def load_window(window: Window, look: Look) -> QQmlApplicationEngine:
    """The QML scene. Raises RuntimeError if it does not load."""
    qmlRegisterType(TerminalItem, "Wsh", 1, 0, "TerminalItem")  # type: ignore[call-overload]
    engine = QQmlApplicationEngine()
    problems: list[str] = []
    engine.warnings.connect(lambda warnings: problems.extend(w.toString() for w in warnings))
    context: Any = engine.rootContext()
    context.setContextProperty("app", window)
    context.setContextProperty("look", look)
    engine.load(QUrl.fromLocalFile(str(QML / "Main.qml")))
    if not engine.rootObjects():
        raise RuntimeError("the window's scene does not load: " + "; ".join(problems))
    return engine
