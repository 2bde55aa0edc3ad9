"""Web Push: the browsers of the owner that asked to be told, and the keys by which push services know this server.

A push says that something waits and of which kind; never what. The browser shows each id once, so one may be sent again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import time
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path

from wsh.notice.outbox import Notice
from wsh.notice.post import Undelivered, check_url, post
from wsh.notice.rule import WAITING, NoticeKind
from wsh.wire.error import CapabilityMissing, InvalidRequest, LimitReached, NotFound
from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger(__name__)

_TTL_S = 86_400
_TOKEN_S = 12 * 3600
_LONGEST_ENDPOINT = 2000
_MOST_SETTLED = 1000
_WORDS: dict[NoticeKind, str] = {
    "request": "An agent asks for your approval.",
    "hidden": "A program asks for something hidden.",
    "asks": "A program asks.",
    "failed": "A command failed.",
    "finished": "A command ended.",
    "exited": "A session has exited.",
    "quiet": "A session has gone quiet.",
    "told": "A program has something to say.",
}


@dataclass(frozen=True)
class PushSubscription:
    """One browser. `id` is made from the endpoint, which is secret: its holder could send in our name."""

    id: str
    endpoint: str
    p256dh: str
    auth: str
    name: str
    made: float


def has_push() -> bool:
    """Whether the extra `push` is installed."""
    from importlib.util import find_spec

    return find_spec("pywebpush") is not None


class Pushes:
    def __init__(
        self, path: Path, aside: Executor, *, contact: str, loopback: bool, most: int, timeout_s: float
    ) -> None:
        self._path = path
        self._aside = aside
        self._contact, self._loopback, self._most, self._timeout_s = contact, loopback, most, timeout_s
        self._key = ""
        self._subscriptions: dict[str, PushSubscription] = {}
        self._writing = asyncio.Lock()
        self._settled: dict[str, set[str]] = {}
        """Of notices that some browser has not got yet: the subscriptions that are not tried again."""

    def load(self) -> None:
        """Blocking. A file that cannot be read counts as empty."""
        try:
            found = json.loads(self._path.read_bytes())
            self._key = str(found["key"])
            self._subscriptions = {one["id"]: PushSubscription(**one) for one in found["subscriptions"]}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, KeyError) as problem:
            log.warning("the subscriptions to push cannot be read; browsers have to subscribe again: %s", problem)

    @property
    def is_there(self) -> bool:
        return bool(self._subscriptions)

    def list_subscriptions(self) -> list[PushSubscription]:
        return list(self._subscriptions.values())

    async def get_public_key(self) -> str:
        """Made on first use. Raises CapabilityMissing without the extra."""
        if not has_push():
            raise CapabilityMissing(
                "Web Push is not part of this installation.",
                hint="Install the extra: pip install 'wsh-terminal[push]'.",
            )
        async with self._writing:
            if not self._key:
                self._key = await asyncio.to_thread(_make_key)
                await asyncio.to_thread(self._write)
        return await asyncio.to_thread(_public_of, self._key)

    async def subscribe(self, endpoint: str, p256dh: str, auth: str, name: str) -> PushSubscription:
        """On disk when this returns. The same browser again is the same subscription."""
        if len(endpoint) > _LONGEST_ENDPOINT:
            raise InvalidRequest("The endpoint is too long.")
        check_url(endpoint, loopback=self._loopback)
        if _size(p256dh) != 65 or _size(auth) != 16:
            raise InvalidRequest("The keys are not those of a push subscription.", hint="Send what the browser gave.")
        await self.get_public_key()
        id = hashlib.sha256(endpoint.encode()).hexdigest()[:16]
        if id not in self._subscriptions and len(self._subscriptions) >= self._most:
            raise LimitReached("browsers that take push", self._most, "notify.max_subscriptions")
        made = PushSubscription(id, endpoint, p256dh, auth, name, time.time())
        async with self._writing:
            before = dict(self._subscriptions)
            self._subscriptions[id] = made
            try:
                await asyncio.to_thread(self._write)
            except BaseException:  # a cancellation too: what is not on disk is not kept
                self._subscriptions = before
                raise
        return made

    async def unsubscribe(self, id: str) -> None:
        if id not in self._subscriptions:
            raise NotFound(f"No browser {id!r} takes push.", hint="List them; it may have unsubscribed by itself.")
        await self._drop(id)

    async def send(self, notice: Notice) -> None:
        """To every browser that has not got it in an earlier try. Fails if one may be reached later, or if all refused it for good.

        Browsers take it amiss to be woken for what they have shown already: some end the subscription.
        """
        told = {"id": notice.id, "kind": notice.kind, "text": _WORDS[notice.kind], "since": notice.since}
        headers = {"Urgency": "high" if notice.kind in WAITING else "normal", "Topic": _topic(notice.id)}
        settled = self._settled.pop(notice.id, set())
        every = [one for one in self.list_subscriptions() if one.id not in settled]
        if not every and not settled:
            raise Undelivered("no browser takes push", again=False)
        body = json.dumps(told).encode()
        problems = await asyncio.gather(*(self._send_to(one, body, headers) for one in every))
        later = next((one for one in problems if one is not None and one.again), None)
        if later is not None:
            done = {
                one.id for one, problem in zip(every, problems, strict=True) if problem is None or not problem.again
            }
            self._settled[notice.id] = settled | done
            while len(self._settled) > _MOST_SETTLED:
                del self._settled[next(iter(self._settled))]
            raise later
        if not settled and None not in problems and problems[0] is not None:
            raise problems[0]

    async def _send_to(
        self, subscription: PushSubscription, body: bytes, headers: dict[str, str]
    ) -> Undelivered | None:
        """Why this browser did not get it; None if it did."""
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._aside, self._encrypt_and_post, subscription, body, headers
            )
        except Undelivered as problem:
            if problem.gone:
                try:
                    await self._drop(subscription.id)
                except OSError as refused:
                    log.warning("a browser that takes no push any more could not be dropped: %s", refused)
                return Undelivered("the browser does not take push any more", again=False)
            # A push that came twice is shown once, so a doubtful one may be sent again.
            again = problem.again or "did not come" in str(problem)
            return Undelivered(str(problem), again=again, after_s=problem.after_s)
        except Exception:  # one browser that cannot be sent to must not hold up the others
            log.exception("a push could not be sent")
            return Undelivered("the server failed; its log says how", again=False)
        return None

    def _encrypt_and_post(self, subscription: PushSubscription, body: bytes, headers: dict[str, str]) -> None:
        from py_vapid import Vapid02
        from pywebpush import WebPusher

        parts = check_url(subscription.endpoint, loopback=self._loopback)
        keys = {"p256dh": subscription.p256dh, "auth": subscription.auth}
        sealed = WebPusher({"endpoint": subscription.endpoint, "keys": keys}).encode(body)["body"]
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "sub": self._contact, "exp": int(time.time()) + _TOKEN_S}
        signed = Vapid02.from_raw(self._key.encode()).sign(claims)
        fixed = {"Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream", "TTL": str(_TTL_S)}
        post(parts, {**fixed, **headers, **signed}, sealed, self._timeout_s)

    async def _drop(self, id: str) -> None:
        async with self._writing:
            self._subscriptions.pop(id, None)
            await asyncio.to_thread(self._write)

    def _write(self) -> None:
        ensure_private(self._path.parent)
        kept = {"key": self._key, "subscriptions": [asdict(one) for one in self._subscriptions.values()]}
        write_private(self._path, json.dumps(kept).encode())


def _topic(id: str) -> str:
    """A service that holds several pushes with one topic keeps the newest: 32 characters at most."""
    return hashlib.sha256(id.encode()).hexdigest()[:32]


def _size(text: str) -> int:
    try:
        return len(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError):
        return -1


def _make_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()


def _public_of(key: str) -> str:
    from cryptography.hazmat.primitives import serialization
    from py_vapid import Vapid02

    form = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    point = Vapid02.from_raw(key.encode()).public_key.public_bytes(*form)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode()
