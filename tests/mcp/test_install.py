"""The entry in a client's configuration is shown first, written only when asked, and disturbs nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.warm import run_warm
from wsh.client.install import CLIENTS


def run(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wsh.cli.main", "mcp", "install", *args]
    return run_warm(command, text=True, cwd=home)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def find_written(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize("client", [client.name for client in CLIENTS])
def test_nothing_is_written_unless_asked_and_then_the_entry_starts_wsh_mcp(home: Path, client: str) -> None:
    shown = run(home, "--client", client)
    assert shown.returncode == 0, shown.stderr
    assert find_written(home) == []
    assert "wsh" in shown.stdout and "--write" in shown.stderr
    assert run(home, "--client", client, "--write").returncode == 0
    (path,) = find_written(home)
    text = path.read_text()
    document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    (servers,) = document.values()
    entry = servers["wsh"]
    assert entry["args"][-1] == "mcp"
    assert Path(entry["command"]).is_absolute()
    again = run(home, "--client", client, "--write")
    assert "nothing to do" in again.stderr
    assert path.read_text() == text


def test_other_entries_stay(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"other": {"command": "x"}, "wsh": {"command": "old"}}, "keep": [1]}')
    path.chmod(0o640)
    assert run(home, "--client", "cursor", "--write", "--toolsets", "contract,exec").returncode == 0
    document = json.loads(path.read_text())
    assert document["keep"] == [1] and document["mcpServers"]["other"] == {"command": "x"}
    assert document["mcpServers"]["wsh"]["args"][-3:] == ["mcp", "--toolsets", "contract,exec"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_toml_keeps_its_comments_and_order(home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    before = (
        '# mine\nmodel = "x"\n\n[mcp_servers.wsh]\ncommand = "old"\nargs = []\n\n[mcp_servers.other]\ncommand = "y"\n'
    )
    path.write_text(before)
    assert run(home, "--client", "codex", "--write").returncode == 0
    text = path.read_text()
    assert text.startswith("# mine\n") and text.endswith('[mcp_servers.other]\ncommand = "y"\n')
    assert tomllib.loads(text)["mcp_servers"]["wsh"]["args"][-1] == "mcp"


def test_a_file_that_cannot_be_kept_whole_is_left_alone(home: Path) -> None:
    path = home / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  // a comment\n  "servers": {}\n}')
    before = path.read_text()
    done = run(home, "--client", "vscode", "--write")
    assert done.returncode != 0
    assert "by hand" in done.stderr and '"servers"' in done.stderr
    assert path.read_text() == before


def test_an_unknown_client_and_an_unknown_toolset_are_refused(home: Path) -> None:
    assert "claude-desktop" in run(home, "--client", "emacs").stderr
    assert "choose from" in run(home, "--client", "cursor", "--toolsets", "all").stderr


def test_codex_has_a_configuration_of_its_own_in_a_project(home: Path) -> None:
    assert run(home, "--client", "codex", "--scope", "project", "--write").returncode == 0
    written = tomllib.loads((home / ".codex" / "config.toml").read_text())
    assert written["mcp_servers"]["wsh"]["args"][-1] == "mcp"
