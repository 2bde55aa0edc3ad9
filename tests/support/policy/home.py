"""A home of its own with rules in it, for the programs that a test starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wsh.wire.system.place import Places, find_places


@contextmanager
def home_with_policy(folder: Path, policy: str) -> Iterator[Places]:
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        patch.setenv("HOME", str(folder))
        found = find_places()
        found.config.mkdir(mode=0o700, parents=True)
        found.policy_file.write_text(policy)
        yield found
