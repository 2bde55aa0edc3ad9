"""The window's controller: what the core tells becomes models and properties, what the person does becomes a word to the core."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import Property, QObject, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtQml import QQmlApplicationEngine, qmlRegisterType

from wsh.desktop.link import WindowLink
from wsh.desktop.message import (
    CardRow,
    HistoryRow,
    InboxRow,
    PolicyView,
    Preferences,
    RuleRow,
    SessionRow,
    TerminalFrame,
    WindowHello,
    WindowNotice,
)
from wsh.desktop.window.model import ListModel
from wsh.desktop.window.terminal_item import TerminalItem
from wsh.look import load

QML = Path(__file__).parent / "qml"
OPENED = ("http", "https", "mailto", "file")
"""Kinds of links that may be opened."""


class Look(QObject):
    """The tokens for QML, following the system between dark and light."""

    changed = Signal()

    def __init__(self, fixed: str | None = None) -> None:
        super().__init__()
        self._tokens = load()
        self._fixed = fixed
        self._chosen = fixed or "system"
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(lambda _: self.changed.emit())

    def prefer(self, theme: str) -> None:
        """What the settings say; the command line goes before them."""
        if self._fixed is None and theme != self._chosen:
            self._chosen = theme
            self.changed.emit()

    def _get_theme(self) -> str:
        if self._chosen != "system":
            return self._chosen
        scheme = QGuiApplication.styleHints().colorScheme()
        return "light" if scheme == Qt.ColorScheme.Light else "dark"

    def _get_colors(self) -> dict[str, str]:
        return dict(self._tokens[self._get_theme()])

    theme = Property(str, _get_theme, notify=changed)
    c = Property("QVariantMap", _get_colors, notify=changed)  # type: ignore[arg-type]  # Qt takes its own names of types


class WindowController(QObject):
    """What QML calls `app`."""

    greeted = Signal(bool)
    asked = Signal(object)
    raiseWanted = Signal()
    quitWanted = Signal()
    typed = Signal(str)
    pendingChanged = Signal()
    selectedChanged = Signal()
    pageChanged = Signal()
    shownChanged = Signal()
    noticed = Signal(str, bool)
    frameChanged = Signal(object)
    policyChanged = Signal()
    preferencesChanged = Signal()
    clockChanged = Signal()
    previewed = Signal(str, str)
    holdWanted = Signal(str, str)
    refused = Signal(str, str)
    currentChanged = Signal()
    inboxChanged = Signal()

    def __init__(self, link: WindowLink, look: Look) -> None:
        super().__init__()
        self._link = link
        self._look = look
        self.requests: ListModel[CardRow] = ListModel(CardRow, "id")
        self.sessions: ListModel[SessionRow] = ListModel(SessionRow, "sid")
        self.history: ListModel[HistoryRow] = ListModel(HistoryRow, "id")
        self.rules: ListModel[RuleRow] = ListModel(RuleRow, "key")
        self.inbox: ListModel[InboxRow] = ListModel(InboxRow, "id")
        self.preferences = Preferences()
        self.terminal: TerminalItem | None = None
        self._policy = PolicyView()
        self._address = ""
        self._selected = ""
        self._page = "requests"
        self._current = ""
        self._started = ""
        self._captured = ""
        self._lost = ""
        self.selectedChanged.connect(self.shownChanged)
        self.pageChanged.connect(self.shownChanged)
        # One clock for all countdowns.
        self._clock = QTimer(self)
        self._clock.setInterval(1000)
        self._clock.timeout.connect(self.clockChanged)

    # hearing the core

    def hear(self, value: object) -> None:
        match value:
            case TerminalFrame():
                self._show_frame(value)
            case CardRow():
                self.requests.put(value)
                if not self._current:
                    self._set_current(value.id)
                self._clock.start()
                self.pendingChanged.emit()
                self.asked.emit(value)
            case HistoryRow():
                self.history.put(value, first=True)
            case PolicyView():
                self._policy = value
                self.rules.edit(value.rules)
                self.policyChanged.emit()
            case Preferences():
                self.preferences = value
                self._look.prefer(value.theme)
                self.preferencesChanged.emit()
            case WindowHello():
                self._greet(value)
            case WindowNotice():
                self.noticed.emit(value.text, value.bad)
            case ("sessions", tuple(rows)):
                self._show_sessions([row for row in rows if isinstance(row, SessionRow)])
            case ("inbox", tuple(rows)):
                self.inbox.replace([row for row in rows if isinstance(row, InboxRow)])
                self.inboxChanged.emit()
            case ("closed", str(id), str(outcome), str()):
                self._close(id, outcome)
            case ("hold", str(id), str(why)):
                self.holdWanted.emit(id, why)
            case ("wrong", str(id), str(why)):
                self.refused.emit(id, why)
            case ("started", str(sid)):
                self._started = sid
                self.shownChanged.emit()
            case ("opened", str(sid)):
                self.select(sid)
            case ("preview", str(pattern), str(text)):
                self.previewed.emit(pattern, text)
            case ("raise",):
                self.raiseWanted.emit()
            case ("quit",):
                self.quitWanted.emit()

    def _greet(self, hello: WindowHello) -> None:
        self._address = hello.address
        self.shownChanged.emit()
        if hello.sid and self.sessions.find(hello.sid) >= 0:
            self.select(hello.sid)
            if self.requests.rows:
                self._set_page("requests")
        self.greeted.emit(hello.visible)

    def _show_frame(self, frame: TerminalFrame) -> None:
        if frame.sid == self._selected:
            self.frameChanged.emit(frame)
            if (frame.captured, frame.lost) != (self._captured, self._lost):
                self._captured, self._lost = frame.captured, frame.lost
                self.shownChanged.emit()
        self._link.send("frame_taken")

    def _close(self, id: str, outcome: str) -> None:
        at = self.requests.find(id)
        row = self.requests.take(id)
        if id == self._current:
            # The next one, or the last; never another page.
            rows = self.requests.rows
            self._set_current(rows[min(at, len(rows) - 1)].id if rows else "")
        if not self.requests.rows:
            self._clock.stop()
        self.pendingChanged.emit()
        if row is not None and outcome in ("withdrawn", "expired"):
            word = "was withdrawn by its caller" if outcome == "withdrawn" else "ran out of time"
            self.noticed.emit(f"“{str(row.card['command'])[:60]}” {word}; it can no longer run.", False)

    def _show_sessions(self, rows: list[SessionRow]) -> None:
        self.sessions.replace(rows)
        self.shownChanged.emit()
        if self._selected and self.sessions.find(self._selected) < 0:
            self._selected = ""
            self._captured, self._lost = "", ""
            self.frameChanged.emit(None)
            self.selectedChanged.emit()

    # properties

    def _get_pending(self) -> int:
        return len(self.requests.rows)

    def _get_wanting(self) -> int:
        """Entries of the inbox that wait for the person."""
        return sum(row.wants for row in self.inbox.rows)

    def _get_current(self) -> str:
        return self._current

    def _set_current(self, id: str) -> None:
        if id != self._current:
            self._current = id
            self.currentChanged.emit()

    def _get_waiting(self) -> str:
        """The command that has waited longest, shown on the other pages."""
        rows = self.requests.rows
        return str(rows[0].card["command"]) if rows else ""

    def _get_started(self) -> str:
        """The newest terminal that an approval opened."""
        return self._started if self.sessions.find(self._started) >= 0 else ""

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

    def _get_policy(self) -> dict[str, object]:
        view = self._policy
        kinds = [{"name": kind, "on": kind in view.blocked} for kind in view.kinds]
        return {
            "roots": view.roots,
            "also": view.also,
            "variables": view.variables,
            "lifetime": view.lifetime_s,
            "wait": view.wait_s,
            "kinds": kinds,
        }

    def _get_preferences(self) -> dict[str, object]:
        return dict(self.preferences.__dict__)

    def _get_captured(self) -> str:
        return self._captured

    def _get_lost(self) -> str:
        return self._lost

    def _get_shown_state(self) -> dict[str, object]:
        at = self.sessions.find(self._selected)
        return dict(self.sessions.rows[at].__dict__) if at >= 0 else {}

    def _get_address(self) -> str:
        return self._address

    def _get_shown_name(self) -> str:
        at = self.sessions.find(self._selected)
        return self.sessions.rows[at].name if at >= 0 and self._page == "terminal" else ""

    shownName = Property(str, _get_shown_name, notify=shownChanged)
    pending = Property(int, _get_pending, notify=pendingChanged)
    wanting = Property(int, _get_wanting, notify=inboxChanged)
    current = Property(str, _get_current, _set_current, notify=currentChanged)
    waiting = Property(str, _get_waiting, notify=pendingChanged)
    started = Property(str, _get_started, notify=shownChanged)
    selected = Property(str, _get_selected, notify=selectedChanged)
    page = Property(str, _get_page, _set_page, notify=pageChanged)
    warning = Property(str, _get_warning, notify=policyChanged)
    policyPath = Property(str, _get_policy_path, notify=policyChanged)
    policy = Property("QVariantMap", _get_policy, notify=policyChanged)  # type: ignore[arg-type]  # PySide takes names of types, its stubs do not
    prefers = Property("QVariantMap", _get_preferences, notify=preferencesChanged)  # type: ignore[arg-type]  # as above
    shown = Property("QVariantMap", _get_shown_state, notify=shownChanged)  # type: ignore[arg-type]  # as above
    captured = Property(str, _get_captured, notify=shownChanged)
    lost = Property(str, _get_lost, notify=shownChanged)
    address = Property(str, _get_address, notify=shownChanged)

    def _get_requests(self) -> QObject:
        return self.requests

    def _get_sessions(self) -> QObject:
        return self.sessions

    def _get_history(self) -> QObject:
        return self.history

    def _get_rules(self) -> QObject:
        return self.rules

    def _get_inbox(self) -> QObject:
        return self.inbox

    inboxModel = Property(QObject, _get_inbox, constant=True)
    requestModel = Property(QObject, _get_requests, constant=True)
    sessionModel = Property(QObject, _get_sessions, constant=True)
    historyModel = Property(QObject, _get_history, constant=True)
    ruleModel = Property(QObject, _get_rules, constant=True)

    # what the person does

    @Slot(str)
    def select(self, sid: str) -> None:
        self._selected = sid
        self._captured, self._lost = "", ""
        self._set_page("terminal")
        self._link.send("watch", sid)
        self.selectedChanged.emit()

    @Slot(str)
    def openEntry(self, id: str) -> None:
        """Show what an entry of the inbox is about: its session, or the requests."""
        at = self.inbox.find(id)
        if at >= 0:
            name = self.inbox.rows[at].session
            sid = next((row.sid for row in self.sessions.rows if row.remote and row.name == name), "")
            if sid:
                self.select(sid)
            else:
                self._set_page("requests")

    @Slot(str, str)
    def markEntry(self, id: str, action: str) -> None:
        self._link.send("mark_inbox", id, action)

    @Slot(int)
    def step(self, by: int) -> None:
        """The next terminal of the list, or the one before."""
        count = len(self.sessions.rows)
        if count:
            at = self.sessions.find(self._selected)
            self.select(self.sessions.rows[(at + by) % count if at >= 0 else (0 if by > 0 else -1)].sid)

    @Slot()
    def openTerminal(self) -> None:
        self._link.send("open_session")

    @Slot(str)
    def killSession(self, sid: str) -> None:
        self._link.send("kill", sid)

    @Slot(str, bool, "QVariantMap")
    def answer(self, id: str, yes: bool, given: dict[str, object]) -> None:
        """The person's answer to a card, by the names of an approval's answer."""
        at = self.requests.find(id)
        if at >= 0:
            self._link.send("answer", id, yes, {"digest": self.requests.rows[at].card["binding"], **given})

    @Slot(int)
    def stepCard(self, by: int) -> None:
        """Which card a key would answer: the next one, or the one before."""
        count = len(self.requests.rows)
        if count:
            at = max(0, min(count - 1, self.requests.find(self._current) + by))
            self._set_current(self.requests.rows[at].id)

    @Slot(float, result=int)
    def secondsLeft(self, deadline: float) -> int:
        return max(0, round(deadline - time.time()))

    # policy

    @Slot(str, str, str, str, str)
    def addRule(self, command: str, effect: str, modes: str, comment: str, cwd: str) -> None:
        self._link.send("add_rule", command, effect, modes, comment, cwd)

    @Slot(str, str, str, str, str, str)
    def changeRule(self, key: str, command: str, effect: str, modes: str, comment: str, cwd: str) -> None:
        self._link.send("change_rule", key, command, effect, modes, comment, cwd)

    @Slot(str)
    def removeRule(self, key: str) -> None:
        self._link.send("remove_rule", key)

    @Slot(str)
    def preview(self, pattern: str) -> None:
        """What a rule would have meant for recent requests; the answer comes by `previewed`."""
        self._link.send("preview", pattern)

    @Slot(str, str)
    def setList(self, name: str, text: str) -> None:
        """One of the lists of the policy, written with commas: roots, also or variables."""
        self._link.send(f"set_{name}", [part.strip() for part in text.split(",") if part.strip()])

    @Slot(str, str)
    def setSeconds(self, name: str, text: str) -> None:
        """One of the limits, in seconds; nothing means none: lifetime or wait."""
        seconds = text.strip() or "0"
        if not seconds.isdigit():
            self.noticed.emit("Write a whole number of seconds, or nothing.", True)
            return
        self._link.send(f"set_{name}", int(seconds))

    @Slot(str, bool)
    def setBlocked(self, kind: str, on: bool) -> None:
        self._link.send("set_blocked", kind, on)

    @Slot(str, "QVariant")
    def prefer(self, name: str, value: object) -> None:
        self._link.send("prefer", name, value)

    @Slot(result=str)
    def exportPath(self) -> str:
        """Where the history is written unless somebody says otherwise."""
        return str(Path.home() / f"wsh-history-{time.strftime('%Y-%m-%d')}.jsonl")

    @Slot(str)
    def exportHistory(self, path: str) -> None:
        self._link.send("export", path)

    # the terminal

    @Slot(QObject)
    def connectTerminal(self, item: QObject) -> None:
        """Wire the one terminal view to the core."""
        assert isinstance(item, TerminalItem)
        self.terminal = item
        send = self._link.send
        self.frameChanged.connect(item.show_frame)
        item.keyPressed.connect(lambda key: send("press", key))
        item.textTyped.connect(self._type)
        item.pasted.connect(lambda text: send("paste", text))
        item.scrolled.connect(lambda lines: send("scroll", lines))
        item.resized.connect(lambda rows, cols: send("resize", rows, cols))
        item.pointed.connect(lambda action, button, row, col: send("mouse", action, button or None, row, col))
        item.linkOpened.connect(self.openLink)

    def _type(self, text: str) -> None:
        self.typed.emit(text)
        self._link.send("type_text", text)

    @Slot(int)
    def scrollTo(self, lines: int) -> None:
        self._link.send("scroll_to", lines)

    @Slot(str, bool)
    def find(self, text: str, backwards: bool) -> None:
        self._link.send("search", text, backwards)

    @Slot()
    def releaseKeys(self) -> None:
        """End a capture by hand."""
        self._link.send("press", "ctrl+\\")

    @Slot(str)
    def openLink(self, address: str) -> None:
        """Open what a program linked to, if it is of a kind that only shows something."""
        url = QUrl(address)
        if url.scheme().lower() not in OPENED:
            self.noticed.emit(f"Links of this kind are not opened: {address[:200]}", True)
        elif not QDesktopServices.openUrl(url):
            self.noticed.emit(f"Nothing on this desktop opens {address[:200]}", True)


def load_window(window: WindowController, look: Look) -> QQmlApplicationEngine:
    """The QML scene. Raises RuntimeError if it does not load."""
    qmlRegisterType(TerminalItem, "Wsh", 1, 0, "TerminalItem")  # type: ignore[call-overload]  # the stub has another signature
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
