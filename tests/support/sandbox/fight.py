"""One run of the arena as another process, as this user or as an ordinary one."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.sandbox.held import BackendName, require
from wsh.sandbox import bubblewrap, landlock
from wsh.sandbox.claim import Claim
from wsh.sandbox.profile import BUILT_IN

Who = Literal["self", "ordinary"]
ORDINARY = 54321
"""A user that no account has: nothing belongs to it but what a test gives it."""
ROOT = Path(__file__).parents[3]
_LIMIT_S = 400


def list_claims(backend: BackendName, profile: str) -> frozenset[Claim]:
    if backend == "bubblewrap":
        return bubblewrap.list_claims(BUILT_IN[profile])
    return landlock.list_claims(BUILT_IN[profile], landlock.read_abi())


@cache
def fight(backend: BackendName, profile: str, who: Who, names: str = "") -> dict[str, dict[str, Any]]:
    """What came of the attempts `names` (separated by commas; empty for all). Skips where the machine cannot."""
    require(backend)
    user = None if who == "self" or os.getuid() != 0 else ORDINARY
    root = Path(tempfile.mkdtemp(prefix="arena"))
    code = ROOT if user is None else _copy_code()
    try:
        for name in ("home", "own/config", "own/state", "own/runtime"):
            (root / name).mkdir(parents=True, mode=0o700)
        if user is not None:
            for path in (root, *root.rglob("*")):
                os.chown(path, user, user)
        env = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "own/config"),
            "XDG_STATE_HOME": str(root / "own/state"),
            "XDG_RUNTIME_DIR": str(root / "own/runtime"),
            "PYTHONPATH": f"{code / 'src'}:{code}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        words = [_find_python(user, code), "-m", "tests.support.sandbox.arena", backend, profile, str(root), names]
        identity: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        done = subprocess.run(words, env=env, cwd="/", capture_output=True, timeout=_LIMIT_S, check=False, **identity)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        found: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return found
    finally:
        shutil.rmtree(root, ignore_errors=True)


@cache
def _copy_code() -> Path:
    """What another user may read: the folder of the tests may be closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="code"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    unneeded = shutil.ignore_patterns("__pycache__", "static", "node_modules")
    for name in ("src/wsh", "tests/support"):
        shutil.copytree(ROOT / name, folder / name, ignore=unneeded)
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests")
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    return folder


def _find_python(user: int | None, code: Path) -> str:
    """One that this user may execute: that of the tests may lie in a closed home folder."""
    for path in (sys.executable, "/usr/bin/python3"):
        identity: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        try:
            words = [path, "-c", f"import sys, os; os.listdir({str(code)!r}); sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(words, capture_output=True, check=False, **identity).returncode == 0:
                return path
        except OSError:
            pass
    pytest.skip("no Python 3.11 that another user may execute")
