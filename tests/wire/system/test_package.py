from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OPENED = """
import sys
from wsh.wire.system.package import open_package
open_package("heavy.inner")
open_package("heavy.inner")
import heavy.inner.part
assert heavy.inner.part.VALUE == 1 and not hasattr(sys, "heavy_ran")
from heavy import NAME
assert NAME == "whole" and sys.heavy_ran == 1
import heavy
assert heavy.NAME == "whole" and heavy.inner.part.VALUE == 1 and heavy.__version__ == "3" and sys.heavy_ran == 1
"""
ALREADY = """
import heavy
from wsh.wire.system.package import open_package
open_package("heavy")
import sys
assert heavy.NAME == "whole" and sys.heavy_ran == 1
"""


def run(folder: Path, script: str) -> None:
    inner = folder / "heavy" / "inner"
    inner.mkdir(parents=True)
    (folder / "heavy" / "__init__.py").write_text(
        "import sys\nsys.heavy_ran = getattr(sys, 'heavy_ran', 0) + 1\nNAME = 'whole'\n__version__ = '3'\n"
    )
    (inner / "__init__.py").write_text("raise SystemExit('nobody asked for it')\n")
    (inner / "part.py").write_text("VALUE = 1\n")
    script = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{script}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_parts_of_an_opened_package_are_there_and_its_own_code_runs_when_it_is_asked(tmp_path: Path) -> None:
    run(tmp_path, OPENED)


def test_a_package_that_is_there_already_stays_as_it_is(tmp_path: Path) -> None:
    run(tmp_path, ALREADY)
