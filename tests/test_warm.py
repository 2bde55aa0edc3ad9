"""A server that is forked from the warm process is as one that was executed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.serving import find_processes
from tests.support.warm import WarmPopen, run_warm
from wsh.wire.system.place import Places

WSH = [sys.executable, "-m", "wsh.cli.main"]
SHOWN = ("SigBlk", "SigIgn", "SigCgt", "Umask", "Seccomp", "NoNewPrivs", "CapEff")


def look(read: Callable[[], object]) -> object:
    """What is there, or that nobody but root may see it: a server hides itself from other programs of its user."""
    try:
        return read()
    except PermissionError:
        return "hidden"


def describe_keeper(keeper: psutil.Process) -> dict[str, object]:
    seen = Path(f"/proc/{keeper.pid}")
    status = dict(line.split(":", 1) for line in (seen / "status").read_text().splitlines())
    fds = look(lambda: sorted(fd.name for fd in (seen / "fd").iterdir()))
    return {
        "words": (seen / "cmdline").read_bytes().rstrip(b"\0").split(b"\0"),
        "environ": look(lambda: (seen / "environ").read_bytes()),
        "cwd": look((seen / "cwd").readlink),
        "alone": os.getsid(keeper.pid) == os.getpgid(keeper.pid) != keeper.pid,
        "parent": int(status["PPid"]),
        "limits": (seen / "limits").read_text(),
        "descriptors": fds,
        "status": {name: status[name].strip() for name in (*SHOWN, "Threads", "Name") if name in status},
    }


def describe(kind: type[subprocess.Popen[bytes]], folder: Path, places: Places) -> dict[str, object]:
    """What can be seen of a server of that kind, from its first line to its end."""
    with open(folder / "said", "wb") as errors:
        server = kind(
            [*WSH, "server", "--bind", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, "WSH_ODD": "ö \udce9"},
            start_new_session=True,
        )
    with server:
        assert server.stdout is not None
        first = server.stdout.readline()
        seen = Path(f"/proc/{server.pid}")
        status = dict(line.split(":", 1) for line in (seen / "status").read_text().splitlines())
        facts: dict[str, object] = {
            "line": first.rpartition(b":")[0],
            "words": (seen / "cmdline").read_bytes().rstrip(b"\0").split(b"\0"),
            "environ": look(lambda: sorted(filter(None, (seen / "environ").read_bytes().split(b"\0")))),
            "cwd": look((seen / "cwd").readlink),
            "parent": int(status["PPid"]),
            "leads": os.getsid(server.pid) == os.getpgid(server.pid) == server.pid,
            "input": look((seen / "fd" / "0").readlink),
            "errors": look((seen / "fd" / "2").readlink),
            "status": {name: status[name].strip() for name in SHOWN if name in status},
        }
        (keeper,) = [process for process in find_processes(places) if str(places.keeper_socket) in process.cmdline()]
        facts["keeper"] = describe_keeper(keeper)
        server.send_signal(signal.SIGTERM)
        facts["end"] = server.wait(60), server.stdout.read().splitlines()[-1]
    keeper.kill()  # the next server is to start its own
    keeper.wait(60)
    return facts


def test_a_warm_start_is_as_an_executed_one(places: Places, tmp_path: Path) -> None:
    warm, executed = describe(WarmPopen, tmp_path, places), describe(subprocess.Popen, tmp_path, places)
    assert warm == executed
    assert warm["parent"] == os.getpid()


def test_a_late_change_of_the_interpreter_is_made_in_both(places: Places, tmp_path: Path) -> None:
    custom = "import os, sys\nLATE = True\nsys.stderr.write(os.environ['WSH_ODD'])\n"
    (tmp_path / "sitecustomize.py").write_text(custom)
    words = [*WSH[:1], "-P", *WSH[1:], "--version"]
    for options in ({"PYTHONPATH": str(tmp_path), "WSH_ODD": "odd"}, {}):
        env = {**os.environ, **options}
        warm, executed = run_warm(words, env=env), subprocess.run(words, env=env, capture_output=True)
        assert warm.stderr == executed.stderr == options.get("WSH_ODD", "").encode()
        assert warm.stdout == executed.stdout


@pytest.mark.parametrize("words", [["no-such-command"], ["--version"], ["hook", "--no-such-option"]])
def test_status_and_words_are_the_same(words: list[str]) -> None:
    both = []
    for kind in (WarmPopen, subprocess.Popen):
        with kind([*WSH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            both.append((*done.communicate(timeout=60), done.returncode))
    assert both[0] == both[1]


def test_a_builder_answers_and_ends_the_same(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "wsh.workspace.index.build_child"]
    request = json.dumps({"folder": str(tmp_path), "root": str(tmp_path / "nowhere")}).encode()
    both = []
    for kind in (WarmPopen, subprocess.Popen):
        with kind(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            both.append((*done.communicate(request, timeout=60), done.returncode))
    assert both[0] == both[1]
    assert both[0][2] == 1 and b"NOT_FOUND" in both[0][0]
