"""Write the manual pages into the folder that is named: `python scripts/make_man.py man`. `make dist` puts them into the wheel."""

from __future__ import annotations

import sys
from pathlib import Path

from wsh.cli.man_page import render_man_pages

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render_man_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
