"""One ssh connection: a master process of our own, commands through it, and connections to the far server's socket.

What `~/.ssh/config` says of the host holds: names, jumps, keys, agents. Nobody is asked anything, since nobody is there: what needs a
password or a yes fails with ssh's own words.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.wire.system.private_file import ensure_private

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

NOT_FOUND = 127
_LOOK_S = 0.02
_END_S = 2.0


class SshProblem(Exception):
    """What OpenSSH could not do; the text is what it said last."""


class FarCommandMissing(SshProblem):
    """wsh is not there. `python` is the version of Python that is; empty for none."""

    def __init__(self, python: str) -> None:
        super().__init__("wsh is not installed there; `wsh host install` does that")
        self.python = python


@dataclass(frozen=True)
class SshTarget:
    """How a host is reached. `ssh` are the words that ssh is called with, `command` how wsh is called there, if not as usual."""

    host: str
    target: str
    ssh: tuple[str, ...] = ("ssh",)
    command: str | None = None
    version: str = ""
    """Of the wsh whose own folder is looked into there."""
    server: str = ""
    """Name of the server here: each has connections of its own."""

    @property
    def words(self) -> list[str]:
        return [*self.ssh, "-o", "BatchMode=yes", "-a", "-x", "-T"]


def find_far_wsh(target: SshTarget) -> str:
    """Words for a POSIX shell that sets the arguments to how wsh is called there; without one it says which Python there is."""
    if target.command is not None:
        return f"set -- {target.command}"
    return (
        f'for w in "$HOME/.local/share/wsh-host/{target.version}/bin/wsh" wsh "$HOME/.local/bin/wsh"; do '
        'if command -v "$w" >/dev/null 2>&1; then set -- "$w"; break; fi; done; '
        '[ $# -gt 0 ] || { echo "python $(python3 -c "import platform; print(platform.python_version())" 2>/dev/null)"; '
        f"exit {NOT_FOUND}; }}"
    )


class SshMaster:
    def __init__(self, target: SshTarget, folder: Path, name: str) -> None:
        self._target = target
        self._control = folder / f"{name}.c"
        self._local = folder / f"{name}.s"
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self.facts: JsonObject = {}
        self.relays = False
        """Connections go through `wsh relay`, since sshd forbids forwarding."""

    async def open(self, timeout_s: float, silent_s: float) -> None:
        """Connect, find wsh there, start its server if need be. Raises SshProblem."""
        ensure_private(self._control.parent)  # what cleans /tmp up takes a folder away in which no socket was for long
        await self.end_predecessor()
        async with _within(timeout_s, "the connection took too long"):
            await self._start(timeout_s, silent_s)
            self.facts = await self._learn()
            await self._forward()

    async def end_predecessor(self) -> None:
        """End the master that a server which was killed left behind, and remove its sockets.

        Its end is awaited for a short time: it unlinks the control socket, which must not be that of the next master.
        """
        if self._control.exists():
            with contextlib.suppress(SshProblem, TimeoutError):
                async with asyncio.timeout(_END_S):
                    status, _, _ = await run_words(self._through("-O", "exit", self._target.target))
                    while status == 0:
                        if not self._control.exists():
                            break
                        await asyncio.sleep(_LOOK_S)
        self._unlink()

    def _unlink(self) -> None:
        for path in (self._control, self._local):
            path.unlink(missing_ok=True)

    async def _start(self, timeout_s: float, silent_s: float) -> None:
        options = [
            "ControlMaster=yes",
            f"ControlPath={self._control}",
            "ControlPersist=no",
            f"ConnectTimeout={max(1, int(timeout_s))}",
            f"ServerAliveInterval={max(1, int(silent_s / 3))}",
            "ServerAliveCountMax=3",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
        ]
        words = [
            *self._target.words,
            "-N",
            *(word for option in options for word in ("-o", option)),
            self._target.target,
        ]
        process = self._process = _spawn(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        asyncio.get_running_loop().add_reader(process.stderr.fileno(), self._take_words)
        while not self._control.exists():
            if process.poll() is not None:
                raise SshProblem(self._read_words() or f"ssh ended with status {process.returncode}")
            await asyncio.sleep(_LOOK_S)

    def _take_words(self) -> None:
        """Keep the last of what ssh says on stderr. An ssh that cannot say more stands still, and the connection with it."""
        process = self._process
        if process is None or process.stderr is None:
            return
        with contextlib.suppress(OSError):
            said = process.stderr.read()
            if said == b"":
                asyncio.get_running_loop().remove_reader(process.stderr.fileno())
            self._said = (self._said + (said or b""))[-4096:]

    def _read_words(self) -> str:
        """What ssh said last on stderr."""
        self._take_words()
        lines = [line.strip() for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _through(self, *words: str) -> list[str]:
        return [*self._target.words, "-S", str(self._control), "-o", "ControlMaster=no", *words]

    async def _learn(self) -> JsonObject:
        """What `wsh relay --facts` prints there; it starts the server if none runs."""
        script = f'{find_far_wsh(self._target)}; exec "$@" relay --facts'
        status, out, err = await run_words(self._through(self._target.target, "exec sh -c " + shlex.quote(script)))
        last = out.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if status == NOT_FOUND and last.startswith("python"):
            raise FarCommandMissing(last.removeprefix("python").strip())
        try:
            if status == 0:
                return dict(json.loads(last))
        except ValueError:
            pass
        said = err.decode("utf-8", "replace").strip().rpartition("\n")[2] or last
        raise SshProblem(f"`wsh relay` failed there with status {status}: {said[:300]}")

    async def _forward(self) -> None:
        socket_path = str(self.facts.get("socket", ""))
        words = self._through(
            "-O",
            "forward",
            "-o",
            "StreamLocalBindUnlink=yes",
            "-L",
            f"{self._local}:{socket_path}",
            self._target.target,
        )
        status, _, err = await run_words(words)
        self.relays = status != 0 or not socket_path
        if self.relays and not self.is_alive:
            raise SshProblem(err.decode("utf-8", "replace").strip() or "the connection ended")

    async def dial(self) -> socket.socket:
        """A connection to the far server. Through a forwarding it may end at once, where sshd forbids that."""
        if self.relays:
            return self._dial_relay()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, str(self._local))
        except OSError as problem:
            sock.close()
            raise SshProblem(f"the connection ended: {problem.strerror or problem}") from None
        return sock

    def _dial_relay(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        script = f'{find_far_wsh(self._target)}; exec "$@" relay'
        words = self._through(self._target.target, "exec sh -c " + shlex.quote(script))
        with theirs:
            process = _spawn(words, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
        _reap_later(process)
        ours.setblocking(False)
        return ours

    async def aclose(self) -> None:
        process, self._process = self._process, None
        try:
            if process is not None:
                if process.poll() is None:
                    process.terminate()
                if process.stderr is not None:
                    asyncio.get_running_loop().remove_reader(process.stderr.fileno())
                    process.stderr.close()
                await asyncio.shield(asyncio.to_thread(_end, process))
        finally:
            self._unlink()


_relays: set[subprocess.Popen[bytes]] = set()


def _reap_later(process: subprocess.Popen[bytes]) -> None:
    """A relay ends with its connection; the start of the next one reaps it."""
    _relays.add(process)
    for each in list(_relays):
        if each.poll() is not None:
            _relays.discard(each)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _spawn(words: Sequence[str], **streams: object) -> subprocess.Popen[bytes]:
    """In a session of its own: neither a Ctrl+C at the server's terminal nor a question of ssh's reaches the other."""
    try:
        return subprocess.Popen(list(words), start_new_session=True, **streams)  # type: ignore[call-overload, no-any-return]  # streams by name
    except OSError as problem:
        raise SshProblem(f"{words[0]} cannot be started: {problem.strerror or problem}") from None


async def run_words(words: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Status, stdout and stderr of a command; killed when cancelled."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as problem:
        raise SshProblem(f"{words[0]} cannot be started: {problem.strerror or problem}") from None
    try:
        out, err = await process.communicate()
    except BaseException:  # a cancellation too: no ssh is left behind
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
        raise
    assert process.returncode is not None
    return process.returncode, out, err


@contextlib.asynccontextmanager
async def _within(timeout_s: float, otherwise: str):  # type: ignore[no-untyped-def]  # a context manager of one use
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise SshProblem(otherwise) from None
