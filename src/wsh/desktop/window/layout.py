"""The places of all named items in the window, for programs that drive it. Off unless asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QPointF
from PySide6.QtQuick import QQuickItem, QQuickWindow

from wsh.desktop.window.terminal_item import TerminalItem


class WindowLayout:
    """Keeps a file up to date with every named item that can be seen, as it was in the last frame.

    `items` has the rectangle (left, top, width, height, in pixels of the screen) of each by its `objectName`, the first
    of those that share one; `terminal` the place and size of its first cell, its columns, the text of its rows and
    whether keys go to it.
    """

    def __init__(self, scene: QQuickWindow, path: Path) -> None:
        self._scene = scene
        self._path = path
        self._told = ""
        scene.frameSwapped.connect(self._on_frame)

    def _on_frame(self) -> None:
        items: dict[str, list[float]] = {}
        terminal: dict[str, object] = {}
        for item in _walk(self._scene.contentItem()):
            name = item.objectName()
            if not name or name in items:
                continue
            corner = item.mapToGlobal(QPointF(0, 0))
            items[name] = [corner.x(), corner.y(), item.width(), item.height()]
            if isinstance(item, TerminalItem):
                terminal = {
                    "cell": [corner.x(), corner.y(), *item.cell_size],
                    "cols": item.cols,
                    "rows": item.rows_text,
                    "has_keyboard": item.hasActiveFocus(),
                }
        told = json.dumps({"items": items, "terminal": terminal})
        if told != self._told:
            self._told = told
            new = self._path.with_suffix(".new")
            new.write_text(told, encoding="utf-8")
            os.replace(new, self._path)


def _walk(item: QQuickItem) -> Iterator[QQuickItem]:
    """Everything in it that is visible and has a size."""
    for child in item.childItems():
        if child.isVisible():
            if child.width() > 0 and child.height() > 0:
                yield child
            yield from _walk(child)
