"""The page that lists the sessions, to go to another one: typing narrows the list, Enter goes there."""

from __future__ import annotations

import os

from wsh.client.attach.ask import Questions
from wsh.client.attach.keystroke import Keystroke
from wsh.client.attach.page import Done, Message
from wsh.wire.json.object import JsonObject


class SwitcherPage:
    def __init__(self, questions: Questions, current: str) -> None:
        self._current = current
        found = questions.list_sessions()
        found.sort(key=lambda one: (one["name"] != current, not one["running"], int(one["last_activity_ms"])))
        self._sessions = found
        self._typed = ""
        # The one that is shown stands first; the likeliest wish is the next.
        self._chosen = 1 if len(found) > 1 else 0
        self._top = 0
        self._height = 1

    def show(self, rows: int, cols: int) -> list[Message]:
        self._height = max(1, rows - 1)
        matching = self._matching()
        self._chosen = max(0, min(self._chosen, len(matching) - 1))
        self._top = max(self._chosen - self._height + 1, min(self._top, self._chosen))
        shown = matching[self._top : self._top + self._height]
        width = min(max((len(str(one["name"])) for one in matching), default=0), 32)
        lines = [self._describe(one, width) for one in shown] or ["  no session matches"]
        hint = f"go to: {self._typed}▏ Enter goes there · up and down choose · Escape goes back"
        chosen = self._chosen - self._top if matching else None
        return [{"type": "page", "lines": lines, "chosen": chosen}, {"type": "hint", "text": hint}]

    def press(self, key: Keystroke) -> Done | None:
        steps = {
            "up": -1,
            "ctrl+p": -1,
            "wheel_up": -1,
            "shift+tab": -1,
            "down": 1,
            "ctrl+n": 1,
            "wheel_down": 1,
            "tab": 1,
        }
        steps |= {"pageup": -self._height, "pagedown": self._height}
        matching = self._matching()
        if key.name in steps:
            self._chosen += steps[key.name]
        elif key.name in ("escape", "ctrl+c", "ctrl+g") or key.name.startswith("alt+"):
            return Done()
        elif key.name in ("enter", "ctrl+j"):
            return self._go(matching, self._chosen)
        elif key.name == "mouse_press":
            return self._go(matching, self._top + key.row)
        elif key.name in ("backspace", "ctrl+h"):
            self._typed = self._typed[:-1]
        elif key.name == "ctrl+u":
            self._typed = ""
        elif len(key.name) == 1 or key.name == "space":
            self._typed += " " if key.name == "space" else key.name
            self._chosen = 0
        return None

    def _go(self, matching: list[JsonObject], index: int) -> Done | None:
        if not 0 <= index < len(matching):
            return None
        name = str(matching[index]["name"])
        if name == os.environ.get("WSH_SESSION"):
            return Done(told=f"this terminal is in {name}: a session inside of itself helps nobody")
        return Done() if name == self._current else Done(session=name)

    def _matching(self) -> list[JsonObject]:
        """Sessions that have all words; first where the name begins with what was typed, then where it has it."""
        typed = self._typed.lower().strip()
        found = [one for one in self._sessions if all(word in self._text(one).lower() for word in typed.split())]
        names = [(str(one["name"]).lower(), one) for one in found]
        names.sort(key=lambda pair: (not pair[0].startswith(typed), typed not in pair[0]))
        return [one for _, one in names]

    def _text(self, one: JsonObject) -> str:
        return " ".join(str(one.get(key) or "") for key in ("name", "command", "title", "cwd")) + " ".join(one["tags"])

    def _describe(self, one: JsonObject, width: int) -> str:
        status = "" if one["exit_code"] is None else f" {one['exit_code']}"
        state = "" if one["running"] else f"  exited{status}"
        viewers = f"  {one['clients']} watching" if one["clients"] else ""
        what = one.get("title") or one.get("command") or ""
        here = "*" if one["name"] == self._current else " "
        return f"{here} {one['name']!s:<{width}}  {_age(int(one['last_activity_ms']))}{state}{viewers}  {what}  {one.get('cwd') or ''}"


def _age(ms: int) -> str:
    seconds = ms // 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:>3} {unit:<3}"
    return f"{seconds:>3} s  "
