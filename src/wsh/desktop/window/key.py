"""Qt's key events as the names that the engine's encoder knows."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

_NAMES: dict[int, str] = {
    Qt.Key.Key_Return: "enter",
    Qt.Key.Key_Enter: "enter",
    Qt.Key.Key_Escape: "escape",
    Qt.Key.Key_Tab: "tab",
    Qt.Key.Key_Backtab: "shift+tab",
    Qt.Key.Key_Backspace: "backspace",
    Qt.Key.Key_Delete: "delete",
    Qt.Key.Key_Insert: "insert",
    Qt.Key.Key_Home: "home",
    Qt.Key.Key_End: "end",
    Qt.Key.Key_PageUp: "pageup",
    Qt.Key.Key_PageDown: "pagedown",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Space: "space",
    **{getattr(Qt.Key, f"Key_F{n}"): f"f{n}" for n in range(1, 13)},
}


def name_key(event: QKeyEvent) -> str | None:
    """The name of a key that is not plain text, such as "ctrl+c" or "shift+f5"; None for text as it is."""
    held = event.modifiers()
    parts = []
    if held & Qt.KeyboardModifier.ControlModifier:
        parts.append("ctrl")
    if held & Qt.KeyboardModifier.AltModifier:
        parts.append("alt")
    shift = bool(held & Qt.KeyboardModifier.ShiftModifier)
    key = event.key()
    name = _NAMES.get(key)
    if name == "space" and not parts:
        return None
    if name is not None:
        if shift and not name.startswith("shift+"):
            parts.append("shift")
        return "+".join([*parts, name])
    if parts and 0x20 < key < 0x7F:
        if shift and chr(key).isalpha():
            parts.append("shift")
        return "+".join([*parts, chr(key).lower()])
    return None
