"""What lies on disk: whose folders, nothing half written, no log that grows; and names that are no options."""

from __future__ import annotations

import os
import stat
import time

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.error import InvalidSessionName
from wsh.wire.name import check_session_name
from wsh.wire.system.place import Places
from wsh.workspace.transcript.transcript import Transcript, TranscriptStore


@pytest.mark.parametrize("name", ["-rf", "-", "--help", ".", "..", "", "a/b", "a b", "é", "a" * 65, "a\n", "\0"])
def test_a_session_is_not_named_like_an_option_or_a_path(name: str) -> None:
    with pytest.raises(InvalidSessionName):
        check_session_name(name)


@pytest.mark.parametrize("name", ["a", "a-", "_x", ".hidden", "...", "0", "a" * 64])
def test_ordinary_names_are_names(name: str) -> None:
    assert check_session_name(name) == name


def test_every_door_refuses_such_a_name(server: RunningServer) -> None:
    made = server.request("POST", "/sessions", {"name": "-rf", "command": "cat"})
    assert (made.status, made.code) == (400, "invalid_session_name")
    assert server.request("POST", "/sessions", {"name": "plain-name", "command": "cat"}).status == 201
    renamed = server.request("PATCH", "/sessions/plain-name", {"name": "-rf"})
    assert (renamed.status, renamed.code) == (400, "invalid_session_name")
    server.request("DELETE", "/sessions/plain-name")


def test_folders_of_sessions_are_their_owners_alone_and_what_was_half_written_is_swept(places: Places) -> None:
    umask = os.umask(0o022)
    try:
        places.sessions.mkdir(parents=True)  # as an earlier version left it
    finally:
        os.umask(umask)
    with running_server(places, check_left=False) as server:
        assert server.request("POST", "/sessions", {"name": "one", "command": "cat"}).status == 201
        (folder,) = [path for path in places.sessions.iterdir() if path.is_dir()]
        for path in (places.state, places.sessions.parent, places.sessions, folder):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        for stray in (".snapshot.00000000000000000001.abcd", ".meta.json.wxyz"):
            (folder / stray).write_bytes(b"half")
        server.process.kill()
        server.process.wait()
        with running_server(places) as successor:
            assert [info["name"] for info in successor.get("/sessions")] == ["one"]
            assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
            successor.request("DELETE", "/sessions/one")


def test_the_log_beside_the_transcripts_does_not_outgrow_them(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 256 * 1024
    monkeypatch.setattr("wsh.workspace.transcript.transcript._LOG_BYTES", limit, raising=False)
    store = TranscriptStore(places.index / "transcripts.db", 30)
    log = places.index / "transcripts.db-wal"
    now = time.time()
    many = [" ".join(f"w{turn}x{n}" for n in range(20_000)) for turn in range(20)]
    reading = store.reader().execute("SELECT key FROM command")
    reading.fetchone()  # somebody reads meanwhile
    store.put([Transcript(f"k{turn}", "s", "make", words, "/", now, 0, 1) for turn, words in enumerate(many)])
    reading.close()
    store.put([Transcript("last", "s", "make", "few words", "/", now, 0, 1)])
    assert log.stat().st_size <= limit
    store.close()
