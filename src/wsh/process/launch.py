"""Reaching the keeper of a place: connect to it, or start one. Two servers never start two."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from wsh.process.keeper import frame, layout
from wsh.process.keeper.door import prove
from wsh.process.spec import KeeperOptions
from wsh.wire.error import KeeperGone, KeeperIncompatible
from wsh.wire.json.object import JsonObject
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places, ensure_private

_MAIN = Path(__file__).parent / "keeper" / "main.py"


class KeeperEnding(KeeperGone):
    """The keeper ended while we connected. A caller that connects again meets the next one."""


def connect(places: Places, options: KeeperOptions) -> socket.socket:
    """A connection that has sent its proof, the answer not yet read. Blocks; run it in a thread. Raises KeeperGone."""
    deadline = time.monotonic() + options.connect_timeout_s
    ensure_private(places.runtime)
    path = places.runtime / f"{places.server}.keeper.lock"
    lock = take_lock(path, wait=True)
    assert lock is not None
    try:
        sock = _try_connect(places, deadline)
        if sock is None:
            if not options.start:
                raise KeeperGone(f"nobody listens on {places.keeper_socket}")
            _start(places, options)
            sock = _try_connect(places, deadline)
        if sock is None:
            raise KeeperGone(f"it started but does not listen on {places.keeper_socket}")
        return sock
    finally:
        drop_lock(path, lock)


def why_outdated(pid: int) -> str | None:
    """What is wrong with the program of keeper `pid`, as the rest of a sentence about it; None if it is the one that we would start."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        started = _read_start(pid)
        changed = max(path.stat().st_mtime for path in _MAIN.parent.glob("*.py"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    if os.fsencode(_MAIN) not in words:
        return "is that of another installation"
    return "is older than this installation" if changed > started + 1 else None  # the boot is told in whole seconds


def _read_start(pid: int) -> float:
    """When that process began, in seconds since the epoch."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    lines = Path("/proc/stat").read_text().splitlines()
    boot = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def _start(places: Places, options: KeeperOptions) -> None:
    ensure_private(places.state)
    log = places.state / f"{places.server}.keeper.log"
    command = [sys.executable, "-I", "-S", str(_MAIN), str(places.keeper_socket), str(places.keeper_secret)]
    command += [str(log), str(options.linger_s)]
    env = {"PATH": os.defpath, "MALLOC_ARENA_MAX": "1"}
    try:
        done = subprocess.run(
            command, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise KeeperGone(f"it cannot be started: {problem}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise KeeperGone(f"it cannot be started: {said or f'status {done.returncode}'}")


def _try_connect(places: Places, deadline: float) -> socket.socket | None:
    """None if nobody listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            sock.connect(str(places.keeper_socket))
        except (FileNotFoundError, ConnectionRefusedError):
            sock.close()
            return None
        _greet(sock, places)
        return sock
    except (ConnectionError, FileNotFoundError) as problem:  # what it was to read, or its secret, is gone
        sock.close()
        raise KeeperEnding(str(problem)) from None
    except (OSError, frame.FrameError, ValueError, KeyError) as problem:
        sock.close()
        raise KeeperGone(f"{problem or type(problem).__name__}") from None
    except BaseException:
        sock.close()
        raise


def _greet(sock: socket.socket, places: Places) -> None:
    hello = _read_frame(sock)
    if hello.get("refused") == "inside":
        raise KeeperGone("this server was started inside one of the keeper's own sessions; start it outside wsh")
    speaks = hello["protocols"]
    if layout.PROTOCOL not in speaks:
        raise KeeperIncompatible(speaks, layout.PROTOCOL)
    secret = places.keeper_secret.read_bytes()
    proof = prove(secret, bytes.fromhex(hello["nonce"]))
    sock.sendall(frame.encode({"protocol": layout.PROTOCOL, "proof": proof, "pid": os.getpid()}))


def _read_frame(sock: socket.socket) -> JsonObject:
    """One frame and not a byte more."""

    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = sock.recv(count - len(data))
            if not more:
                raise KeeperEnding("it closed the connection at once")
            data += more
        return data

    decoder = frame.Decoder()
    header = exactly(frame.HEADER_BYTES)
    length = int.from_bytes(header, "little")
    if length > frame.MAX_FRAME_BYTES:
        raise frame.FrameError("it does not speak the keeper's frames")
    decoder.push(header + exactly(length), [])
    message = decoder.pop()
    assert message is not None
    return message
