"""The file of secrets that open the door: owner's and agents' tokens and browsers' sign-ins, all as digests, in mode 0600.

A token is seen once, when it is made. Standard library only. `http/token_check.py` compares; what a role may do is the doors' business.
"""

from __future__ import annotations

import fcntl
import os
import sys

from wsh.wire.error import InvalidRequest, NotFound
from wsh.wire.frozen import frozen
from wsh.wire.json.text import read_json, write_json
from wsh.wire.name import is_name
from wsh.wire.system.moment import Moment, read_moment
from wsh.wire.system.private_file import ensure_private, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:  # `wsh token` imports this, and is a short command
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, Literal, TypeAlias

    from wsh.wire.json.object import JsonObject

    Role: TypeAlias = Literal["owner", "agent"]

PASSING_S = 86_400.0
"""How long a token lives that was made without a name."""
MOST_PASSING = 64
MOST_SIGN_INS = 64
SIGN_IN_S = 30 * 86_400.0

_MINIMUM = 16


@frozen
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


@frozen
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


@frozen
class TokenContent:
    """What the file says."""

    owners: tuple[StoredToken, ...] = ()
    agents: tuple[StoredToken, ...] = ()
    sign_ins: tuple[SignIn, ...] = ()


def make_secret() -> str:
    """256 bits as 43 characters that may stand in an address."""
    from binascii import b2a_base64

    return b2a_base64(os.urandom(32), newline=False).decode().translate({43: "-", 47: "_", 61: None})


def digest(token: str) -> str:
    return str(_sha256(token.encode("utf-8", "surrogateescape")).hexdigest())


