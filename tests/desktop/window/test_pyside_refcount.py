"""A window that draws all day does not end its interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

DRAW = """
import os
from PySide6.QtGui import QColor, QImage, QPainter
from wsh.desktop.window.pyside_refcount import keep_constants
keep_constants()
image = QImage(10, 10, QImage.Format.Format_RGB32)
painter = QPainter(image)
for _ in range(100_000):
    painter.setPen(QColor("red"))
    painter.isActive()
painter.end()
print("drawn", flush=True)
os._exit(0)
"""


def test_a_hundred_thousand_calls_of_the_binding_leave_the_interpreter_alive() -> None:
    environ = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", DRAW], env=environ, capture_output=True, text=True, timeout=60)
    assert done.stdout == "drawn\n", done.stderr
