"""Who is calling: what a request carries (token, one-use ticket, one-use link, browser's sign-in), and the brake on guessing.

A caller is an owner or an agent. The unix socket proves its user by the kernel and needs no token. A browser sends its
cookie to every port of this host, so the cookie opens nothing but the page's own files: with it must come the secret that the
page keeps in its storage. A caller may ask to be treated as less than it is (`Wsh-Role: agent`), never as more. What a
role may do is said by the routes.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from wsh.http.error import AuthInvalid, AuthRequired, TooManyAttempts
from wsh.http.token_check import TokenCheck
from wsh.wire.caller import Caller
from wsh.wire.error import LimitReached
from wsh.wire.setting import Settings
from wsh.wire.token_file import TokenFile, digest

TICKET_S = 30.0
LINK_S = 600.0
KEY_S = 60.0
PAGE_HEADER = "wsh-page"

Value = TypeVar("Value")


@dataclass
class OneUse(Generic[Value]):
    """Secrets that work once, for a short time, and only so many at once for one account. Each stands for a value."""

    lifetime_s: float
    most: int
    setting: str
    clock: Callable[[], float] = time.monotonic
    _waiting: dict[str, tuple[float, str, Value]] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)

    def issue(self, value: Value, account: str) -> str:
        self._drop_expired()
        if self._counts[account] >= self.most:
            raise LimitReached("pending tickets of this caller", self.most, self.setting)
        secret = secrets.token_urlsafe(32)
        # Looked up by digest, so that the time of a lookup says nothing about a secret.
        self._waiting[digest(secret)] = (self.clock() + self.lifetime_s, account, value)
        self._counts[account] += 1
        return secret

    def redeem(self, secret: str) -> Value | None:
        if (entry := self._take(digest(secret))) is None:
            return None
        expiry, _, value = entry
        return value if expiry >= self.clock() else None

    def _take(self, key: str) -> tuple[float, str, Value] | None:
        entry = self._waiting.pop(key, None)
        if entry is not None:
            self._counts[entry[1]] -= 1
            if not self._counts[entry[1]]:
                del self._counts[entry[1]]
        return entry

    def _drop_expired(self) -> None:
        now = self.clock()
        # Insertion order is order of expiry, since every secret lives equally long.
        for key, (expiry, _, _) in list(self._waiting.items()):
            if expiry >= now:
                break
            self._take(key)


class Brake:
    """Counts failed attempts; past the limit each further failure is answered 429 until the minute has passed."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._failures: deque[float] = deque(maxlen=per_minute)

    def note_failure(self, what: str = "token") -> AuthInvalid | TooManyAttempts:
        """The error for this failure."""
        now = self._clock()
        if len(self._failures) == self._per_minute and now - self._failures[0] < 60.0:
            return TooManyAttempts(max(1, int(60.0 - (now - self._failures[0])) + 1))
        self._failures.append(now)
        return AuthInvalid(what)


@dataclass(frozen=True)
class _Handover:
    """A secret on its way to the page that has this cookie (its digest)."""

    cookie: str
    secret: str


class Authority:
    """Turns what a request carries into a Caller, or raises."""

    def __init__(self, tokens: TokenFile, settings: Settings) -> None:
        self.tokens = tokens
        self.check = TokenCheck(tokens)
        setting = "server.max_pending_tickets"
        self.tickets: OneUse[Caller] = OneUse(TICKET_S, settings.get_int(setting), setting)
        self.links: OneUse[bool] = OneUse(LINK_S, settings.get_int(setting), setting)
        self.brake = Brake(settings.get_int("server.failed_logins_per_minute"))
        self.cookie_name = "wsh"
        self._keys: OneUse[_Handover] = OneUse(KEY_S, settings.get_int(setting), setting)

    def identify(
        self, headers: Mapping[str, str], *, unix: Caller | None, ticket: str | None = None, public: bool = False
    ) -> Caller:
        """The caller of a request with these headers (lower-case names, trimmed values). `unix` is who has the socket.

        `public` is for what is the same for every browser: the cookie alone is enough to see it.
        """
        caller = self._find_caller(headers, unix, ticket, public)
        if headers.get("wsh-role", "").lower() == "agent":
            name = "".join(c for c in headers.get("wsh-agent", "") if c.isalnum() or c in "-_.")[:64]
            fallback = caller.name if caller.role == "agent" else "agent"
            caller = replace(caller, role="agent", name=name or fallback)
        return caller

    def _find_caller(self, headers: Mapping[str, str], unix: Caller | None, ticket: str | None, public: bool) -> Caller:
        authorization = headers.get("authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            holder = self.check.find_holder(token.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise self.brake.note_failure()
            return Caller(holder.role, holder.name, "token", account=f"{holder.role}:{holder.name}")
        if ticket is not None:
            caller = self.tickets.redeem(ticket)
            if caller is None:
                raise self.brake.note_failure("ticket")
            # Who came by the page stays known as the page.
            return caller if caller.proof == "cookie" else replace(caller, proof="ticket")
        if unix is not None:
            return unix
        cookie = self.find_cookie(headers)
        # An old cookie is no attack: the page says how to sign in again.
        if cookie is not None:
            secret = headers.get(PAGE_HEADER)
            if secret is not None and self.check.has_sign_in(cookie, secret):
                return Caller("owner", "owner", "cookie", account=f"page:{digest(cookie)[:16]}")
            if public and self.check.has_cookie(cookie):
                return Caller("agent", "anybody", "cookie", account="public")
        raise AuthRequired

    def find_cookie(self, headers: Mapping[str, str]) -> str | None:
        return find_cookie(headers.get("cookie", ""), self.cookie_name)

    def sign_in(self) -> tuple[str, str]:
        """A cookie for a browser, and the key by which the page that it then loads gets its secret, once."""
        cookie, secret = self.tokens.add_sign_in()
        return cookie, self._keys.issue(_Handover(digest(cookie), secret), "")

    def trade_key(self, key: str, headers: Mapping[str, str]) -> str:
        """The page's secret, for the key and the cookie that were given together."""
        cookie = self.find_cookie(headers)
        found = self._keys.redeem(key)
        if found is None or cookie is None or found.cookie != digest(cookie):
            raise self.brake.note_failure("link")
        return found.secret


def find_cookie(header: str, name: str) -> str | None:
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None
