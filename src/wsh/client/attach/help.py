"""The page that explains the keys of `wsh attach`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsh.client.attach.keystroke import Keystroke
from wsh.client.attach.page import Done, Message
from wsh.client.attach.prefix import COMMANDS, Bindings

if TYPE_CHECKING:
    from wsh.client.attach.look_back import CopyKeys

_SCROLLING: dict[CopyKeys, str] = {
    "vi": """\
Earlier lines, with the keys of vi
  arrows, h j k l      move; PgUp PgDn, Ctrl+B Ctrl+F by pages, Ctrl+U Ctrl+D by half of one
  w b e, 0 ^ $         by words; within the line
  g G, H M L, { }      to the first and last line; within the page; to the next gap
  / ? n N              search forwards and backwards for an expression; again, other way
  v Space, V           select; whole lines; o goes to the other end
  y Enter              copy to the clipboard of your terminal
  q, Escape            back to the session""",
    "emacs": """\
Earlier lines, with the keys of emacs
  arrows, Ctrl+P N B F    move; PgUp PgDn, Alt+V Ctrl+V by pages
  Alt+F Alt+B             by words; Ctrl+A Alt+M Ctrl+E within the line
  Alt+< Alt+>             to the first and the last line; Alt+{ Alt+} to the next gap
  Ctrl+S Ctrl+R           search forwards and backwards for an expression; twice: again
  Ctrl+Space              select
  Alt+W Ctrl+W            copy to the clipboard of your terminal
  Ctrl+G                  back to the session""",
}
_OTHER: dict[CopyKeys, CopyKeys] = {"vi": "emacs", "emacs": "vi"}


class HelpPage:
    def __init__(self, bindings: Bindings, copy_keys: CopyKeys = "vi") -> None:
        prefix = bindings.shown
        lines = [f"Keys of wsh attach, behind {prefix}", ""]
        lines += [f"  {bindings.keys[command.name]:<8} {command.help}" for command in COMMANDS]
        lines += [
            "  arrows   move the part that is shown, where the session is larger than this terminal",
            f"  {prefix} again detaches",
            "",
            *_SCROLLING[copy_keys].splitlines(),
            "  the wheel scrolls, dragging selects and copies",
            f"  Keys of {_OTHER[copy_keys]} work, too, where they mean nothing else here: attach.copy_keys.",
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
