"""What an earlier server left on disk, and what else lies there."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.bridge.talk import ask
from wsh.contract.ask.kept import KeptRequest, RequestFolder, describe_caller
from wsh.wire.caller import Caller


async def test_what_is_no_file_stops_no_server_and_stays(tmp_path: Path) -> None:
    place = tmp_path / "requests"
    request = ask("true")
    caller = Caller("agent", "a", "token")
    kept = KeptRequest(
        state="waiting", request=request, caller=describe_caller(caller), keep=True, since=1.0, made=(1.0, "", 1.0)
    )
    await RequestFolder(place).put(kept)
    (place / "folder").mkdir()
    (place / ".folder").mkdir()
    os.mkfifo(place / "fifo")
    os.mkfifo(place / ".fifo")
    (place / ".cut-off").touch()
    (place / "foreign").write_text("{")
    assert [one.request.id for one in RequestFolder(place).load()] == [request.id]
    left = {entry.name for entry in place.iterdir()}
    assert left == {request.id, "folder", ".folder", "fifo", ".fifo"}
