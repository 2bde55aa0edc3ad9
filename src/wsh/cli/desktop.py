from __future__ import annotations

import os
import sys

from wsh.cli.declare import Argument, command


@command("desktop", Argument("words", metavar="ARGS", rest=True, required=False))
def desktop(words: tuple[str, ...]) -> None:
    """Open the window where requests are shown and approved; arguments behind -- are those of interactive-terminal."""
    program = os.path.join(os.path.dirname(sys.executable), "interactive-terminal")
    if not os.path.exists(program):
        from wsh.wire.error import CapabilityMissing
        from wsh.wire.version import install_hint

        raise CapabilityMissing("The desktop program is not installed beside wsh.", hint=install_hint("gui"))
    os.execv(program, [program, *words])
