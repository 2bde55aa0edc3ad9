"""The program's icon, drawn: a prompt, and a dot while something waits."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap

from wsh.look import load


def make_icon(pending: int) -> QIcon:
    colors = load()["dark"]
    picture = QPixmap(64, 64)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colors["edge"]), 2))
    painter.setBrush(QColor(colors["ground"]))
    painter.drawRoundedRect(QRectF(3, 3, 58, 58), 12, 12)
    pen = QPen(QColor(colors["running"]), 6)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.drawPolyline([QPointF(17, 22), QPointF(28, 32), QPointF(17, 42)])
    painter.setPen(QPen(QColor(colors["text"]), 6))
    painter.drawLine(QPointF(34, 43), QPointF(47, 43))
    if pending:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors["attention"]))
        painter.drawEllipse(QPointF(50, 14), 11, 11)
    painter.end()
    return QIcon(picture)
