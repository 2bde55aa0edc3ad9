"""The secrets that open the door, all kept as digests in a file of mode 0600: owner's and agents' tokens, and browsers' sign-ins.

A token is seen once, when it is made. Standard library only. What a role may do is the doors' business.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from wsh.wire.error import InvalidRequest, NotFound
from wsh.wire.jsonobject import JsonObject
from wsh.wire.moment import Moment, read_moment
from wsh.wire.place import ensure_private, write_private

Role: TypeAlias = Literal["owner", "agent"]

PASSING_S = 86_400.0
"""How long a token lives that was made without a name."""
MOST_PASSING = 64
MOST_SIGN_INS = 64
SIGN_IN_S = 30 * 86_400.0

_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,63}")
_MINIMUM = 16


@dataclass(frozen=True)
class StoredToken:
    """A token as it is remembered. One without a name passes by itself at `expires`.

    Times are those of the wall clock, for people; `boot` and `up` are what the age is counted by (see `Moment`).
    """

    name: str
    sha256: str
    created: float
    expires: float | None = None
    boot: str = ""
    up: float = 0.0

    def is_valid(self, now: Moment) -> bool:
        return self.expires is None or _lives(Moment(self.created, self.boot, self.up), self.expires, now)


@dataclass(frozen=True)
class SignIn:
    """One browser: the digests of its cookie and of the secret that the page keeps in its own storage."""

    cookie: str
    secret: str
    created: float
    expires: float
    boot: str = ""
    up: float = 0.0

    def is_valid(self, now: Moment) -> bool:
        return _lives(Moment(self.created, self.boot, self.up), self.expires, now)


def _lives(made: Moment, expires: float, now: Moment) -> bool:
    """Made less than its life ago. One from a future that far away is of a clock that was wrong, and is not believed."""
    return abs(made.age(now)) < expires - made.wall


@dataclass(frozen=True)
class Holder:
    """Whose token it was."""

    role: Role
    name: str


@dataclass(frozen=True)
class _Content:
    """What the file says."""

    owners: tuple[StoredToken, ...] = ()
    agents: tuple[StoredToken, ...] = ()
    sign_ins: tuple[SignIn, ...] = ()


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
    """The secrets of one user. Reads again when the file changed, so that a new token works at once."""

    def __init__(self, path: Path, owner: str | None = None, clock: Callable[[], Moment] = read_moment) -> None:
        """`owner` is one more owner's token, for this process alone, and is not written anywhere."""
        self.path = path
        self._given = digest(check_owner_token(owner)) if owner is not None else None
        self._clock = clock
        self._content = _Content()
        self._seen: tuple[int, int, int] | None = None

    # tokens

    def list_agents(self) -> tuple[StoredToken, ...]:
        self._refresh()
        return self._content.agents

    def list_owners(self) -> tuple[StoredToken, ...]:
        """The owner's tokens that have a name."""
        self._refresh()
        return tuple(token for token in self._content.owners if token.name)

    def add_agent(self, name: str) -> str:
        """A new token for the agent `name`, replacing the one it had. This is the only time that it is seen."""
        _check_name(name, "an agent")
        token = secrets.token_urlsafe(32)
        with self._changing() as content:
            others = tuple(agent for agent in content.agents if agent.name != name)
            self._write(replace(content, agents=(*others, StoredToken(name, digest(token), self._clock().wall))))
        return token

    def add_owner(self, name: str) -> str:
        """A new owner's token called `name`, replacing the one of that name. This is the only time that it is seen."""
        _check_name(name, "a token")
        token = secrets.token_urlsafe(32)
        with self._changing() as content:
            others = tuple(owner for owner in content.owners if owner.name != name)
            self._write(replace(content, owners=(*others, StoredToken(name, digest(token), self._clock().wall))))
        return token

    def lend_owner(self) -> str:
        """A new owner's token for a day. Only so many exist: the oldest goes first."""
        token = secrets.token_urlsafe(32)
        now = self._clock()
        with self._changing() as content:
            named = tuple(owner for owner in content.owners if owner.name)
            passing = [owner for owner in content.owners if not owner.name and owner.is_valid(now)]
            new = StoredToken("", digest(token), now.wall, now.wall + PASSING_S, now.boot, now.up)
            self._write(replace(content, owners=(*named, *passing[-MOST_PASSING + 1 :], new)))
        return token

    def remove(self, name: str) -> None:
        """End the token of this name, an agent's or the owner's."""
        with self._changing() as content:
            agents = tuple(agent for agent in content.agents if agent.name != name)
            owners = tuple(owner for owner in content.owners if owner.name != name)
            if not name or len(agents) + len(owners) == len(content.agents) + len(content.owners):
                raise NotFound(f"There is no token called {name!r}.", hint="`wsh token --list` shows them.")
            self._write(replace(content, agents=agents, owners=owners))

    def rotate_owner(self) -> str:
        """A new owner's token called "owner"; every other one, and every sign-in, ends at once."""
        token = secrets.token_urlsafe(32)
        with self._changing() as content:
            only = StoredToken("owner", digest(token), self._clock().wall)
            self._write(_Content((only,), content.agents, ()))
        return token

    def find_holder(self, token: str) -> Holder | None:
        """Who holds `token`. Compares with every known token, each in constant time."""
        self._refresh()
        given = digest(token)
        now = self._clock()
        found: Holder | None = None
        if self._given is not None and hmac.compare_digest(given, self._given):
            found = Holder("owner", "owner")
        for owner in self._content.owners:
            if hmac.compare_digest(given, owner.sha256) and owner.is_valid(now):
                found = Holder("owner", "owner")
        for agent in self._content.agents:
            if hmac.compare_digest(given, agent.sha256) and found is None:
                found = Holder("agent", agent.name)
        return found

    # browsers

    def add_sign_in(self) -> tuple[str, str]:
        """A new browser: its cookie, and the secret for the page's own storage. Each is worth nothing without the other."""
        cookie, secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = self._clock()
        with self._changing() as content:
            old = [each for each in content.sign_ins if each.is_valid(now)]
            new = SignIn(digest(cookie), digest(secret), now.wall, now.wall + SIGN_IN_S, now.boot, now.up)
            self._write(replace(content, sign_ins=(*old[-MOST_SIGN_INS + 1 :], new)))
        return cookie, secret

    def has_cookie(self, cookie: str) -> bool:
        """Whether a browser was given this cookie and may still use it."""
        return self._find_sign_in(cookie) is not None

    def has_sign_in(self, cookie: str, secret: str) -> bool:
        """Whether cookie and secret were given to one browser together."""
        found = self._find_sign_in(cookie)
        return hmac.compare_digest(digest(secret), found.secret if found is not None else "") and found is not None

    def _find_sign_in(self, cookie: str) -> SignIn | None:
        self._refresh()
        given = digest(cookie)
        now = self._clock()
        found: SignIn | None = None
        for each in self._content.sign_ins:
            if hmac.compare_digest(given, each.cookie) and each.is_valid(now):
                found = each
        return found

    # the file

    def upgrade(self) -> None:
        """Rewrite a file of an earlier version, which had the owner's token in plain text. The token goes on working."""
        self._refresh()
        if self._seen is None or b'"version": 1' not in self.path.read_bytes():
            return
        with self._changing() as content:
            self._write(content)

    def _refresh(self) -> None:
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            self._content, self._seen = _Content(), None
            return
        if (info.st_ino, info.st_mtime_ns, info.st_size) != self._seen:
            self._read()

    def _read(self) -> None:
        try:
            with open(self.path, "rb") as source:
                info = os.fstat(source.fileno())
                raw = source.read()
        except FileNotFoundError:
            self._content, self._seen = _Content(), None
            return
        if info.st_mode & 0o077:
            os.chmod(self.path, 0o600)
        try:
            self._content = _parse(json.loads(raw))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidRequest(
                f"{self.path} is not a file of tokens.", hint="Remove it; every token has to be made anew then."
            ) from None
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    def _write(self, content: _Content) -> None:
        document = {"version": 2, **asdict(content)}
        write_private(self.path, json.dumps(document, indent=1).encode() + b"\n")
        info = os.stat(self.path)
        self._content = content
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    @contextmanager
    def _changing(self) -> Iterator[_Content]:
        """What the file says, while nobody else changes it."""
        ensure_private(self.path.parent)
        fd = os.open(self.path.parent / f".{self.path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._read()
            yield self._content
        finally:
            os.close(fd)


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} is not a name for {what}.",
            hint="Use 1 to 64 letters, digits, '-', '_' or '.', and no '-' in front.",
        )


def _parse(document: JsonObject) -> _Content:
    agents = tuple(_parse_token(each) for each in document["agents"])
    if "owner" in document:  # version 1 had one owner's token, in plain text
        return _Content((StoredToken("owner", digest(str(document["owner"])), 0.0),), agents)
    owners = tuple(_parse_token(each) for each in document["owners"])
    sign_ins = tuple(
        SignIn(str(s["cookie"]), str(s["secret"]), float(s["created"]), float(s["expires"]), *_parse_boot(s))
        for s in document["sign_ins"]
    )
    return _Content(owners, agents, sign_ins)


def _parse_token(stored: JsonObject) -> StoredToken:
    expires = stored.get("expires")
    return StoredToken(
        str(stored["name"]),
        str(stored["sha256"]),
        float(stored["created"]),
        float(expires) if expires is not None else None,
        *_parse_boot(stored),
    )


def _parse_boot(stored: JsonObject) -> tuple[str, float]:
    return str(stored.get("boot", "")), float(stored.get("up", 0.0))
