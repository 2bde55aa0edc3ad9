from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.host.sshd import SshNet, ssh_net
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import find_places


@dataclass
class Net:
    """A server here, and two machines: `near`, and `far`, which is reached through it."""

    server: RunningServer
    ssh: SshNet

    def host(self, name: str) -> dict[str, Any]:
        return next(one for one in self.server.get("/hosts")["hosts"] if one["name"] == name)

    def wait_until_online(self, name: str) -> None:
        wait_until(lambda: self.host(name)["online"], f"host {name}", seen=lambda: self.host(name))


@contextmanager
def open_net(
    folder: Path,
    names: Sequence[str],
    *,
    options: Sequence[str] = (),
    path: str | None = None,
    environ: Mapping[str, str] | None = None,
    installed: bool = False,
    settings: str = "",
    add: bool = True,
    started: bool = False,
) -> Iterator[Net]:
    """A server here, and machines of these names that it is connected to. With `started` there are servers at them before."""
    with (
        pytest.MonkeyPatch.context() as patch,
        ssh_net(folder, names, options=options, path=path, environ=environ, installed=installed) as ssh,
    ):
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        places = find_places()
        places.config.mkdir(mode=0o700, parents=True)
        places.config_file.write_text(f"[hosts]\nssh = {json.dumps(ssh.ssh)}\nlongest_pause_s = 1.0\n{settings}")
        for machine in ssh.machines.values() if started else ():
            machine.start_server()
        with running_server(places) as server:
            made = Net(server, ssh)
            for name in names if path is None and add else ():
                server.request("PUT", f"/hosts/{name}", {})
            for name in names if path is None and add else ():
                made.wait_until_online(name)
            yield made
            said = server.output.read_text()
            assert "Traceback" not in said, said[said.index("Traceback") :]


@pytest.fixture(scope="package")
def shared_net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    with open_net(tmp_path_factory.mktemp("net"), ["near", "far"], started=True) as made:
        yield made


@pytest.fixture
def net(shared_net: Net) -> Iterator[Net]:
    """The same for all tests here; each leaves both machines in reach and nothing in them."""
    before = len(shared_net.server.output.read_text())
    yield shared_net
    said = shared_net.server.output.read_text()[before:]
    assert "Traceback" not in said, said[said.index("Traceback") :]
    left = [info["name"] for info in shared_net.server.get("/sessions")]
    for name in left:
        shared_net.server.request("DELETE", f"/sessions/{quote(name, safe='')}")
    assert not left, "the test left sessions"
    for name in shared_net.ssh.machines:
        shared_net.wait_until_online(name)
