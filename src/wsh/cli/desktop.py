from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from wsh.wire.error import CapabilityMissing


@click.command("desktop", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def desktop(arguments: tuple[str, ...]) -> None:
    """Open the window where requests are shown and approved; arguments are those of interactive-terminal."""
    program = Path(sys.executable).parent / "interactive-terminal"
    if not program.exists():
        raise CapabilityMissing("The desktop program is not installed beside wsh.", hint="pip install 'wsh[gui]'")
    os.execv(program, [str(program), *arguments])
