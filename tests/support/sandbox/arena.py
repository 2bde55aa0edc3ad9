"""The place where escapes are tried: `python -m tests.support.sandbox.arena BACKEND PROFILE FOLDER [NAMES]`.

Makes secrets, victims, sockets and objects of the user who runs it, starts `attempts.py` in a sandbox beside them through a real keeper, and
prints as JSON which attempts got out.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.sandbox import attempts
from wsh.process import KeeperClient, KeeperOptions, SpawnSpec
from wsh.sandbox.hold import Sandboxes, SandboxPlan
from wsh.sandbox.profile import BUILT_IN
from wsh.sandbox.section import SandboxPolicy
from wsh.session.confine import confine
from wsh.wire.system.place import Places, ensure_private, find_places

VICTIM = """
import ctypes, os, sys, time
kept = ctypes.create_string_buffer(sys.argv[1].encode())
fd = os.open("secret", os.O_RDONLY)
print(ctypes.addressof(kept), fd, flush=True)
time.sleep(600)
"""
_libc = ctypes.CDLL(None, use_errno=True)


class Arena:
    """Everything out there. `config` is what an attacker may know."""

    def __init__(self, root: Path, keeper: KeeperClient, places: Places) -> None:
        self.token = "secret-" + secrets.token_hex(8)
        self.project = root / "project"
        self.outside = root / "outside"
        self.home = Path(os.environ["HOME"])
        self.shm = "wsh-test-" + secrets.token_hex(4)
        self._closing = contextlib.ExitStack()
        self._listeners: list[socket.socket] = []
        self._make_files(root, places)
        self.victims = {
            name: self._spawn_victim()[0] for name, (_, proof, _) in attempts.ATTEMPTS.items() if proof == "process"
        }
        victim, address, fd = self._spawn_victim()
        self.victim = victim
        _master, slave = os.openpty()
        self.config: dict[str, Any] = {
            "token": "nothing",
            "home": str(self.home),
            "own": str(root / "own"),
            "outside": str(self.outside),
            "tmp_secret": str(self._temporary),
            "shm": self.shm,
            "victim": victim.pid,
            "victim_address": address,
            "victim_fd": fd,
            "victims": {name: process.pid for name, process in self.victims.items()},
            "keeper": keeper.pid,
            "other_terminal": os.ttyname(slave),
            "free_port": _free_port(),
            **self._listen(root, places),
            **self._make_objects(),
        }
        # A call that must fail says so by the token only if it is told what the token is.
        self.config["token"] = self.token
        (self.project / "config.json").write_text(json.dumps(self.config).replace(self.token, "claimed-" + self.token))
        self.before = self._look()

    # making

    def _make_files(self, root: Path, places: Places) -> None:
        for folder in (self.project, self.outside, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        self._temporary = Path("/tmp") / f"wsh-test-{secrets.token_hex(4)}"
        values = {"home": str(self.home), "own": str(root / "own"), "outside": str(self.outside), "shm": self.shm}
        values["tmp_secret"] = str(self._temporary)
        for path in attempts.SECRETS.values():
            file = Path(path.format(**values))
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self.token)
                self._closing.callback(file.unlink, missing_ok=True)
            elif file.name == "policy.toml" or file.name == "tokens.json":
                file.write_text(self.token)
        (self.outside / "moved-in").write_text(self.token)
        for name in attempts.ATTEMPTS:
            (self.outside / name).write_text("untouched")
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.project / ".git" / "hooks").mkdir(exist_ok=True)
        (self.project / ".vscode").mkdir(exist_ok=True)
        (self.project / ".vscode" / "tasks.json").write_text("{}")
        (self.project / "attempts.py").write_text(Path(attempts.__file__).read_text())

    def _spawn_victim(self) -> tuple[subprocess.Popen[bytes], int, int]:
        words = [sys.executable, "-c", VICTIM, self.token, "victim"]
        env = {"SECRET": self.token, "PATH": os.defpath}
        process = subprocess.Popen(words, env=env, cwd=self.outside, stdout=subprocess.PIPE)
        self._closing.callback(process.wait)
        self._closing.callback(process.kill)
        assert process.stdout is not None
        address, fd = process.stdout.readline().split()
        return process, int(address), int(fd)

    def _listen(self, root: Path, places: Places) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, family, kind, host in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
            ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, "::1"),
            ("udp6", socket.AF_INET6, socket.SOCK_DGRAM, "::1"),
        ):
            try:
                made = socket.socket(family, kind)
                made.bind((host, 0))
            except OSError:
                found[name] = 9  # no IPv6 here
                continue
            found[name] = made.getsockname()[1]
            self._serve(made)
        unix = {
            "path_outside": str(root / "path.sock"),
            "path_inside": str(self.project / "inside.sock"),
            "abstract": "@wsh-test-" + secrets.token_hex(4),
            "display": str(root / "X0"),
            "bus": str(root / "bus"),
            "agent": str(root / "agent.1"),
            "docker": str(root / "docker.sock"),
        }
        for address in unix.values():
            made = socket.socket(socket.AF_UNIX)
            made.bind(address.replace("@", "\0"))
            self._serve(made)
        datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagram.bind(str(root / "datagram"))
        self._serve(datagram)
        return found | {"unix": unix | {"keeper": str(places.keeper_socket), "datagram": str(root / "datagram")}}

    def _serve(self, made: socket.socket) -> None:
        self._listeners.append(made)

        def answer() -> None:
            with contextlib.suppress(OSError):
                if made.type == socket.SOCK_STREAM:
                    made.listen()
                    while True:
                        peer, _ = made.accept()
                        peer.send(self.token.encode())
                        peer.close()
                while True:
                    _, address = made.recvfrom(100)
                    if address:
                        made.sendto(self.token.encode(), address)

        threading.Thread(target=answer, daemon=True).start()

    def _make_objects(self) -> dict[str, Any]:
        key = secrets.randbelow(1 << 30) + 1
        shm = _libc.shmget(key, 4096, 0o600 | 0o1000)
        _libc.shmat.restype = ctypes.c_void_p
        address = _libc.shmat(shm, None, 0)
        ctypes.memmove(address, self.token.encode(), len(self.token))
        self._closing.callback(_libc.shmctl, shm, 0, None)
        msg = _libc.msgget(key, 0o600 | 0o1000)
        self._closing.callback(_libc.msgctl, msg, 0, None)
        return {"shm_key": key, "msg_key": key, "queue": "wsh-test"}

    # judging

    def _look(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        shared = [path for path in Path("/dev/shm").iterdir() if path.name.startswith(self.shm)]
        protected = [self.project / name.split("/")[0] for name in attempts.PROTECTED.values()]
        for top in (self.outside, self.home, *shared, *protected):
            paths = [top, *top.rglob("*")] if top.is_dir() and not top.is_symlink() else [top]
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    facts = path.lstat()
                    content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
                    marks = os.listxattr(path, follow_symlinks=False)
                    modified = facts.st_mtime_ns if stat.S_ISREG(facts.st_mode) else 0
                    found[str(path)] = (facts.st_ino, facts.st_mode, modified, content, tuple(marks), facts.st_nlink)
        return found

    def judge(self, told: Mapping[str, Mapping[str, Any]], names: list[str]) -> dict[str, dict[str, Any]]:
        after = self._look()
        changed = {path for path in self.before | after if self.before.get(path) != after.get(path)}
        inside = {path for path in changed if path.startswith(str(self.project))}
        outcome: dict[str, dict[str, Any]] = {}
        for name in names:
            claim, proof, _ = attempts.ATTEMPTS[name]
            said = told.get(name)
            touched = {
                path
                for path in changed - inside
                if path.endswith(f"/{name}") or f"/{name}." in path or f".{name}" in path
            }
            escaped = bool(touched)
            if said is None:
                outcome[name] = {"claim": claim, "escaped": True, "why": "it was not tried: the sandbox ended before"}
                continue
            if proof == "secret":
                escaped = escaped or self.token in str(said.get("value", "")).replace(
                    "claimed-" + self.token, self.token
                )
            elif proof == "process":
                escaped = escaped or self.victims[name].poll() is not None
            elif proof in ("call", "protected"):
                escaped = escaped or said["done"] is True
            outcome[name] = {
                "claim": claim,
                "escaped": escaped,
                "why": str(said.get("value", ""))[:200],
                "tried": said["done"] is not None,
            }
        known = {path for path in changed if any(name in path for name in names)}
        stray = sorted(changed - inside - known - {str(self.outside), str(self.home)})
        protected = sorted(path for path in inside if path not in (str(self.project / ".git"),))
        return outcome | {"end": {"stray": stray, "protected": protected}}

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._closing.close()


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def find_python() -> tuple[str, list[str]]:
    """An interpreter that runs inside, and what must be readable for it."""
    if os.access("/usr/bin/python3", os.X_OK):
        return "/usr/bin/python3", []
    return os.path.realpath(sys.executable), [sys.base_prefix]


@contextlib.contextmanager
def _planned(root: Path, backend: str, profile: str, places: Places, names: list[str]) -> Iterator[SandboxPlan]:
    python, needed = find_python()
    policy = SandboxPolicy(backend="landlock" if backend == "landlock" else "bubblewrap", accept_weaker=True)
    sandboxes = Sandboxes(places, os.environ["HOME"])
    project = root / "project"
    argv = [python, str(project / "attempts.py"), str(project / "config.json"), ",".join(names)]
    plan = sandboxes.plan(
        BUILT_IN[profile], policy, id="arena", path=python, argv=argv, env={"PATH": os.defpath, "LANG": "C.UTF-8"}, given=(),
        cwd=str(project), needed=needed,
    )  # fmt: skip
    try:
        yield plan
    finally:
        plan.close()
        sandboxes.release("arena")


async def fight(backend: str, profile: str, root: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    places = find_places()
    ensure_private(places.config)
    keeper = await KeeperClient.open(places, KeeperOptions(linger_s=1.0))
    arena = Arena(root, keeper, places)
    try:
        with _planned(root, backend, profile, places, names) as plan:
            child = await keeper.spawn(confine(SpawnSpec(plan.argv, plan.cwd, plan.env), plan))
            printed = bytearray()
            ended = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(child.exited), 240))
            while True:
                data = child.ring.peek(65536)
                if data:
                    printed += data
                    child.ring.consume(len(data))
                elif ended.done():
                    break
                else:
                    await asyncio.sleep(0.02)
            report = await keeper.kill_tree(child, 0)
            assert not report.survivors, report
            await keeper.forget(child)
        told = {}
        for line in bytes(printed).replace(b"\r", b"").split(b"\n"):
            if line.startswith(b"@@"):
                each = json.loads(line[2:])
                told[each["name"]] = each
        outcome = arena.judge(told, names)
        outcome["end"]["printed"] = bytes(printed)[-500:].decode("utf-8", "replace")
        outcome["end"]["weaker"] = list(plan.holding.weaker)
        outcome["end"]["left"] = sorted(path.name for path in (places.state / "sandbox").glob("*"))
        return outcome
    finally:
        arena.close()
        await keeper.stop(grace_ms=0)


def main() -> None:
    backend, profile, folder, *names = sys.argv[1:]
    wanted = names[0].split(",") if names and names[0] else list(attempts.ATTEMPTS)
    print(json.dumps(asyncio.run(fight(backend, profile, Path(folder), wanted))))


if __name__ == "__main__":
    main()
