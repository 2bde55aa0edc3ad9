"""The secrets that open the door: one for the owner, one for each agent; kept in a file of mode 0600.

The owner's token is kept as it is, since `wsh token` prints it; an agent's token is shown once and kept as a hash.
Standard library only. What a role may do is the doors' business.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from wsh.wire.error import InvalidRequest, NotFound
from wsh.wire.place import ensure_private, write_private

Role: TypeAlias = Literal["owner", "agent"]

_AGENT = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MINIMUM = 16


@dataclass(frozen=True)
class AgentToken:
    name: str
    digest: str
    created: float


@dataclass(frozen=True)
class Holder:
    """Whose token it was."""

    role: Role
    name: str


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def check_owner_token(token: str) -> str:
    """`token`, if it can be typed into a header and is long enough to be a secret."""
    if len(token) < _MINIMUM or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidRequest(
            "This is not usable as a token.",
            hint=f"Use at least {_MINIMUM} printable ASCII characters without blanks.",
        )
    return token


class TokenFile:
    """The tokens of one user. Reads again when the file changed, so that a new agent's token works at once."""

    def __init__(self, path: Path, owner: str | None = None) -> None:
        """`owner` overrides the owner's token for this process and is not written anywhere."""
        self.path = path
        self._given = check_owner_token(owner) if owner is not None else None
        self._owner = ""
        self._agents: tuple[AgentToken, ...] = ()
        self._seen: tuple[int, int, int] | None = None

    @property
    def owner(self) -> str:
        """The owner's token; made on first use."""
        if self._given is not None:
            return self._given
        self._refresh()
        if not self._owner:
            with self._locked():
                self._read()
                if not self._owner:
                    self._owner = secrets.token_urlsafe(32)
                    self._write()
        return self._owner

    def list_agents(self) -> tuple[AgentToken, ...]:
        self._refresh()
        return self._agents

    def add_agent(self, name: str) -> str:
        """A new token for the agent `name`, replacing the one it had. This is the only time that it is seen."""
        if not _AGENT.fullmatch(name):
            raise InvalidRequest(
                f"{name[:80]!r} is not a name for an agent.", hint="Use 1 to 64 letters, digits, '-', '_' or '.'."
            )
        token = secrets.token_urlsafe(32)
        with self._locked():
            self._read()
            others = [agent for agent in self._agents if agent.name != name]
            self._agents = (*others, AgentToken(name, digest(token), time.time()))
            self._write()
        return token

    def remove_agent(self, name: str) -> None:
        with self._locked():
            self._read()
            left = tuple(agent for agent in self._agents if agent.name != name)
            if len(left) == len(self._agents):
                raise NotFound(f"There is no token for an agent {name!r}.", hint="`wsh token --list` shows them.")
            self._agents = left
            self._write()

    def rotate_owner(self) -> str:
        """A new owner's token; the old one, and every cookie made with it, ends at once."""
        with self._locked():
            self._read()
            self._owner = secrets.token_urlsafe(32)
            self._write()
        return self._owner

    def find_holder(self, token: str) -> Holder | None:
        """Who holds `token`. Compares with every known token in constant time."""
        self._refresh()
        given = digest(token)
        found: Holder | None = None
        if hmac.compare_digest(given, digest(self.owner)):
            found = Holder("owner", "owner")
        for agent in self._agents:
            if hmac.compare_digest(given, agent.digest) and found is None:
                found = Holder("agent", agent.name)
        return found

    def _refresh(self) -> None:
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            self._owner, self._agents, self._seen = "", (), None
            return
        if (info.st_ino, info.st_mtime_ns, info.st_size) != self._seen:
            self._read()

    def _read(self) -> None:
        try:
            with open(self.path, "rb") as source:
                info = os.fstat(source.fileno())
                raw = source.read()
        except FileNotFoundError:
            self._owner, self._agents, self._seen = "", (), None
            return
        if info.st_mode & 0o077:
            os.chmod(self.path, 0o600)
        try:
            document: dict[str, Any] = json.loads(raw)
            self._owner = str(document["owner"])
            self._agents = tuple(
                AgentToken(str(a["name"]), str(a["sha256"]), float(a["created"])) for a in document["agents"]
            )
        except (ValueError, KeyError, TypeError):
            raise InvalidRequest(
                f"{self.path} is not a file of tokens.", hint="Remove it; the next start makes a new one."
            ) from None
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    def _write(self) -> None:
        agents = [{"name": a.name, "sha256": a.digest, "created": a.created} for a in self._agents]
        if not self._owner:
            self._owner = secrets.token_urlsafe(32)
        document = {"version": 1, "owner": self._owner, "agents": agents}
        write_private(self.path, json.dumps(document, indent=1).encode() + b"\n")
        info = os.stat(self.path)
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        ensure_private(self.path.parent)
        fd = os.open(self.path.parent / f".{self.path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
