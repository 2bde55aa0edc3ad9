"""Who is calling: tokens, one-use tickets, one-use links, cookies; and the brake on guessing.

A caller is an owner or an agent. The unix socket proves its user by the kernel and needs no token. A caller may ask
to be treated as less than it is (`Wsh-Role: agent`), never as more. What a role may do is said by the routes.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from wsh.http.error import AuthInvalid, AuthRequired, TooManyAttempts
from wsh.wire.caller import Caller
from wsh.wire.error import LimitReached
from wsh.wire.setting import Settings
from wsh.wire.token import TokenFile

TICKET_S = 30.0
LINK_S = 600.0
COOKIE_S = 30 * 86_400


@dataclass
class OneUse:
    """Secrets that work once, for a short time, and only so many at once."""

    lifetime_s: float
    most: int
    setting: str
    clock: Callable[[], float] = time.monotonic
    _waiting: dict[str, tuple[float, Caller]] = field(default_factory=dict)

    def issue(self, caller: Caller) -> str:
        self._drop_expired()
        if len(self._waiting) >= self.most:
            raise LimitReached("pending tickets", self.most, self.setting)
        secret = secrets.token_urlsafe(32)
        self._waiting[_key(secret)] = (self.clock() + self.lifetime_s, caller)
        return secret

    def redeem(self, secret: str) -> Caller | None:
        entry = self._waiting.pop(_key(secret), None)
        if entry is None or entry[0] < self.clock():
            return None
        return entry[1]

    def _drop_expired(self) -> None:
        now = self.clock()
        # Insertion order is order of expiry, since every secret lives equally long.
        for key, (expiry, _) in list(self._waiting.items()):
            if expiry >= now:
                break
            del self._waiting[key]


def _key(secret: str) -> str:
    """Looked up by hash, so that the time of a lookup says nothing about a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


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


class Authority:
    """Turns what a request carries into a Caller, or raises."""

    def __init__(self, tokens: TokenFile, settings: Settings) -> None:
        self.tokens = tokens
        self.tickets = OneUse(TICKET_S, settings.get_int("server.max_pending_tickets"), "server.max_pending_tickets")
        self.links = OneUse(LINK_S, 64, "server.max_pending_tickets")
        self.brake = Brake(settings.get_int("server.failed_logins_per_minute"))
        self.cookie_name = "wsh"

    def identify(
        self,
        headers: Mapping[str, str],
        *,
        unix: Caller | None,
        ticket: str | None = None,
    ) -> Caller:
        """The caller of a request with these headers (lower-case names, trimmed values). `unix` is who has the socket."""
        caller = self._find_caller(headers, unix, ticket)
        if headers.get("wsh-role", "").lower() == "agent":
            name = "".join(c for c in headers.get("wsh-agent", "") if c.isalnum() or c in "-_.")[:64]
            fallback = caller.name if caller.role == "agent" else "agent"
            caller = replace(caller, role="agent", name=name or fallback)
        return caller

    def _find_caller(self, headers: Mapping[str, str], unix: Caller | None, ticket: str | None) -> Caller:
        authorization = headers.get("authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            holder = self.tokens.find_holder(token.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise self.brake.note_failure()
            return Caller(holder.role, holder.name, "token")
        if ticket is not None:
            caller = self.tickets.redeem(ticket)
            if caller is None:
                raise self.brake.note_failure("ticket")
            return Caller(caller.role, caller.name, "ticket", caller.pid)
        if unix is not None:
            return unix
        cookie = find_cookie(headers.get("cookie", ""), self.cookie_name)
        # An old cookie is no attack: the page says how to sign in again.
        if cookie is not None and self.check_cookie(cookie):
            return Caller("owner", "owner", "cookie")
        raise AuthRequired

    def make_cookie(self) -> str:
        """A value that proves the owner for `COOKIE_S`, also to the next server, until the owner's token changes."""
        body = f"{int(time.time()) + COOKIE_S}.{secrets.token_urlsafe(12)}"
        return f"{body}.{self._sign(body)}"

    def check_cookie(self, value: str) -> bool:
        body, _, signature = value.rpartition(".")
        expiry = body.partition(".")[0]
        if not hmac.compare_digest(signature.encode(), self._sign(body).encode()):
            return False
        return expiry.isdigit() and int(expiry) > time.time()

    def _sign(self, body: str) -> str:
        key = hashlib.sha256(b"wsh cookie\0" + self.tokens.owner.encode()).digest()
        return hmac.new(key, body.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def find_cookie(header: str, name: str) -> str | None:
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None
