"""Who is the owner on the unix socket: attacks from inside a session, and an owner under a limit of the desktop's."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.weak import weakly
from wsh.wire.system.owner import find_own_fault
from wsh.wire.system.place import Places

# Asks for what only the owner may have. Waits first until its parent is gone, if told to.
ASK = """
import os, socket, sys, time
path, note, orphan = sys.argv[1], sys.argv[2], sys.argv[3] == "orphan"
parent = int(os.environ.get("PARENT", "0"))
while orphan and os.path.exists(f"/proc/{parent}"):
    time.sleep(0.01)
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall(b"POST /auth/link HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
said = b""
while part := s.recv(65536):
    said += part
with open(note + ".part", "wb") as out:
    out.write(said)
os.rename(note + ".part", note)
"""
ATTACKS = {
    "plain": "{ask}",
    "soft limit lowered": "(ulimit -S -R 1000; {ask})",
    "both limits lowered": "(ulimit -R 1000; {ask})",
    "every mark lowered": "(ulimit -R 1000; ulimit -x 1000; {ask})",
    "prlimit soft": "prlimit --rttime=1000: {ask}",
    "prlimit both": "prlimit --rttime=200000:200000 {ask}",
    "prlimit unlimited": "prlimit --rttime=unlimited:unlimited --locks=unlimited:unlimited {ask} || {ask}",
    "new session": "setsid {ask}",
    "double fork": "(ulimit -R 1000; ulimit -x 1000; PARENT=$BASHPID setsid -f {orphan})",
    "chain of programs": "env -i nice setsid --wait sh -c {quoted}",
    "background": "(nohup {ask} >/dev/null 2>&1 &)",
}
if os.geteuid() == 0:
    ATTACKS["own process namespace"] = "unshare --pid --fork {ask}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    yield from _serve(tmp_path_factory.mktemp("guarded"), weakly())


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server on a desktop that gives all of its programs a limit below every mark."""
    yield from _serve(tmp_path_factory.mktemp("limited"), [*weakly(), "prlimit", "--rttime=200000:200000"])


def _serve(folder: Path, prefix: list[str]) -> Iterator[RunningServer]:
    fault = find_own_fault(None)
    if fault is not None:
        pytest.skip(f"these tests are about the owner, and this process {fault}")
    patch = pytest.MonkeyPatch()
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700)
        patch.setenv(variable, str(folder / name))
    try:
        from wsh.wire.system.place import find_places

        with running_server(find_places(), prefix=prefix) as server:
            server.extra["ask"] = folder / "ask.py"
            server.extra["ask"].write_text(ASK)
            yield server
    finally:
        patch.undo()


def words(server: RunningServer, note: Path, manner: str = "now") -> list[str]:
    return [sys.executable, str(server.extra["ask"]), str(server.socket), str(note), manner]


