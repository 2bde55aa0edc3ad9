"""A window in one network, the server in another, as with a container: somebody approves, somebody declines.

    python -m tests.support.desktop.across FOLDER

Prints every answer that the caller got as a line of JSON. Needs to be root in its namespace.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.contract.topology import PORT, TOKEN, Wire, post, start_server
from tests.support.desktop.window import desk, execute, virtual_screen
from wsh.wire.system.place import find_places


def main(folder: Path) -> None:
    own = {}
    for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (folder / "desk" / variable).mkdir(mode=0o700, parents=True)
        own[variable] = str(folder / "desk" / variable)
    places = find_places({**os.environ, **own})
    where = ("--host", "10.213.0.1", "--port", str(PORT))
    with (
        Wire(folder) as wire,
        virtual_screen() as display,
        desk(
            places,
            display,
            *where,
            environ={**own, "PM_INTERACTIVE_TERMINAL_TOKEN": TOKEN},
            within=("ip", "netns", "exec", wire.desk),
        ) as window,
        ThreadPoolExecutor() as callers,
    ):
        # Nothing is cut here: a busy machine may take its time.
        server, path = start_server(wire, folder, connect_ms=60_000, request_ms=120_000)
        try:
            for key, body in (
                ("ctrl+Return", execute("hostname", "-I")),
                ("ctrl+BackSpace", execute("touch", str(folder / "made"))),
            ):
                asked = callers.submit(post, path, body)
                window.wait_for_pending(1)
                window.press("ctrl+1", key)
                print(json.dumps(asked.result()), flush=True)
                window.wait_for_pending(0)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
