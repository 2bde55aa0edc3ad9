"""`wsh search` and `wsh index` against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.warm import run_warm
from tests.support.workspace.tools import FILES, write_tree
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


class Shell:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_warm([*WSH, *words], cwd=self.folder, text=True)


@pytest.fixture
def wsh(places: Places, tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(write_tree(tmp_path / "tree", FILES))
    yield shell
    assert shell("stop").returncode == 0


def test_a_folder_is_built_searched_exported_and_imported(wsh: Shell, tmp_path: Path) -> None:
    missing = wsh("search", "quokka")
    assert missing.returncode == 1 and "wsh index build" in missing.stderr
    assert wsh("index", "build").stdout.startswith(f"{len(FILES)} added")
    found = wsh("search", "quokka")
    assert found.stdout == "docs/guide.md:11:When the server refuses connections, look at the quokka log.\n"
    assert wsh("search", "nothingatall").returncode == 1
    assert wsh("search", "-E", r"def \w+_connection").stdout.startswith("app/server.py:14:")
    assert wsh("search", "-F", "return", "-p", "*.go").stdout.startswith("lib/store.go:10:")
    hits = json.loads(wsh("search", "--json", "-k", "heading", "-n", "1", "server").stdout)["hits"]
    assert [hit["name"] for hit in hits] == ["Troubleshooting"]
    bad = wsh("search", '"open')
    assert bad.returncode == 2 and "position 0" in bad.stderr
    status = json.loads(wsh("index", "status", "--json").stdout)
    assert status["files"] == len(FILES) and status["byLanguage"]["go"] == 1
    archive = tmp_path / "moved.tar.zst"
    assert wsh("index", "export", str(archive)).returncode == 0
    other = Shell(tmp_path / "other")
    other.folder.mkdir()
    assert other("index", "import", str(archive)).returncode == 0
    assert other("search", "quokka").stdout == found.stdout
    archive.write_text("broken")
    refused = other("index", "import", "--json", str(archive))
    assert json.loads(refused.stderr)["error"]["details"]["tool_code"] == "DOWNLOAD_VERIFY_FAILED"
    assert "(DOWNLOAD_VERIFY_FAILED)" in other("index", "import", str(archive)).stderr


def test_what_a_session_printed_is_found_from_the_command_line(wsh: Shell) -> None:
    assert wsh("new", "--name", "lab", "bash --norc").returncode == 0
    assert "currawong-4" in wsh("run", "lab", "echo currawong-$((2+2))").stdout
    found = wsh("search", "--mode", "transcripts", "-F", "currawong-4")
    assert found.stdout.startswith("lab[") and found.stdout.endswith(":2:currawong-4\n")
