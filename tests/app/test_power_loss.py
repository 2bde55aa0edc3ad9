"""A copy of the state folder, taken at any instant under load, is something that a server starts from.

That is what a power cut leaves at best; what it may leave at worst, files whose last blocks never reached the disk, is
made by cutting some of the newest files short.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import Places

LOAD = "while :; do seq 200; printf '\\033[3%dmcolours\\033[0m\\n' $((RANDOM % 8)); sleep 0.01; done"


def copy(source: Path, target: Path) -> None:
    """As `cp -r` does while others write: what vanishes meanwhile is left out."""
    target.mkdir(mode=0o700)
    for entry in os.scandir(source):
        try:
            if entry.is_dir(follow_symlinks=False):
                copy(Path(entry.path), target / entry.name)
            else:
                shutil.copy2(entry.path, target / entry.name)
        except FileNotFoundError:
            continue


def cut_some(folder: Path, chance: random.Random) -> None:
    """The newest files lose their ends, or all of their content."""
    files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime)
    for path in files[-6:]:
        if chance.random() < 0.5:
            os.truncate(path, chance.randrange(path.stat().st_size + 1))


def keep_busy(server: RunningServer, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        server.request("POST", "/sessions/shell/run", {"input": f"echo command {number}"})
        server.request("POST", "/sessions", {"name": f"brief{number}", "command": f"echo brief {number}"})
        server.request("PATCH", "/sessions/flood", {"add_tags": [f"t{number % 5}"]})
        if number % 3 == 0:
            server.request("DELETE", f"/sessions/brief{number - 1}")
        server.request("POST", "/terminal", {"action": "list"})


def starts_clean(places: Places, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on the copy answers, shows the sessions and their text, and takes new ones."""
    for name in ("r", "c"):  # short, for the path of a socket has little room
        (copied.parent / name).mkdir(mode=0o700)
    there = replace(places, runtime=copied.parent / "r" / "wsh", state=copied, config=copied.parent / "c" / "wsh")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(copied.parent / "r"))
        patch.setenv("XDG_STATE_HOME", str(copied.parent))
        patch.setenv("XDG_CONFIG_HOME", str(copied.parent / "c"))
        with running_server(there, expect_alive=True) as server:
            for info in server.get("/sessions"):
                assert server.request("GET", f"/sessions/{info['name']}/screen").status == 200
                assert server.request("GET", f"/sessions/{info['name']}/scrollback?limit=50").status == 200
                assert server.request("GET", f"/sessions/{info['name']}/commands").status in (200, 409)
            made = server.request("POST", "/sessions", {"name": "after", "command": "bash --norc"})
            assert made.status == 201, made
            asked = {"input": "echo goes on", "max_wait_ms": 120_000}
            ran = server.request("POST", "/sessions/after/run", asked, timeout=180)
            assert ran.status == 200, ran.body
            assert ran.json["output"].strip() == "goes on", ran
            found = server.request("POST", "/workspace/search", {"query": "goes", "mode": "transcripts"})
            assert found.status == 200, found
            assert server.request("POST", "/workspace/check_status", {}).status == 200
            assert "Traceback" not in server.output.read_text(), server.output.read_text()


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_a_copy_of_the_state_taken_at_any_instant_starts_clean(
    places: Places, tmp_path: Path, torture: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    stop = threading.Event()
    with running_server(places, environ={"WSH_JOURNAL_SNAPSHOT_INTERVAL_S": "0.1"}, expect_alive=True) as server:
        for name, command in (("shell", "bash --norc"), ("flood", f"bash -c {LOAD!r}")):
            made = server.request("POST", "/sessions", {"name": name, "command": command})
            assert made.status == 201, made
        worker = threading.Thread(target=keep_busy, args=(server, stop))
        worker.start()
        try:
            copies = []
            for number in range(200 if torture else 4):
                stop.wait(chance.random() * 0.2)
                copied = tmp_path / f"{number}" / "wsh"
                copied.parent.mkdir()
                copy(places.state, copied)
                if number % 2:
                    cut_some(copied, chance)
                copies.append(copied)
        finally:
            stop.set()
            worker.join()
    for copied in copies:
        starts_clean(places, copied, monkeypatch)
        shutil.rmtree(copied.parent)
