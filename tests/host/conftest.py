from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    folder = tmp_path_factory.mktemp("net")
    with pytest.MonkeyPatch.context() as patch, ssh_net(folder, ["near", "far"]) as ssh:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        places = find_places()
        places.config.mkdir(mode=0o700, parents=True)
        places.config_file.write_text(f"[hosts]\nssh = {json.dumps(ssh.ssh)}\nlongest_pause_s = 1.0\n")
        with running_server(places) as server:
            for name in ssh.machines:
                server.request("PUT", f"/hosts/{name}", {})
            made = Net(server, ssh)
            for name in ssh.machines:
                made.wait_until_online(name)
            yield made
            assert "Traceback" not in server.output.read_text()
