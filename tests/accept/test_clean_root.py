"""A fresh Debian, without a compiler and without Node: wsh is installed from a folder of wheels and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.accept.use import use_wsh

ROOT = Path(__file__).parents[2]
RELEASES = {"bookworm": "3.11", "trixie": "3.13"}
PACKAGES = "python3,python3-venv,bash,procps"


def make_root(release: str, folder: Path) -> Path:
    """A minimal root of a Debian release with Python, and without compiler and Node."""
    words = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(folder / "root")]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    return folder / "root"


def enter(root: Path, *environ: str, user: str = "0:0") -> list[str]:
    """The words before a command that runs in `root` with nothing but these variables.

    /dev and /proc are mounted in a namespace of the command's own, so that no mount is ever left behind.
    """
    script = 'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && exec chroot --userspec="$1" "$0" /usr/bin/env -i "${@:2}"'
    return ["unshare", "--mount", "bash", "-c", script, str(root), user, *environ]


@pytest.fixture(scope="module", params=RELEASES)
def root(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minimal root of one release with wsh in /opt/wsh, made of nothing but Debian's packages and our wheelhouse."""
    if os.getuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("a clean root needs root's rights and the Debian package mmdebstrap")
    release, version = request.param, RELEASES[request.param]
    root = make_root(release, tmp_path_factory.mktemp(release))
    house = root / "opt" / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", f"--python-version={version}",
         "-c", ROOT / "constraints.txt", "-d", house, str(wheel)],
        check=True,
    )  # fmt: skip
    chroot = enter(root, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root")
    assert subprocess.run([*chroot, "sh", "-c", "command -v cc gcc node"], capture_output=True).returncode != 0
    subprocess.run([*chroot, "python3", "-m", "venv", "/opt/wsh"], check=True)
    install = ["/opt/wsh/bin/pip", "install", "-q", "--no-index", "--find-links=/opt/wheels", "wsh-terminal"]
    subprocess.run([*chroot, *install], check=True)
    return root


def test_wsh_works_in_a_clean_root(root: Path) -> None:
    # The chroot shares this machine's network, so the page is looked at from here.
    environ = ["PATH=/opt/wsh/bin:/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/run"]
    use_wsh([*enter(root, *environ), "wsh"], dict(os.environ), root)
