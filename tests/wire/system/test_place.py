from __future__ import annotations

import os
from pathlib import Path

import pytest

from wsh.wire.system import runtime_path
from wsh.wire.system.place import find_places


def test_a_folder_too_deep_for_sockets_gets_a_short_stand_in(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(deep)}
    places = find_places(environ)
    assert len(str(places.keeper_socket)) < 100
    assert places == find_places(environ), "everybody finds the same one"
    assert places.runtime != find_places({**environ, "XDG_RUNTIME_DIR": str(deep.parent)}).runtime


def test_a_program_without_the_variable_finds_the_server_of_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP hosts give `wsh mcp` an environment of a few variables."""
    monkeypatch.setattr(runtime_path, "LOGIN_FOLDERS", str(tmp_path))
    login = tmp_path / str(os.getuid())
    without = runtime_path.runtime_folder({}, "default")
    assert not without.startswith(str(tmp_path))
    login.mkdir()
    assert runtime_path.runtime_folder({}, "default") == runtime_path.runtime_folder(
        {"XDG_RUNTIME_DIR": str(login)}, "default"
    )
