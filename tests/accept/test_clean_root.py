"""A fresh Debian, without a compiler and without Node: wsh is installed from a folder of wheels and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accept.use import use_wsh

ROOT = Path(__file__).parents[2]
RELEASES = {"bookworm": "3.11", "trixie": "3.13"}
PACKAGES = "python3,python3-venv,bash,procps"


@pytest.fixture(scope="module", params=RELEASES)
def root(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A minimal root of one release with wsh in /opt/wsh, made of nothing but Debian's packages and our wheelhouse."""
    if os.getuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("a clean root needs root's rights and the Debian package mmdebstrap")
    release, version = request.param, RELEASES[request.param]
    folder = tmp_path_factory.mktemp(release)
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(folder / "root")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-2000:]
    root = folder / "root"
    house = root / "opt" / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", f"--python-version={version}",
         "-c", ROOT / "constraints.txt", "-d", house, str(wheel)],
        check=True,
    )  # fmt: skip
    for where in ("proc", "dev"):
        subprocess.run(["mount", "--rbind", f"/{where}", root / where], check=True)
    try:
        chroot = ["chroot", str(root), "/usr/bin/env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root"]
        assert subprocess.run([*chroot, "sh", "-c", "command -v cc gcc node"], capture_output=True).returncode != 0
        subprocess.run([*chroot, "python3", "-m", "venv", "/opt/wsh"], check=True)
        install = ["/opt/wsh/bin/pip", "install", "-q", "--no-index", "--find-links=/opt/wheels", "wsh-terminal"]
        subprocess.run([*chroot, *install], check=True)
        yield root
    finally:
        for where in ("dev", "proc"):
            subprocess.run(["umount", "--recursive", "--lazy", root / where], check=False)


def test_wsh_works_in_a_clean_root(root: Path) -> None:
    # The chroot shares this machine's network, so the page is looked at from here.
    environ = ["PATH=/opt/wsh/bin:/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/run"]
    use_wsh(["chroot", str(root), "/usr/bin/env", "-i", *environ, "wsh"], dict(os.environ), root)
