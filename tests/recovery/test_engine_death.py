"""Output that kills the terminal engine: the next server leaves it out, says so, and everything else goes on."""

from __future__ import annotations

import base64
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from wsh.wire.place import Places

# In 40 x 82, libghostty-vt of pyghostty 0.1.3 dies of this.
KILLER = base64.b64decode(
    "G1s5OVNKG104Ozt4G1s5OTk5YhtbOTlT8J+RqRtbOTk5OWJbG1s5OTk5YhtbPzY5aBtbNTsxMHM2NTUzNVm0X+T3/p5oOAxX/ZY/ZjNFVHlJ"
    "Wm5ZdnRAW19SRlg6dFRmQTFndUVJRF0gfDIlOT02Um9SaH0wYjpBZVI2Oio+eSdce09VPXoxJDM8ND83b81WWykvfUFZKTkkcDpcVS5PK11M"
    "QXpkc0RvR3NINE9eTGIndEZKOlVaKzVTSGUjU34sJHg2LTBdfFM7Jj4/Zzhvdmt1bWR1InM4OVteMyEhT14qWihsTFdEKVIkb2RgTzRSWVJy"
    "NzgrdCpqPF9HKl47IVxTQTtmbEF0eEpnKjJmaEskdXRVN0d0YGYlKCUkTUR0dG1oL0X7QIM="
)


def open_session(server: RunningServer, name: str, rows: int = 40, cols: int = 82) -> None:
    reply = server.request(
        "POST", "/sessions", {"name": name, "command": "bash --norc", "rows": rows, "cols": cols, "env": {"PS1": "$ "}}
    )
    assert reply.status in (200, 201), reply


def type_in(server: RunningServer, name: str, text: str) -> None:
    assert server.request("POST", f"/sessions/{name}/input", text.encode()).status in (200, 204)


def screen(server: RunningServer, name: str) -> str:
    return "\n".join(server.get(f"/sessions/{name}/screen?format=plain")["lines"])


def wait_for_text(server: RunningServer, name: str, text: str) -> None:
    wait_until(lambda: text in screen(server, name), f"{text!r} in {name}", seen=lambda: screen(server, name))


@contextmanager
def dying_server(places: Places, **options: Any) -> Iterator[RunningServer]:
    """A server that must be dead of a signal at the end; its keeper and sessions stay."""
    server = start_server(places, **options)
    try:
        yield server
        server.process.wait(60)
        assert server.process.returncode < 0, server.output.read_text()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def test_bytes_that_kill_the_engine_cost_their_session_a_few_bytes_and_the_others_nothing(
    places: Places, tmp_path: Path
) -> None:
    file = tmp_path / "killer"
    file.write_bytes(KILLER)
    with dying_server(places) as server:
        open_session(server, "other")
        type_in(server, "other", "echo un''touched\r")
        wait_for_text(server, "other", "untouched")
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        type_in(server, "hurt", f"clear; cat {shlex.quote(str(file))}; printf '\\033c'; echo be''hind\r")
    with running_server(places) as server:
        assert "untouched" in screen(server, "other")
        wait_for_text(server, "hurt", "behind")
        info = server.get("/sessions/hurt")
        said = re.fullmatch(r"wsh left out (\d+) bytes that its terminal engine cannot parse", info["notice"])
        assert said and 0 < int(said[1]) < len(KILLER), info
        assert any(info["notice"] in line for line in server.get("/server/info")["warnings"])
        assert server.get("/sessions/other")["notice"] is None
        journal = b"".join(path.read_bytes() for path in sorted(places.sessions.glob("*/journal.*.raw")))
        assert KILLER in journal
        type_in(server, "hurt", "printf '\\033c'; echo a''live\r")
        wait_for_text(server, "hurt", "alive")
        server.stop(signal.SIGKILL)
        # and the next one does not stumble over the journal, which is whole
        with running_server(places) as again:
            assert "alive" in screen(again, "hurt")
            assert again.get("/sessions/hurt")["notice"] == info["notice"]
