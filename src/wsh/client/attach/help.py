"""The page that explains the keys of `wsh attach`."""

from __future__ import annotations

from wsh.client.attach.keystroke import Keystroke
from wsh.client.attach.page import Done, Message
from wsh.client.attach.prefix import COMMANDS, Bindings

_SCROLLING = """\
Earlier lines (vi and emacs keys; attach.copy_keys says whose win where they differ)
  arrows, h j k l, Ctrl+P Ctrl+N     move; PgUp PgDn, Ctrl+U Ctrl+D, Alt+V Ctrl+V by pages
  w b e, Alt+F Alt+B                 by words; 0 ^ $, Ctrl+A Ctrl+E within the line
  g G, Alt+< Alt+>, Home End         to the first and the last line
  / ? n N, Ctrl+S Ctrl+R             search forwards and backwards, again
  v Space, Ctrl+Space; V             select; whole lines; o goes to the other end
  y Enter, Alt+W                     copy to the clipboard of your terminal
  the wheel scrolls, dragging selects and copies
  q, Escape, Ctrl+G                  back to the session"""


class HelpPage:
    def __init__(self, bindings: Bindings) -> None:
        prefix = bindings.shown
        lines = [f"Keys of wsh attach, behind {prefix}", ""]
        lines += [f"  {bindings.keys[command.name]:<8} {command.help}" for command in COMMANDS]
        lines += [
            "  arrows   move the part that is shown, where the session is larger than this terminal",
            f"  {prefix} again detaches; any other key closes the hint and goes to the program",
            "",
            *_SCROLLING.splitlines(),
            "",
            "The settings attach.prefix and attach.keys change the keys: wsh config.",
        ]
        self._lines = lines
        self._top = 0
        self._height = 1

    def show(self, rows: int, cols: int) -> list[Message]:
        self._height = max(1, rows - 1)
        self._top = max(0, min(self._top, len(self._lines) - self._height))
        shown = self._lines[self._top : self._top + self._height]
        more = len(self._lines) > self._height
        hint = "up and down scroll · any other key goes back" if more else "any key goes back"
        return [{"type": "page", "lines": shown}, {"type": "hint", "text": hint}]

    def press(self, key: Keystroke) -> Done | None:
        steps = {"up": -1, "k": -1, "wheel_up": -3, "down": 1, "j": 1, "wheel_down": 3}
        steps |= {"pageup": -self._height, "pagedown": self._height, "space": self._height}
        if key.name in steps:
            self._top += steps[key.name]
            return None
        return None if key.name.startswith("mouse") else Done()
