"""Puts the web page into what is built, so that an installed wsh needs no Node.

A checkout builds the page with Node; an sdist carries the built page, so a wheel made from one needs neither Node nor a network.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"
    _folder: str | None = None
    """Where the name of the commit stands while it is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install uses the tree as it is; `make page` builds there.
        root = Path(self.root)
        if version != "editable" and (root / "web").is_dir():
            subprocess.run(["bash", str(root / "scripts" / "build-page.sh")], check=True)
        if self.target_name == "wheel" and version != "editable" and (root / "man").is_dir():
            # Made by scripts/make-dist.sh; an sdist carries them.
            build_data["shared_data"][str(root / "man")] = "share/man/man1"
        if version != "editable" and (root / ".git").exists():
            self._note_commit(root, build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _note_commit(self, root: Path, build_data: dict[str, Any]) -> None:
        """Tell the package of which commit it is made; without git it is made all the same."""
        try:
            told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return
        self._folder = tempfile.mkdtemp(prefix="wsh-build-")
        file = Path(self._folder) / "commit.txt"
        file.write_text(told.stdout)
        place = "wsh/commit.txt" if self.target_name == "wheel" else "src/wsh/commit.txt"
        build_data["force_include"][str(file)] = place
