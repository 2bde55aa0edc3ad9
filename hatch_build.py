"""Builds the web page into the wheel, so that an installed wsh needs no Node."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install uses the tree as it is; `make page` builds there.
        if version == "editable" or self.target_name != "wheel":
            return
        subprocess.run(["bash", str(Path(self.root) / "scripts" / "build-page.sh")], check=True)
