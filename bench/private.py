"""Folders of its own for a server that is measured."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsh.wire.system.place import Places, find_places


@contextmanager
def private_places() -> Iterator[Places]:
    with tempfile.TemporaryDirectory() as home:
        before = dict(os.environ)
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (Path(home) / name).mkdir(mode=0o700)
            os.environ[variable] = str(Path(home) / name)
        try:
            yield find_places()
        finally:
            os.environ.clear()
            os.environ.update(before)
