"""The precompiled declarations are those of the installed library."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "generate_terminal_abi.py"
MODULE = Path(__file__).parents[3] / "src" / "wsh" / "terminal" / "engine" / "abi.py"


def test_the_precompiled_declarations_match_the_installed_pyghostty() -> None:
    made: str = runpy.run_path(str(SCRIPT))["make_module"]()
    assert MODULE.read_text() == made, "run scripts/generate_terminal_abi.py"
