"""A server whose state folder lies on a small disk of its own, which the test fills and empties.

The disk is a tmpfs in a mount namespace that an ordinary user can make too. A small program in that namespace holds it
and does what the test asks on its standard input.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import HANG_S
from tests.support.warm import customize
from wsh.wire.system.place import Places

_HOLDER = """
import ctypes, json, os, subprocess, sys
folder, size, inodes = sys.argv[1:4]
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, READ_ONLY = 32, 1
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes},mode=700", "tmpfs", folder], check=True)
print("mounted", flush=True)

def fill():
    ballast = os.open(os.path.join(folder, "ballast"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (65536, 4096):
        try:
            while True:
                os.write(ballast, bytes(size))
        except OSError:
            pass
    os.close(ballast)

def fill_inodes():
    os.makedirs(os.path.join(folder, "many"), exist_ok=True)
    try:
        number = 0
        while True:
            os.close(os.open(os.path.join(folder, "many", str(number)), os.O_WRONLY | os.O_CREAT))
            number += 1
    except OSError:
        pass

def remount(flags):
    # The command of that name would say again for whom it was made, in numbers that this namespace does not know.
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", REMOUNT | flags, None):
        raise OSError(ctypes.get_errno(), "remount", folder)

def protect():
    remount(READ_ONLY)

def free():
    remount(0)
    subprocess.run(["rm", "-rf", os.path.join(folder, "ballast"), os.path.join(folder, "many")], check=True)

def ls():
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)

for line in sys.stdin:
    name, *words = json.loads(line)
    print(json.dumps(globals()[name](*words)), flush=True)
"""

_ENTER = """
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
for space in {spaces}:
    there = "/proc/{pid}/ns/" + space
    if os.readlink(there) != os.readlink("/proc/self/ns/" + space):  # a child is there already
        with open(there) as file:
            if libc.setns(file.fileno(), 0):
                raise OSError(ctypes.get_errno(), there)
"""


@lru_cache(maxsize=1)
def _namespace() -> tuple[str, ...] | None:
    for command in (("unshare", "-Urm"), ("unshare", "-m")):
        probe = [*command, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]
        if shutil.which("unshare") and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return command
    return None


class SmallDisk:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _do(self, *words: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def fill(self) -> None:
        self._do("fill")

    def fill_inodes(self) -> None:
        self._do("fill_inodes")

    def protect(self) -> None:
        """Make it read-only, while nothing on it is open for writing."""
        self._do("protect")

    def free(self) -> None:
        self._do("free")

    def list_files(self) -> list[str]:
        found: list[str] = self._do("ls")
        return found

    def enter(self, folder: Path) -> dict[str, str]:
        """The environment of a server that is to see the disk."""
        spaces = ("mnt",) if _namespace() == ("unshare", "-m") else ("user", "mnt")
        return customize(folder, _ENTER.format(spaces=spaces, pid=self._process.pid))


@contextmanager
def small_disk(places: Places, size: str = "4m", inodes: int = 400) -> Iterator[SmallDisk]:
    """A disk at the state folder of `places`. Skips the test where no namespace can be had."""
    namespace = _namespace()
    if namespace is None:
        pytest.skip("this machine gives no mount namespace to this user")
    places.state.mkdir(mode=0o700, exist_ok=True)
    command = [*namespace, sys.executable, "-c", _HOLDER, str(places.state), size, str(inodes)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None and process.stdout.readline() == "mounted\n"
        yield SmallDisk(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        if process.stdout is not None:
            process.stdout.close()
        process.wait(HANG_S)