def ask_inside(server: RunningServer, attack: str, note: Path) -> tuple[int, str]:
    ask = shlex.join(words(server, note))
    script = attack.format(ask=ask, quoted=shlex.quote(ask), orphan=shlex.join(words(server, note, "orphan")))
    made = server.request(
        "POST", "/sessions", {"name": "attack", "command": shlex.join(["bash", "-c", f"{script}\nread x"])}
    )
    assert made.status == 201, made
    try:
        wait_until(
            note.exists,
            f"the answer to {attack!r}",
            seen=lambda: server.get("/sessions/attack/screen?format=plain"),
        )
        head, _, body = note.read_bytes().decode().partition("\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        server.request("DELETE", "/sessions/attack")


def ask_outside(server: RunningServer, note: Path, *prefix: str) -> int:
    subprocess.run([*prefix, *words(server, note)], check=True, timeout=60)
    return int(note.read_bytes().split()[1])


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_nothing_that_runs_in_a_session_is_the_owner(guarded: RunningServer, tmp_path: Path, attack: str) -> None:
    status, body = ask_inside(guarded, ATTACKS[attack], tmp_path / "note")
    assert (status, json.loads(body)["error"]["code"]) == (403, "forbidden"), body


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_nor_is_it_where_the_mark_cannot_be_set(limited: RunningServer, tmp_path: Path, attack: str) -> None:
    status, body = ask_inside(limited, ATTACKS[attack], tmp_path / "note")
    assert (status, json.loads(body)["error"]["code"]) == (403, "forbidden"), body


def test_an_owner_under_the_limit_of_the_desktop_stays_the_owner(limited: RunningServer, tmp_path: Path) -> None:
    assert ask_outside(limited, tmp_path / "same", *weakly(), "prlimit", "--rttime=200000:200000") == 201
    assert ask_outside(limited, tmp_path / "free") == 201
    assert ask_outside(limited, tmp_path / "other", "prlimit", "--rttime=1000:1000") == 403


def test_an_owner_outside_is_the_owner_and_one_with_a_limit_of_its_own_is_told_why(
    guarded: RunningServer, tmp_path: Path
) -> None:
    assert ask_outside(guarded, tmp_path / "free") == 201
    note = tmp_path / "limited"
    assert ask_outside(guarded, note, "prlimit", "--rttime=5000:") == 403
    assert b"RLIMIT_RTTIME 5000" in note.read_bytes()


NAMESPACES = ("unshare --user --map-root-user --pid --fork", "unshare --pid --fork")


@pytest.mark.parametrize("prefix", ["", "ulimit -S -R 1000;", "ulimit -R 1000; ulimit -x 1000;", *NAMESPACES])
@pytest.mark.parametrize("command", ["token", "token --agent x", "link"])
def test_the_command_line_gives_no_token_and_no_link_inside(
    guarded: RunningServer, tmp_path: Path, prefix: str, command: str
) -> None:
    if prefix in NAMESPACES and subprocess.run([*prefix.split(), "true"], capture_output=True).returncode:
        pytest.skip("no process namespace can be made here")
    note = tmp_path / "note"
    run = f"{shlex.quote(sys.executable)} -m wsh.cli.main {command} > {note}.out 2> {note}.err"
    script = f"({prefix} {run}; echo $? > {note}.status; mv {note}.status {note}); read x"
    made = guarded.request("POST", "/sessions", {"name": "cli", "command": shlex.join(["bash", "-c", script])})
    assert made.status == 201, made
    try:
        wait_until(note.exists, "the end of the command")
        assert note.read_text().strip() != "0"
        assert (tmp_path / "note.out").read_text() == ""
        told = (tmp_path / "note.err").read_text()
        assert any(why in told for why in ("started by wsh", "RLIMIT_RTTIME", "process namespace")), told
    finally:
        guarded.request("DELETE", "/sessions/cli")


LOOK = """
import ctypes, os, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
print("attach", libc.ptrace(0x4206, pid, None, None))  # PTRACE_SEIZE
for name in ("environ", "mem", "maps"):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as source:
            print(name, "read" if source.read(1) else "refused")
    except OSError:
        print(name, "refused")
"""


@pytest.mark.parametrize("whom", ["server", "keeper"])
def test_no_process_of_the_same_user_looks_into_server_or_keeper(guarded: RunningServer, whom: str) -> None:
    pid = guarded.process.pid
    if whom == "keeper":
        # It starts with the first session and ends some time after the last.
        assert guarded.request("POST", "/sessions", {"name": "seen", "command": "cat"}).status == 201
        info = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _names(p, guarded.places)]
        (pid,) = info
    command = [*weakly("perfmon", "sys_admin"), sys.executable, "-c", LOOK, str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if whom == "keeper":
        guarded.request("DELETE", "/sessions/seen")
    assert done.stdout.split() == ["attach", "-1", "environ", "refused", "mem", "refused", "maps", "refused"], done


def _names(process: Path, places: Places) -> bool:
    try:
        return str(places.keeper_socket).encode() in (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
