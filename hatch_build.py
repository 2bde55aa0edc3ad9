"""Builds what is not Python: the web page into the wheel, so that an installed wsh needs no Node, and the `wsh` launcher.

The launcher (launcher/wsh.c) is compiled where there is a compiler. Where there is none, `wsh` is a Python script instead: slower to
start and otherwise the same. `wsh-python` is what both end in.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ["-O2", "-std=c11", "-Wall", "-Wextra"]
SCRIPT = "#!python\nimport sys\n\nfrom wsh.cli.main import main\n\nsys.exit(main())\n"


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        built = root / "build" / "launcher"
        built.mkdir(parents=True, exist_ok=True)
        launcher = compile_launcher(root / "launcher" / "wsh.c", built / "wsh")
        if launcher is None:
            launcher = built / "wsh-script"
            launcher.write_text(SCRIPT, encoding="utf-8")
            launcher.chmod(0o755)
        else:
            build_data["tag"] = f"py3-none-{_platform()}"
            build_data["pure_python"] = False
        build_data["shared_scripts"][str(launcher)] = "wsh"
        # An editable install uses the tree as it is; `make page` builds there.
        if version != "editable":
            subprocess.run(["bash", str(root / "scripts" / "build-page.sh")], check=True)


def compile_launcher(source: Path, target: Path) -> Path | None:
    """The compiled launcher, or None where this machine cannot make one."""
    if not sys.platform.startswith("linux"):
        return None
    compiler = shlex.split(os.environ.get("CC", "cc"))
    try:
        subprocess.run([*compiler, *FLAGS, "-o", str(target), str(source)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return target


def _platform() -> str:
    import sysconfig

    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
