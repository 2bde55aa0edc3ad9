"""When each key was pressed and each frame was shown, for measuring. Does nothing unless it is asked for."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtQuick import QQuickWindow

from wsh.desktop.window.controller import WindowController


class Timing:
    """Lines of `seconds kind text`: a frame with what its first row says, a key with what was typed."""

    def __init__(self, scene: QQuickWindow, window: WindowController) -> None:
        self._lines: list[str] = []
        self._window = window
        scene.frameSwapped.connect(self._on_frame)
        window.typed.connect(lambda text: self._add("key", text))

    def _on_frame(self) -> None:
        terminal = self._window.terminal
        self._add("frame", terminal.row_text(0) if terminal is not None else "")

    def _add(self, kind: str, text: str) -> None:
        self._lines.append(f"{time.monotonic():.6f} {kind} {text}\n")

    def write(self, path: Path) -> None:
        path.write_text("".join(self._lines), encoding="utf-8")
