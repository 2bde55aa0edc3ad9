"""The wheel and the sdist: made, checked, and used from environments that know nothing of this checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accept.use import use_wsh
from wsh.wire.system.place import Places

ROOT = Path(__file__).parents[2]


def test_the_wheel_is_pure_and_has_the_page_in_it(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "wsh/http/static/ui/index.html" in names
    assert not [name for name in names if name.endswith((".so", ".c", ".h"))]


def test_no_text_tells_people_to_install_a_package_called_wsh() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    telling = []
    for name in listed:
        if name.endswith((".md", ".py", ".sh", ".toml", ".ts", ".tsx", ".yaml")) and not name.startswith("tests/"):
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            telling += [
                f"{name}: {found}" for found in re.findall(r"install (?:-\S+ )*['\"]?wsh(?=[\[\s'\"`]|$).*", text)
            ]
    assert telling == []


@pytest.fixture(params=["pip", "uv", "pipx"])
def program(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """`wsh` as each of the usual installers puts it on a machine."""
    home = tmp_path / "home"
    environ = {**os.environ, "HOME": str(home), "PIPX_HOME": str(home / "pipx"), "PIPX_BIN_DIR": str(home / "bin")}
    environ |= {
        "UV_TOOL_DIR": str(home / "uv"),
        "UV_TOOL_BIN_DIR": str(home / "bin"),
        "UV_CACHE_DIR": str(home / "cache"),
    }
    match request.param:
        case "pip":
            subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
            subprocess.run([home / "venv/bin/pip", "install", "-q", str(wheel)], check=True)
            yield home / "venv/bin/wsh"
        case "uv":
            uv = Path(sys.executable).parent / "uv"
            subprocess.run(
                [uv, "tool", "install", "-q", "--python", sys.executable, str(wheel)], check=True, env=environ
            )
            yield home / "bin/wsh"
        case _:
            pipx = [sys.executable, "-m", "pipx", "install", "-q", "--python", sys.executable, str(wheel)]
            subprocess.run(pipx, check=True, env=environ, stdout=subprocess.DEVNULL)
            yield home / "bin/wsh"


def test_an_installed_wheel_serves_page_mcp_and_a_session(program: Path, places: Places, tmp_path: Path) -> None:
    use_wsh([str(program)], {**os.environ, "PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}, tmp_path)


def test_the_installed_metadata_names_the_distribution_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        facts = {Path(name).name: opened.read(name).decode() for name in opened.namelist() if ".dist-info/" in name}
    assert "Name: wsh-terminal\n" in facts["METADATA"]
    assert "wsh = wsh.cli.main:main" in facts["entry_points.txt"]
