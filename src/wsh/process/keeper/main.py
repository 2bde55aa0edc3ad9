"""Start of the keeper: become a daemon, open the door, run. Executed by path, never imported.

Usage: main.py SOCKET SECRET_FILE LOG_FILE LINGER_SECONDS. Exits with 0 once the daemon listens.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _make_importable() -> None:
    """Let `wsh.process.keeper.x` be found without executing what the packages above import."""
    path = _here
    for name in ("wsh.process.keeper", "wsh.process", "wsh"):
        package = type(sys)(name)
        package.__path__ = [path]
        sys.modules[name] = package
        path = os.path.dirname(path)


if __name__ == "__main__":
    _make_importable()
    from wsh.process.keeper.daemon import start

    # The journal's thread must not hold up the pump for the usual five milliseconds.
    sys.setswitchinterval(0.0002)
    start(*sys.argv[1:5])
