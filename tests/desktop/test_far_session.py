"""Sessions of another machine in the window: a real sshd stands for it."""

from __future__ import annotations

import pytest

from tests.host.conftest import open_net
from tests.support.desktop.window import desk, virtual_screen
from tests.support.waiting import wait_until

pytestmark = pytest.mark.accept


def test_a_session_of_another_machine_is_listed_under_it_shown_and_typed_into(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with open_net(tmp_path_factory.mktemp("far"), ["near"], started=True) as net, virtual_screen() as display:
        machine = net.ssh.machines["near"]
        home = machine.folder / "home"
        for name, cwd in (("near/train", str(home)), ("job", "/")):
            body = {"name": name, "command": "bash --norc", "cwd": cwd}
            assert net.server.request("POST", "/sessions", body).status == 201
        with desk(net.server.places, display) as window:

            def wait_until_shown(*names: str) -> None:
                wait_until(
                    lambda: set(names) <= window.layout()["items"].keys(), f"{names} in the window", seen=window.layout
                )

            wait_until_shown(f"place near: {home}", "place server: /")
            window.show_terminal("near/train")
            window.enter_command("echo from-$((40+2)) | tee typed")
            wait_until(lambda: "from-42" in window.terminal_text(), "the far echo", seen=window.terminal_text)
            assert (home / "typed").read_text() == "from-42\n"

            machine.stop()
            wait_until_shown("place near: out of reach", "lost: near is away; this is the last picture")
            assert "from-42" in window.terminal_text()
            machine.start()
            wait_until_shown(f"place near: {home}", "stateWord")
            window.enter_command("echo again-$((40+2))")
            wait_until(lambda: "again-42" in window.terminal_text(), "the echo after", seen=window.terminal_text)
        for path in ("near%2Ftrain", "job"):
            assert net.server.request("DELETE", f"/sessions/{path}").status == 204
