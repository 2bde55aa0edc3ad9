"""The policy file while a server runs: always the newest content, never a half-read one.

`current()` costs one `stat`, so a change holds for the very next decision, also when the file or its folder appears
later. A file that cannot be used means the strictest policy and a `warning` to show.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from wsh.policy.file.document import MAX_POLICY_BYTES, PolicyError, parse_policy
from wsh.policy.policy import Policy, default_policy, strictest_policy

log = logging.getLogger(__name__)


def say_why_broken(policy: Policy) -> str | None:
    """What people are shown of a policy whose file cannot be used; None when all is well."""
    if policy.broken is None:
        return None
    return f"The policy file cannot be used, so nothing runs headless: {policy.broken}"


_Stamp = tuple[int, int, int, int, int, int]


class PolicyStore:
    """Reads `path`; never writes it. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: _Stamp | None = None
        self._policy = default_policy()
        self._loaded = False
        self._is_told = True
        self._is_telling = False
        self._listeners: list[Callable[[Policy], None]] = []

    def current(self) -> Policy:
        """The policy as the file stands now."""
        self.check()
        return self._policy

    @property
    def warning(self) -> str | None:
        """Why the file cannot be used, for people to see; None when all is well."""
        return say_why_broken(self.current())

    def check(self) -> bool:
        """Look at the file; True if the policy changed."""
        stamp = self._look()
        if self._loaded and stamp == self._stamp:
            return False
        self._stamp = stamp
        before, self._policy = self._policy, self._read()
        changed = not self._loaded or before != self._policy
        self._loaded = True
        if self._policy.broken is not None:
            log.warning("%s", self._policy.broken)
        if changed:
            self._is_told = False
            self._tell()
        return changed

    def _tell(self) -> None:
        """Tell the listeners, one change after the other. What a listener asks us may find the next change, which must not be told before this one."""
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while not self._is_told:
                self._is_told = True
                policy = self._policy
                for listener in list(self._listeners):
                    listener(policy)
        finally:
            self._is_telling = False

    def subscribe(self, listener: Callable[[Policy], None]) -> Callable[[], None]:
        """Call `listener` after each change that `check` sees; returns how to stop that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    async def watch(self, interval_s: float = 0.25) -> None:
        """Look again and again until cancelled, so that listeners hear of changes without a decision."""
        import asyncio  # who only reads the policy needs none

        while True:
            self.check()
            await asyncio.sleep(interval_s)

    def _look(self) -> _Stamp | None:
        try:
            info = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            return (-1, problem.errno or 0, 0, 0, 0, 0)
        return (info.st_ino, info.st_dev, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode)

    def _read(self) -> Policy:
        source = str(self.path)
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return default_policy()
        except OSError as problem:
            return strictest_policy(f"{source}: {problem.strerror}", source)
        try:
            return self._read_open(fd, source)
        except OSError as problem:
            return strictest_policy(f"{source}: {problem.strerror}", source)
        finally:
            os.close(fd)

    def _read_open(self, fd: int, source: str) -> Policy:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return strictest_policy(f"{source} is not a file", source)
        if info.st_uid not in (os.getuid(), 0) or info.st_mode & stat.S_IWOTH:
            return strictest_policy(f"{source} can be written by others; make it yours and mode 0600", source)
        data = b""
        while len(data) <= MAX_POLICY_BYTES:
            piece = os.read(fd, MAX_POLICY_BYTES + 1)
            if not piece:
                break
            data += piece
        try:
            return parse_policy(data.decode(), source, time.time())
        except UnicodeDecodeError as problem:
            line = data[: problem.start].count(b"\n") + 1
            return strictest_policy(f"{source}:{line}: the text is not UTF-8", source)
        except PolicyError as problem:
            return strictest_policy(str(problem), source, data.decode())