def _sha256(data: bytes) -> Any:
    try:
        # The interpreter's own: hashlib would load all of OpenSSL for it.
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256(data)
    except ImportError:
        from hashlib import sha256

        return sha256(data)


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

    def __init__(self, path: str | Path, owner: str | None = None, clock: Callable[[], Moment] = read_moment) -> None:
        """`owner` is one more owner's token, for this process alone, and is not written anywhere."""
        self.path = os.fspath(path)
        self.given = digest(check_owner_token(owner)) if owner is not None else None
        self.clock = clock
        self._content = TokenContent()
        self._seen: tuple[int, int, int] | None = None

    # tokens

    def load(self) -> TokenContent:
        """What the file says. Reads it again only if it changed."""
        self._refresh()
        return self._content

    def list_agents(self) -> tuple[StoredToken, ...]:
        return self.load().agents

    def list_owners(self) -> tuple[StoredToken, ...]:
        """The owner's tokens that have a name."""
        return tuple(token for token in self.load().owners if token.name)

    def add_agent(self, name: str) -> str:
        """A new token for the agent `name`, replacing the one it had. This is the only time that it is seen."""
        _check_name(name, "an agent")
        token = make_secret()
        with self._changing() as content:
            others = tuple(agent for agent in content.agents if agent.name != name)
            new = StoredToken(name, digest(token), self.clock().wall)
            self._write(TokenContent(content.owners, (*others, new), content.sign_ins))
        return token

    def add_owner(self, name: str) -> str:
        """A new owner's token called `name`, replacing the one of that name. This is the only time that it is seen."""
        _check_name(name, "a token")
        token = make_secret()
        with self._changing() as content:
            others = tuple(owner for owner in content.owners if owner.name != name)
            new = StoredToken(name, digest(token), self.clock().wall)
            self._write(TokenContent((*others, new), content.agents, content.sign_ins))
        return token

    def lend_owner(self) -> str:
        """A new owner's token for a day. Only so many exist: the oldest goes first."""
        token = make_secret()
        now = self.clock()
        with self._changing() as content:
            named = tuple(owner for owner in content.owners if owner.name)
            passing = [owner for owner in content.owners if not owner.name and owner.is_valid(now)]
            new = StoredToken("", digest(token), now.wall, now.wall + PASSING_S, now.boot, now.up)
            self._write(TokenContent((*named, *passing[-MOST_PASSING + 1 :], new), content.agents, content.sign_ins))
        return token

    def remove(self, name: str) -> None:
        """End the token of this name, an agent's or the owner's."""
        with self._changing() as content:
            agents = tuple(agent for agent in content.agents if agent.name != name)
            owners = tuple(owner for owner in content.owners if owner.name != name)
            if not name or len(agents) + len(owners) == len(content.agents) + len(content.owners):
                raise NotFound(f"There is no token called {name!r}.", hint="`wsh token --list` shows them.")
            self._write(TokenContent(owners, agents, content.sign_ins))

    def rotate_owner(self) -> str:
        """A new owner's token called "owner"; every other one, and every sign-in, ends at once."""
        token = make_secret()
        with self._changing() as content:
            only = StoredToken("owner", digest(token), self.clock().wall)
            self._write(TokenContent((only,), content.agents, ()))
        return token

    # browsers

    def add_sign_in(self) -> tuple[str, str]:
        """A new browser: its cookie, and the secret for the page's own storage. Each is worth nothing without the other."""
        cookie, secret = make_secret(), make_secret()
        now = self.clock()
        with self._changing() as content:
            old = [each for each in content.sign_ins if each.is_valid(now)]
            new = SignIn(digest(cookie), digest(secret), now.wall, now.wall + SIGN_IN_S, now.boot, now.up)
            self._write(TokenContent(content.owners, content.agents, (*old[-MOST_SIGN_INS + 1 :], new)))
        return cookie, secret

    # the file itself

    def upgrade(self) -> None:
        """Rewrite a file of an earlier version, which had the owner's token in plain text. The token goes on working."""
        self._refresh()
        if self._seen is None:
            return
        with open(self.path, "rb") as source:
            if b'"version": 1' not in source.read():
                return
        with self._changing() as content:
            self._write(content)

    def _refresh(self) -> None:
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            self._content, self._seen = TokenContent(), None
            return
        if (info.st_ino, info.st_mtime_ns, info.st_size) != self._seen:
            self._read()

    def read(self) -> TokenContent:
        """What the file says now."""
        self._read()
        return self._content

    def _read(self) -> None:
        try:
            with open(self.path, "rb") as source:
                info = os.fstat(source.fileno())
                raw = source.read()
        except FileNotFoundError:
            self._content, self._seen = TokenContent(), None
            return
        if info.st_mode & 0o077:
            os.chmod(self.path, 0o600)
        try:
            self._content = _parse(read_json(raw))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidRequest(
                f"{self.path} is not a file of tokens.", hint="Remove it; every token has to be made anew then."
            ) from None
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    def _write(self, content: TokenContent) -> None:
        document = {"version": 2, **{kind: list(map(vars, held)) for kind, held in vars(content).items()}}
        write_private(self.path, write_json(document).encode() + b"\n")
        info = os.stat(self.path)
        self._content = content
        self._seen = (info.st_ino, info.st_mtime_ns, info.st_size)

    def _changing(self) -> _Change:
        return _Change(self)


class _Change:
    """While it is entered, nobody else changes the file; gives what the file says."""

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens
        self._lock = -1

    def __enter__(self) -> TokenContent:
        folder, name = os.path.split(self._tokens.path)
        ensure_private(folder)
        self._lock = os.open(os.path.join(folder, f".{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            return self._tokens.read()
        except BaseException:
            os.close(self._lock)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)


def _check_name(name: str, what: str) -> None:
    if not is_name(name):
        raise InvalidRequest(
            f"{name[:80]!r} is not a name for {what}.",
            hint="Use 1 to 64 letters, digits, '-', '_' or '.', and no '-' in front.",
        )


def _parse(document: JsonObject) -> TokenContent:
    agents = tuple(_parse_token(each) for each in document["agents"])
    if "owner" in document:  # version 1 had one owner's token, in plain text
        return TokenContent((StoredToken("owner", digest(str(document["owner"])), 0.0),), agents)
    owners = tuple(_parse_token(each) for each in document["owners"])
    sign_ins = tuple(
        SignIn(str(s["cookie"]), str(s["secret"]), float(s["created"]), float(s["expires"]), *_parse_boot(s))
        for s in document["sign_ins"]
    )
    return TokenContent(owners, agents, sign_ins)


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
