"""The compiled `wsh` says to the server exactly what the Python one says, and leaves everything else to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.waiting import wait_for_text
from wsh.wire.place import Places

ROOT = Path(__file__).parents[1]
PYTHON = [sys.executable, "-m", "wsh.cli.main"]
ANSWER = b'{"name":"quiet-owl","command":"say \\"name\\":\\"no\\"","rows":24}'


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher, with a `wsh-python` beside it that shows how it was called."""
    folder = tmp_path_factory.mktemp("launcher")
    subprocess.run(
        [
            "cc",
            "-O1",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            str(folder / "wsh"),
            str(ROOT / "launcher/wsh.c"),
        ],
        check=True,
    )
    script = folder / "wsh-python"
    script.write_text('#!/bin/sh\necho handed over\nfor word; do printf "<%s>\\n" "$word"; done\nexit 42\n')
    script.chmod(0o755)
    return folder / "wsh"


class Listener:
    """A socket where the server's would be, which keeps one request and answers it."""

    def __init__(self, places: Places, answer: bytes, status: str) -> None:
        places.runtime.mkdir(parents=True, exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(places.socket))
        self.socket.listen()
        self.socket.settimeout(20)
        self.heard = b""
        self._closing = False
        self._answer = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n".encode()
            + answer
        )
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while not self._closing:  # the Python edition first asks whether somebody is there
                connection, _ = self.socket.accept()
                with connection:
                    while b"\r\n\r\n" not in self.heard or len(self._body()) < self._length():
                        data = connection.recv(65536)
                        if not data:
                            break
                        self.heard += data
                    if b"POST" in self.heard:
                        half = len(self._answer) // 2
                        connection.sendall(self._answer[:half])
                        connection.sendall(self._answer[half:])
                        return
        except OSError:
            return

    def _body(self) -> bytes:
        return self.heard.partition(b"\r\n\r\n")[2]

    def _length(self) -> int:
        head = self.heard.partition(b"\r\n\r\n")[0].lower().decode()
        return int(head.partition("content-length:")[2].split()[0]) if "content-length:" in head else 0

    def close(self) -> bytes:
        self._closing = True
        with socket.socket(socket.AF_UNIX) as waking:
            waking.connect(self.socket.getsockname())
        self._thread.join()
        self.socket.close()
        return self._body()


def ask(
    places: Places, argv: list[str], cwd: Path, status: str = "201 Created"
) -> tuple[object, subprocess.CompletedProcess[str]]:
    listener = Listener(places, ANSWER, status)
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, errors="surrogateescape", timeout=30, check=False
        )
    finally:
        body = listener.close()
        places.socket.unlink()
    return json.loads(body) if body else None, done


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bash"],
        ["echo 'as it is'; exec cat"],
        ["--name", "x", "vim", "a file", "it's", "", "$HOME"],
        ["--rows=30", "--cols", "100", "--tag", "a", "--tag=b", "--", "ls", "-la"],
        ["-e", "A=1", "--env", "B=x=y", "--env=C=", "env"],
        ["--name", "\u00e9\u4e2d\U0001f600", 'quote " backslash \\ tab \t newline \n bell \a'],
        ["--cwd", "/usr/bin", "ls"],
        ["--", "--name", "looks like an option"],
    ],
)
def test_it_asks_for_the_same_session_as_the_python_edition(
    places: Places, launcher: Path, tmp_path: Path, words: list[str]
) -> None:
    ours, done = ask(places, [str(launcher), "new", *words], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "quiet-owl\n", "")
    listener = Listener(places, ANSWER, "201 Created")
    process = subprocess.Popen([*PYTHON, "new", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    listener._thread.join(20)
    process.kill()
    process.communicate()
    theirs = json.loads(listener.close())
    places.socket.unlink()
    assert ours == theirs


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["list"],
        ["new", "--json"],
        ["new", "--name"],
        ["new", "ls", "--rows", "3"],
        ["new", "--rows", "many"],
        ["new", "--rows", "0"],
        ["new", "--cwd", "relative"],
        ["new", "--cwd", "/a/../b"],
        ["new", "--cwd", "/a/."],
        ["new", "-e", "nothing", "ls"],
        ["new", "--unknown"],
        ["new", b"\xff\xfe".decode("utf-8", "surrogateescape")],
    ],
)
def test_what_it_does_not_know_is_handed_over_untouched(
    places: Places, launcher: Path, tmp_path: Path, words: list[str]
) -> None:
    body, done = ask(places, [str(launcher), *words], tmp_path)
    assert body is None, "nothing was asked of the server"
    assert done.returncode == 42
    assert done.stdout == "handed over\n" + "".join(f"<{word}>\n" for word in words)


def test_without_a_server_it_hands_over(places: Places, launcher: Path, tmp_path: Path) -> None:
    done = subprocess.run([str(launcher), "new", "ls"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (42, "handed over\n<new>\n<ls>\n")


def test_a_refusal_is_explained_by_the_python_edition(places: Places, launcher: Path, tmp_path: Path) -> None:
    _, done = ask(places, [str(launcher), "new", "--name", "taken"], tmp_path, status="409 Conflict")
    assert (done.returncode, done.stdout) == (42, "handed over\n<new>\n<--name>\n<taken>\n")


def test_a_server_that_dies_under_it_is_told_of_and_not_asked_again(
    places: Places, launcher: Path, tmp_path: Path
) -> None:
    places.runtime.mkdir(parents=True, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(places.socket))
    listening.listen()
    with (
        listening,
        subprocess.Popen(
            [str(launcher), "new", "ls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        connection, _ = listening.accept()
        assert connection.recv(65536).startswith(b"POST /sessions ")
        connection.close()
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (6, "")
    assert "the server is gone" in err and "wsh list" in err


def test_the_installed_wsh_creates_a_session_that_runs(places: Places, tmp_path: Path) -> None:
    wsh = Path(sys.executable).parent / "wsh"
    try:
        made = subprocess.run(
            [str(wsh), "new", "--name", "made", "--rows", "10", "sh", "-c", 'echo "it runs in $PWD"; exec cat'],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True, env=dict(os.environ),
        )  # fmt: skip
        assert made.stdout == "made\n"
        again = subprocess.run(
            [str(wsh), "new", "--name", "made"], capture_output=True, text=True, timeout=60, check=False
        )
        assert again.returncode == 2 and "made" in again.stderr
        second = subprocess.run(
            [str(wsh), "new", "--name", "second", "cat"], capture_output=True, text=True, check=True
        )
        assert second.stdout == "second\n"

        def read() -> str:
            words = [str(wsh), "screen", "made"]
            return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout

        shown = wait_for_text(read, lambda text: "it runs" in text, "the session's first line")
        assert shown.startswith(f"it runs in {tmp_path}"[:79])
    finally:
        subprocess.run([str(wsh), "stop"], capture_output=True, timeout=60, check=False)
