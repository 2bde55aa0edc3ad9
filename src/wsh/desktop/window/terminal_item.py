"""The terminal in the window: draws a grid of cells by itself, row by row, and turns keys into names.

Rows live in an image; a frame repaints only the rows that changed, and the scene only that part of the screen. Nothing is decided here: keys
go to the core by name, and the engine's encoder makes bytes of them there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from PySide6.QtCore import Property, QEvent, QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QHoverEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QWheelEvent,
)
from PySide6.QtQuick import QQuickItem, QQuickPaintedItem
from wcwidth import wcwidth

from wsh.desktop.message import StyledLine, TerminalFrame
from wsh.desktop.window.key import name_key
from wsh.look import load
from wsh.wire.json.object import JsonObject


class TerminalItem(QQuickPaintedItem):
    keyPressed = Signal(str)
    textTyped = Signal(str)
    pasted = Signal(str)
    scrolled = Signal(int)
    resized = Signal(int, int)
    pointed = Signal(str, str, int, int)
    fontSizeChanged = Signal()
    themeChanged = Signal()
    historyChanged = Signal()
    linkChanged = Signal()
    linkOpened = Signal(str)

    def __init__(self, parent: QQuickItem | None = None) -> None:
        super().__init__(parent)
        self.setFlag(QQuickItem.Flag.ItemIsFocusScope, False)
        self.setFlag(QQuickItem.Flag.ItemAcceptsInputMethod, True)
        self.setAcceptedMouseButtons(Qt.MouseButton.AllButtons)
        self.setAcceptHoverEvents(True)
        self.setOpaquePainting(True)
        self._frame: TerminalFrame | None = None
        self._rows: list[StyledLine] = []
        self._image = QImage()
        self._size_px = 13
        self._link = ""
        self._theme = "dark"
        self._selection: tuple[QPointF, QPointF] | None = None
        self._fonts: dict[tuple[bool, bool], QFont] = {}
        self._colors: dict[str, QColor] = {}
        self._palette: list[QColor] = []
        self._set_up()

    # looks

    def _set_up(self) -> None:
        tokens = load()
        family = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        for bold in (False, True):
            for italic in (False, True):
                font = QFont(family)
                font.setPixelSize(self._size_px)
                font.setBold(bold)
                font.setItalic(italic)
                font.setKerning(False)
                self._fonts[bold, italic] = font
        metrics = QFontMetricsF(self._fonts[False, False])
        self._cell_w = max(1.0, metrics.horizontalAdvance("M"))
        self._cell_h = max(1.0, round(metrics.height() * 1.12))
        self._ascent = (self._cell_h - metrics.height()) / 2 + metrics.ascent()
        self._colors = {name: QColor(value) for name, value in tokens[self._theme].items()}
        self._palette = [QColor(value) for value in tokens["palette"][self._theme]]
        self.setFillColor(self._colors["terminal_ground"])
        self._measure()

    def _get_size(self) -> int:
        return self._size_px

    def _set_size(self, value: int) -> None:
        value = max(7, min(40, value))
        if value != self._size_px:
            self._size_px = value
            self._set_up()
            self.fontSizeChanged.emit()
            self._repaint_all()

    fontSize = Property(int, _get_size, _set_size, notify=fontSizeChanged)

    def _get_theme(self) -> str:
        return self._theme

    def _set_theme(self, value: str) -> None:
        if value != self._theme and value in ("dark", "light"):
            self._theme = value
            self._set_up()
            self.themeChanged.emit()
            self._repaint_all()

    theme = Property(str, _get_theme, _set_theme, notify=themeChanged)

    def _get_history(self) -> int:
        return self._frame.history if self._frame is not None else 0

    history = Property(int, _get_history, notify=historyChanged)

    def _get_scrolled(self) -> int:
        return self._frame.scrolled if self._frame is not None else 0

    scrolledBy = Property(int, _get_scrolled, notify=historyChanged)

    def _get_rows_shown(self) -> int:
        return max(1, int(self.height() // self._cell_h))

    rowsShown = Property(int, _get_rows_shown, notify=historyChanged)

    # size

    def geometryChange(self, new: QRectF | QRect, old: QRectF | QRect) -> None:
        super().geometryChange(new, old)
        if new.size() != old.size():
            self._measure()
            self._update_all()

    def _measure(self) -> None:
        if self.width() > 20 and self.height() > 20:
            rows, cols = int(self.height() // self._cell_h), int(self.width() // self._cell_w)
            self.resized.emit(max(1, rows), max(1, cols))

    # frames

    @Slot(object)
    def show_frame(self, frame: TerminalFrame | None) -> None:
        before, self._frame = self._frame, frame
        if frame is None:
            self._rows = []
            self._image = QImage()
            self._set_link("")
            self._update_all()
        else:
            if frame.fresh or before is None or before.sid != frame.sid:
                self._selection = None
            self._take_rows(frame, before)
        if before is None or frame is None or (before.history, before.scrolled) != (frame.history, frame.scrolled):
            self.historyChanged.emit()

    def _update_all(self) -> None:
        # With no rectangle, one that is already or later asked for would be all that is painted.
        self.update(QRect(0, 0, int(self.width()) + 1, int(self.height()) + 1))

    def _repaint_all(self) -> None:
        self._image = QImage()
        if self._frame is not None:
            self._draw_rows(range(len(self._rows)))
        self._update_all()

    def _take_rows(self, frame: TerminalFrame, before: TerminalFrame | None) -> None:
        rows = [] if frame.fresh else self._rows
        del rows[frame.count :]
        for index, row in frame.changed:
            if index < len(rows):
                rows[index] = row
            else:
                rows.append(row)
        self._rows = rows
        whole = frame.fresh or before is None or before.cols != frame.cols or before.count != frame.count
        if whole or self._selection is not None:
            self._draw_rows(range(len(rows)) if whole else [index for index, _ in frame.changed])
            self._update_all()
            return
        dirty = [index for index, _ in frame.changed]
        self._draw_rows(dirty)
        # The cursor is painted over the rows, so the rows where it was and is are dirty, too.
        touched = [*dirty, before.cursor_row if before is not None else 0, frame.cursor_row]
        top, bottom = max(0, min(touched)), min(max(touched), frame.count - 1)
        self.update(QRect(0, int(top * self._cell_h), int(self.width()), int((bottom - top + 1) * self._cell_h) + 1))

    def _draw_rows(self, indexes: Iterable[int]) -> None:
        frame = self._frame
        assert frame is not None
        window = self.window()
        ratio = window.effectiveDevicePixelRatio() if window is not None else 1.0
        width, height = int(frame.cols * self._cell_w * ratio) + 1, int(frame.count * self._cell_h * ratio) + 1
        if self._image.width() != width or self._image.height() != height:
            self._image = QImage(width, height, QImage.Format.Format_RGB32)
            self._image.setDevicePixelRatio(ratio)
            self._image.fill(self._colors["terminal_ground"])
            indexes = range(len(self._rows))
        painter = QPainter(self._image)
        try:
            for index in indexes:
                self._draw_row(painter, index, self._rows[index], frame.cols)
        finally:
            painter.end()

    @property
    def cell_size(self) -> tuple[float, float]:
        return self._cell_w, self._cell_h

    @property
    def cols(self) -> int:
        return self._frame.cols if self._frame is not None else 0

    @property
    def rows_text(self) -> list[str]:
        return [self.row_text(index) for index in range(len(self._rows))]

    def row_text(self, index: int) -> str:
        return "".join(str(span["text"]) for span in self._rows[index]) if index < len(self._rows) else ""

    def _draw_row(self, painter: QPainter, index: int, row: StyledLine, cols: int) -> None:
        y = index * self._cell_h
        ground, text = self._colors["terminal_ground"], self._colors["terminal_text"]
        painter.fillRect(QRectF(0, y, cols * self._cell_w + 1, self._cell_h), ground)
        col = 0
        for span in row:
            words = str(span["text"])
            fg = self._color(span.get("fg")) or text
            bg = self._color(span.get("bg"))
            if span.get("inverse"):
                fg, bg = bg or ground, fg
            if span.get("faint"):
                fg = QColor(fg)
                fg.setAlphaF(0.6)
            wide = len(words) if words.isascii() else sum(_width(c) for c in words)
            x = col * self._cell_w
            if bg is not None:
                painter.fillRect(QRectF(x, y, wide * self._cell_w, self._cell_h), bg)
            painter.setPen(fg)
            painter.setFont(self._fonts[bool(span.get("bold")), bool(span.get("italic"))])
            if words.isascii():
                if words.strip():
                    painter.drawText(QPointF(x, y + self._ascent), words)
            else:
                self._draw_cells(painter, words, x, y)
            if span.get("underline"):
                self._draw_underline(painter, str(span["underline"]), x, y, wide)
            elif span.get("link"):
                self._draw_underline(painter, "dotted", x, y, wide)
            if span.get("strikethrough"):
                middle = y + self._cell_h / 2
                painter.drawLine(QPointF(x, middle), QPointF(x + wide * self._cell_w, middle))
            col += wide

    def _draw_underline(self, painter: QPainter, style: str, x: float, y: float, wide: int) -> None:
        base, end = y + min(self._ascent + 2, self._cell_h - 2), x + wide * self._cell_w
        pen = QPen(painter.pen())
        if style == "dotted":
            pen.setStyle(Qt.PenStyle.DotLine)
        elif style == "dashed":
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        if style == "curly":
            step = max(2.0, self._cell_w / 4)
            count = int((end - x) / step) + 1
            painter.drawPolyline([QPointF(x + n * step, base + (1 if n % 2 else -1)) for n in range(count)])
            return
        painter.drawLine(QPointF(x, base), QPointF(end, base))
        if style == "double":
            painter.drawLine(QPointF(x, base - 2), QPointF(end, base - 2))

    def _draw_cells(self, painter: QPainter, words: str, x: float, y: float) -> None:
        """One cluster at a time, so that no font's own width can shift what follows."""
        cluster = ""
        start = x
        for character in words:
            width = _width(character)
            if width == 0:
                cluster += character
                continue
            if cluster.strip():
                painter.drawText(QPointF(start, y + self._ascent), cluster)
            cluster, start = character, x
            x += width * self._cell_w
        if cluster.strip():
            painter.drawText(QPointF(start, y + self._ascent), cluster)

    def _color(self, color: JsonObject | None) -> QColor | None:
        if color is None:
            return None
        if "rgb" in color:
            rgb = color["rgb"]
            return QColor(rgb["r"], rgb["g"], rgb["b"])
        n = int(color["indexed"])
        if n < 16:
            return self._palette[n]
        if n < 232:
            steps = (0, 95, 135, 175, 215, 255)
            n -= 16
            return QColor(steps[n // 36], steps[n // 6 % 6], steps[n % 6])
        grey = 8 + 10 * (n - 232)
        return QColor(grey, grey, grey)

    def paint(self, painter: QPainter) -> None:
        painter.fillRect(QRectF(0, 0, self.width(), self.height()), self._colors["terminal_ground"])
        frame = self._frame
        if frame is None:
            return
        painter.drawImage(QPointF(0, 0), self._image)
        if self._selection is not None:
            shade = QColor(self._colors["terminal_selection"])
            shade.setAlphaF(0.55)
            for row, first, last in self._selected_cells():
                left = first * self._cell_w
                painter.fillRect(QRectF(left, row * self._cell_h, (last - first) * self._cell_w, self._cell_h), shade)
        if frame.cursor_visible and 0 <= frame.cursor_row < frame.count:
            self._paint_cursor(painter, frame)

    def _paint_cursor(self, painter: QPainter, frame: TerminalFrame) -> None:
        x, y = frame.cursor_col * self._cell_w, frame.cursor_row * self._cell_h
        color = self._colors["terminal_cursor"]
        if not self.hasActiveFocus():
            painter.setPen(color)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(x + 0.5, y + 0.5, self._cell_w - 1, self._cell_h - 1))
        elif frame.cursor_shape == "bar":
            painter.fillRect(QRectF(x, y, 2, self._cell_h), color)
        elif frame.cursor_shape == "underline":
            painter.fillRect(QRectF(x, y + self._cell_h - 2, self._cell_w, 2), color)
        else:
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Difference)
            painter.fillRect(QRectF(x, y, self._cell_w, self._cell_h), QColor("white"))
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)

    # keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers()
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        key = event.key()
        if control and shift and key == Qt.Key.Key_C:
            self.copy()
        elif control and shift and key == Qt.Key.Key_V:
            self.paste()
        elif control and key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._set_size(self._size_px + 1)
        elif control and key == Qt.Key.Key_Minus:
            self._set_size(self._size_px - 1)
        elif shift and key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            page = max(1, int(self.height() // self._cell_h) - 1)
            self.scrolled.emit(page if key == Qt.Key.Key_PageUp else -page)
        else:
            name = name_key(event)
            if name is not None:
                self.keyPressed.emit(name)
            elif event.text():
                self.textTyped.emit(event.text())
            else:
                event.ignore()
                return
        event.accept()

    def focusInEvent(self, event: Any) -> None:
        super().focusInEvent(event)
        self._update_all()

    def focusOutEvent(self, event: Any) -> None:
        super().focusOutEvent(event)
        self._update_all()

    @Slot()
    def paste(self) -> None:
        text = QGuiApplication.clipboard().text()
        if text:
            self.pasted.emit(text)

    @Slot()
    def copy(self) -> None:
        text = self.selected_text()
        if text:
            QGuiApplication.clipboard().setText(text)

    # the mouse

    def _cell_at(self, point: QPointF) -> tuple[int, int]:
        return int(point.y() // self._cell_h), int(point.x() // self._cell_w)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.forceActiveFocus()
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if control and event.button() == Qt.MouseButton.LeftButton and (link := self._link_at(event.position())):
            self.linkOpened.emit(link)
            event.accept()
            return
        held = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if self._frame is not None and self._frame.mouse and not held:
            self._point("press", event)
        elif event.button() == Qt.MouseButton.MiddleButton:
            self.paste()
        else:
            self._selection = (event.position(), event.position())
        self._update_all()
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._selection is not None:
            self._selection = (self._selection[0], event.position())
            self._update_all()
        elif self._frame is not None and self._frame.mouse:
            self._point("motion", event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._selection is not None:
            if (self._selection[0] - event.position()).manhattanLength() < 3:
                self._selection = None
            self._update_all()
        elif self._frame is not None and self._frame.mouse:
            self._point("release", event)

    def _point(self, action: str, event: QMouseEvent) -> None:
        row, col = self._cell_at(event.position())
        names = {
            Qt.MouseButton.LeftButton: "left",
            Qt.MouseButton.RightButton: "right",
            Qt.MouseButton.MiddleButton: "middle",
        }
        self.pointed.emit(action, names.get(event.button(), "left"), row, col)

    def wheelEvent(self, event: QWheelEvent) -> None:
        lines = event.angleDelta().y() / 40
        if self._frame is not None and self._frame.mouse:
            row, col = self._cell_at(event.position())
            self.pointed.emit("press", "wheel_up" if lines > 0 else "wheel_down", row, col)
        elif lines:
            self.scrolled.emit(round(lines) or (1 if lines > 0 else -1))
        event.accept()

    def hoverMoveEvent(self, event: QHoverEvent) -> None:
        self._set_link(self._link_at(event.position()))
        event.ignore()

    def hoverLeaveEvent(self, event: QHoverEvent) -> None:
        self._set_link("")
        event.ignore()

    # links

    def _link_at(self, point: QPointF) -> str:
        """Where the cell under `point` leads, if anywhere."""
        row, col = self._cell_at(point)
        if not 0 <= row < len(self._rows):
            return ""
        at = 0
        for span in self._rows[row]:
            at += sum(_width(character) for character in str(span["text"]))
            if col < at:
                return str(span.get("link") or "")
        return ""

    def _set_link(self, link: str) -> None:
        if link != self._link:
            self._link = link
            self.setCursor(Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.IBeamCursor)
            self.linkChanged.emit()

    def _get_link(self) -> str:
        return self._link

    link = Property(str, _get_link, notify=linkChanged)

    def event(self, event: QEvent) -> bool:
        # Tab belongs to the program, not to the window's focus chain.
        pressed = event if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress else None
        if pressed is not None and pressed.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            self.keyPressEvent(pressed)
            return True
        return bool(super().event(event))

    # selection

    def _selected_cells(self) -> list[tuple[int, int, int]]:
        assert self._selection is not None and self._frame is not None
        one, other = sorted(self._cell_at(point) for point in self._selection)
        cells = []
        for row in range(max(0, one[0]), min(other[0], len(self._rows) - 1) + 1):
            first = one[1] if row == one[0] else 0
            last = other[1] + 1 if row == other[0] else self._frame.cols
            cells.append((row, max(0, first), min(last, self._frame.cols)))
        return cells

    def selected_text(self) -> str:
        if self._selection is None or self._frame is None:
            return ""
        lines = []
        for row, first, last in self._selected_cells():
            lines.append(_cut(self.row_text(row), first, last).rstrip())
        return "\n".join(lines)


def _cut(text: str, first: int, last: int) -> str:
    """The characters of `text` that begin in the cells from `first` up to `last`, with what is combined with them."""
    if text.isascii():
        return text[first:last]
    kept, at, inside = "", 0, False
    for character in text:
        width = _width(character)
        if width:
            inside = first <= at < last
            at += width
        if inside:
            kept += character
    return kept


@cache
def _width(character: str) -> int:
    return 1 if ord(character) < 0x300 else max(0, wcwidth(character))
