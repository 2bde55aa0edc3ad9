"""The token check: whose token it is, and whether a browser's cookie and secret belong together.

Only digests are compared, each in constant time, and with every known one, so that the time of an answer says nothing about a secret.
`wire/token_file.py` keeps the digests; `auth.py` finds what a request carries and asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING

from wsh.wire.token_file import SignIn, TokenFile, digest

if TYPE_CHECKING:
    from wsh.wire.token_file import Role


@dataclass(frozen=True)
class Holder:
    """Whose token it was."""

    role: Role
    name: str


class TokenCheck:
    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def find_holder(self, token: str) -> Holder | None:
        """Who holds `token`; None if it is wrong, or no longer valid."""
        known, now, given = self._tokens.load(), self._tokens.clock(), digest(token)
        found: Holder | None = None
        if self._tokens.given is not None and compare_digest(given, self._tokens.given):
            found = Holder("owner", "owner")
        for owner in known.owners:
            if compare_digest(given, owner.sha256) and owner.is_valid(now):
                found = Holder("owner", "owner")
        for agent in known.agents:
            if compare_digest(given, agent.sha256) and found is None:
                found = Holder("agent", agent.name)
        return found

    def has_cookie(self, cookie: str) -> bool:
        """Whether a browser was given this cookie and may still use it."""
        return self._find_sign_in(cookie) is not None

    def has_sign_in(self, cookie: str, secret: str) -> bool:
        """Whether cookie and secret were given to one browser together."""
        found = self._find_sign_in(cookie)
        return compare_digest(digest(secret), found.secret if found is not None else "") and found is not None

    def _find_sign_in(self, cookie: str) -> SignIn | None:
        known, now, given = self._tokens.load(), self._tokens.clock(), digest(cookie)
        found: SignIn | None = None
        for each in known.sign_ins:
            if compare_digest(given, each.cookie) and each.is_valid(now):
                found = each
        return found
