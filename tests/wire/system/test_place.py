from __future__ import annotations

from pathlib import Path

from wsh.wire.system.place import find_places


def test_a_folder_too_deep_for_sockets_gets_a_short_stand_in(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(deep)}
    places = find_places(environ)
    assert len(str(places.keeper_socket)) < 100
    assert places == find_places(environ), "everybody finds the same one"
    assert places.runtime != find_places({**environ, "XDG_RUNTIME_DIR": str(deep.parent)}).runtime
