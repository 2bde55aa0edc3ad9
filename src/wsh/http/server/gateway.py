"""The way in: every request and upgrade passes Host, Origin, token, role, size and shape here, in this order.

An ASGI application over a `Table` and some mounted ones. Handlers behind it see only checked values, and whatever they
raise leaves in the one error shape. What routes exist and what they do is not known here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from pydantic import BaseModel, ValidationError
from starlette.websockets import WebSocket, WebSocketState

from wsh.host.carrier import CALLER_HEADER, ForwardedCaller
from wsh.http import error as failure
from wsh.http.auth import PAGE_HEADER, Authority
from wsh.http.route.table import HttpAnswer, HttpCall, Route, Table, to_answer
from wsh.http.server.serve import ConnectionPeer
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidRequest, OwnerOnly, ShuttingDown, TooLarge

if TYPE_CHECKING:
    from wsh.http.route.server_route import ServerFacts
    from wsh.operation.context import Rooms

log = logging.getLogger("wsh.http")

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, object]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HARDENING: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_ONCE = frozenset(
    {"host", "origin", "authorization", "content-length", "content-type", "cookie", PAGE_HEADER, CALLER_HEADER}
)


@dataclass(frozen=True)
class Mount:
    """An application that answers for `prefix` and the paths `below` it, behind the same doors."""

    prefix: str
    app: ASGIApp
    content_policy: str = CONTENT_POLICY
    below: tuple[str, ...] = ()


@dataclass
class Access:
    """What the gateway compares requests with."""

    hosts: frozenset[str]
    """Exact values of the Host header, lower case."""
    origins: frozenset[str]
    """Exact values of the Origin header that are the server's own pages."""
    cors_origins: frozenset[str] = frozenset()
    base_prefix: str = ""
    max_body_bytes: int = 1024 * 1024
    body_idle_s: float = 10.0
    body_s: float = 60.0


@dataclass
class Gateway:
    table: Table
    server: ServerFacts
    authority: Authority
    access: Access
    rooms: Rooms | None = None
    """Set before `ready`; what is answered earlier needs none."""
    mounts: list[Mount] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the rooms can answer; until then requests wait, `/health` apart."""
    closing: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve_http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)

    # requests

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        extra: list[tuple[bytes, bytes]] = []
        started = False

        async def watched_send(message: MutableMapping[str, object]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            headers = read_headers(scope)
            extra = self._check_place(scope, headers)
            if scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
                await self._answer(send, scope, _preflight(), extra)
                return
            segments = self._split(scope)
            mount = self._find_mount(segments)
            if mount is not None:
                caller = self._identify(scope, headers)
                await self._wait_until_ready()
                inner = self._inner_scope(scope, mount, caller)
                await mount.app(inner, receive, _hardened(watched_send, mount.content_policy, extra))
                return
            answer = await self._call(scope, receive, headers, segments)
            await self._answer(watched_send, scope, answer, extra)
        except asyncio.CancelledError:
            if not started:
                await self._fail(send, scope, ShuttingDown(), extra)
            raise
        except _ClientGone:
            return
        except Exception as problem:
            if started:
                # Too late for a status: the client sees a broken stream, the log the reason.
                log.error("an answer broke off", exc_info=problem)
                raise
            await self._fail(send, scope, problem, extra)

    async def _call(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str], segments: list[str]
    ) -> HttpAnswer:
        query_string: bytes = scope["query_string"]
        known = self._find_known(scope["method"], segments)
        if known is not None and known.unauthenticated:
            caller = Caller("agent", "anybody", "token", account="public")
        else:
            ticket = None
            if known is not None and known.takes_ticket:
                query_string, ticket = _split_ticket(query_string)
            # Before the path is judged: a stranger learns nothing about what exists.
            caller = self._identify(scope, headers, ticket, public=known is not None and known.public)
            await self._wait_until_ready()
        route, path = self.table.find(scope["method"], segments)
        if route.owner_only and not caller.is_owner:
            raise OwnerOnly(caller.fault)
        query_string, host = _split_host(query_string) if route.operation is not None else (query_string, None)
        query = read_query(route.query, query_string)
        body = await self._read_body(route, receive, headers)
        call = HttpCall(self.rooms, self.server, caller, path, query, body, headers, scope, host)
        if route.waits:
            return to_answer(await _unless_gone(route.handler(call), receive), route.status)
        return to_answer(await route.handler(call), route.status)

    def _find_known(self, method: str, segments: list[str]) -> Route | None:
        try:
            return self.table.find(method, segments)[0]
        except (failure.RouteNotFound, failure.MethodNotAllowed, InvalidRequest):
            return None

    async def _read_body(self, route: Route, receive: Receive, headers: Mapping[str, str]) -> BaseModel | bytes | None:
        limit = self.access.max_body_bytes
        raw = await read_body(receive, headers, limit, self.access.body_idle_s, self.access.body_s)
        if route.body is bytes:
            return raw
        if route.body is None:
            if raw.strip() not in (b"", b"{}", b"null"):
                raise InvalidRequest("This request takes no body.", hint="Leave the body out.")
            return None
        media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if raw and media != "application/json" and not media.endswith("+json"):
            raise failure.UnsupportedMediaType
        assert issubclass(route.body, BaseModel)
        try:
            return route.body.model_validate_json(raw or b"{}")
        except ValidationError as problem:
            raise failure.from_validation(problem, route.invalid) from None

    # upgrades

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket: WebSocket | None = None
        try:
            headers = read_headers(scope)
            self._check_place(scope, headers)
            query_string, ticket = _split_ticket(scope["query_string"])
            caller = self._identify(scope, headers, ticket)
            await self._wait_until_ready()
            route, path = self.table.find("WEBSOCKET", self._split(scope))
            query_string, host = _split_host(query_string)
            if host is not None and "name" in path:
                path = {**path, "name": f"{host}/{path['name']}"}
            query = read_query(route.query, query_string)
            if self.closing:
                raise ShuttingDown
            call = HttpCall(self.rooms, self.server, caller, path, query, None, headers, scope)
            websocket = WebSocket(scope, receive, send)
            await route.handler(call, websocket)
        except Exception as problem:
            if websocket is not None and websocket.application_state is not WebSocketState.CONNECTING:
                log.error("a WebSocket broke off", exc_info=problem)
                await _close_broken(websocket)
                return
            status, answer_headers, body = failure.to_answer(problem)
            await send(
                {
                    "type": "websocket.http.response.start",
                    "status": status,
                    "headers": [*answer_headers, (b"content-length", str(len(body)).encode()), *_HARDENING],
                }
            )
            await send({"type": "websocket.http.response.body", "body": body})

    # checks

    def _check_place(self, scope: Scope, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """Host and Origin. Gives the headers that a page of a permitted foreign origin needs to read the answer."""
        host = headers.get("host")
        if host is None or not host.strip():
            raise InvalidRequest("The request has no Host header.", hint="HTTP/1.1 needs one.")
        if _peer(scope).door == "tcp" and host.lower() not in self.access.hosts:
            raise failure.HostNotAllowed
        origin = headers.get("origin")
        if origin is None or origin in self.access.origins:
            return []
        if origin not in self.access.cors_origins:
            raise failure.OriginNotAllowed
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", b"Mcp-Session-Id"),
            (b"vary", b"Origin"),
        ]

    def _identify(
        self, scope: Scope, headers: Mapping[str, str], ticket: str | None = None, public: bool = False
    ) -> Caller:
        unix = _find_unix_caller(_peer(scope))
        caller = self.authority.identify(headers, unix=unix, ticket=ticket, public=public)
        return caller if CALLER_HEADER not in headers else _find_forwarded(caller, headers[CALLER_HEADER])

    async def _wait_until_ready(self) -> None:
        if not self.ready.is_set():
            await self.ready.wait()
        if self.closing:
            raise ShuttingDown

    def _split(self, scope: Scope) -> list[str]:
        """Path segments, each decoded by itself, so that an encoded slash stays within its segment."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        prefix = self.access.base_prefix.encode()
        if prefix and (raw == prefix or raw.startswith(prefix + b"/")):
            raw = raw[len(prefix) :]
        return [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.strip(b"/").split(b"/")]

    def _find_mount(self, segments: list[str]) -> Mount | None:
        for mount in self.mounts:
            parts = mount.prefix.strip("/").split("/")
            below = "/".join(segments[len(parts) :])
            if segments[: len(parts)] == parts and (not below or below in mount.below):
                return mount
        return None

    def _inner_scope(self, scope: Scope, mount: Mount, caller: Caller) -> Scope:
        prefix = self.access.base_prefix
        path = str(scope["path"])
        if prefix and path.startswith(prefix + "/"):
            path = path[len(prefix) :]
        else:
            prefix = ""
        inner = dict(scope)
        inner["path"] = prefix + path
        inner["root_path"] = prefix + mount.prefix
        inner["state"] = {**scope.get("state", {}), "caller": caller}
        inner["headers"] = [(name, value.strip()) for name, value in scope["headers"]]
        return inner

    # answers

    async def _answer(self, send: Send, scope: Scope, answer: HttpAnswer, extra: list[tuple[bytes, bytes]]) -> None:
        given = {name.lower() for name, _ in answer.headers}
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
        if answer.status not in (204, 304):
            if answer.body or answer.status != 303:
                headers.append((b"content-type", answer.media_type.encode()))
            headers.append((b"content-length", str(len(answer.body)).encode()))
        if "cache-control" not in given:
            headers.append((b"cache-control", b"no-store"))
        if "content-security-policy" not in given:
            headers.append((b"content-security-policy", CONTENT_POLICY.encode()))
        headers += _HARDENING
        headers += extra
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _fail(self, send: Send, scope: Scope, problem: BaseException, extra: list[tuple[bytes, bytes]]) -> None:
        status, headers, body = failure.to_answer(problem)
        if isinstance(problem, failure.AuthRequired) and _wants_page(scope):
            headers = [(b"content-type", b"text/html; charset=utf-8"), *headers[1:]]
            body = _SIGN_IN
        if isinstance(problem, TooLarge):
            headers.append((b"connection", b"close"))
        headers += [
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", CONTENT_POLICY.encode()),
            *_HARDENING,
            *extra,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _close_broken(websocket: WebSocket) -> None:
    try:
        await websocket.close(1011, "internal error")
    except (RuntimeError, OSError):
        pass


_SPILL_BYTES = 64 << 20
_SPILL_S = 5.0


class _ClientGone(Exception):
    """The client hung up; nobody waits for an answer."""


_SIGN_IN = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>wsh: sign in</title>"
    b"<h1>Sign in to wsh</h1><p>This page needs a link that works once. Make one in a terminal:</p>"
    b"<pre>wsh link</pre><p>and open it in this browser.</p></html>"
)


def _preflight() -> HttpAnswer:
    allowed = (
        ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE"),
        ("access-control-allow-headers", "Authorization, Content-Type, Mcp-Session-Id, Mcp-Protocol-Version"),
        ("access-control-max-age", "600"),
    )
    return HttpAnswer(b"", 204, headers=allowed)


def _wants_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _peer(scope: Scope) -> ConnectionPeer:
    peer = scope.get("state", {}).get("peer")
    assert isinstance(peer, ConnectionPeer), "served without a listener of ours"
    return peer


def _split_ticket(query_string: bytes) -> tuple[bytes, str | None]:
    """The parameters without the ticket, and the ticket."""
    return _split_parameter(query_string, "ticket")


def _split_host(query_string: bytes) -> tuple[bytes, str | None]:
    """The parameters without the host, and the host: every operation can be made at another machine."""
    return _split_parameter(query_string, "host")


def _split_parameter(query_string: bytes, name: str) -> tuple[bytes, str | None]:
    parts = query_string.split(b"&") if query_string else []
    found = [part for part in parts if part.partition(b"=")[0] == name.encode()]
    if len(found) > 1:
        raise InvalidRequest(f"The parameter {name!r} is given twice.", hint="Give it once.")
    rest = b"&".join(part for part in parts if part not in found)
    return rest, unquote_to_bytes(found[0].partition(b"=")[2]).decode("latin-1") if found else None


def _find_unix_caller(peer: ConnectionPeer) -> Caller | None:
    """Who a connection to the unix socket is, by the user and the descent of its process."""
    if peer.door != "unix":
        return None
    if peer.fault is None:
        return Caller("owner", "owner", "unix", peer.pid, account="unix:owner")
    # A program that wsh itself started is not the person, though it has the person's user id.
    return Caller("agent", "inside", "unix", peer.pid, peer.fault, account="unix:inside")


def _find_forwarded(proven: Caller, header: str) -> Caller:
    """For whom another server connects. Only the owner's connections may say so."""
    if not proven.is_owner:
        raise OwnerOnly(proven.fault)
    try:
        said = json.loads(unquote_to_bytes(header))
    except ValueError:
        raise InvalidRequest(f"The header {CALLER_HEADER} is not JSON.") from None
    return ForwardedCaller.from_wire(said).to_caller(proven)


def read_headers(scope: Scope) -> dict[str, str]:
    """Lower-case names, trimmed values. A header that decides something may come once only."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1").strip(" \t")
        if name not in found:
            found[name] = value
        elif name in _ONCE:
            raise InvalidRequest(f"The header {name} is given twice.", hint="Send it once.")
        else:
            found[name] += f", {value}"
    return found


def read_query(model: type[BaseModel] | None, raw: bytes) -> BaseModel | None:
    if not raw and model is None:
        return None
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=64, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise InvalidRequest("The parameters cannot be read.", hint="Percent-encode them as UTF-8.") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidRequest(f"The parameter {name[:80]!r} is given twice.", hint="Give it once.")
        values[name] = value
    if model is None:
        if values:
            raise InvalidRequest("This request takes no parameters.", hint="Leave them out.")
        return None
    try:
        return model.model_validate_strings(values, strict=False)
    except ValidationError as problem:
        raise failure.from_validation(problem) from None


async def read_body(
    receive: Receive, headers: Mapping[str, str], limit: int, idle_s: float = 10.0, total_s: float = 60.0
) -> bytes:
    """The whole body, if it is small enough and arrives soon enough."""
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b""
    announced = headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limit:
        if headers.get("expect", "").lower() != "100-continue":  # that client asks first, and has sent nothing yet
            await _spill(receive, int(announced))
        raise TooLarge("The body", limit, "server.max_body_bytes")
    message = await _receive_within(receive, idle_s)
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > limit:
            raise TooLarge("The body", limit, "server.max_body_bytes")
        return body
    parts = [body]
    size = len(body)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + total_s
    while message.get("more_body"):
        message = await _receive_within(receive, min(idle_s, deadline - loop.time()))
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            if message.get("more_body"):
                await _spill(receive, _SPILL_BYTES)
            raise TooLarge("The body", limit, "server.max_body_bytes")
        parts.append(part)
    return b"".join(parts)


async def _spill(receive: Receive, announced: int) -> None:
    """Take in what the client still sends of a body that is refused, within reason.

    Most clients send all before they read. Closing on them resets the connection, and the answer that says why is lost.
    """
    if announced > _SPILL_BYTES:
        return
    left = _SPILL_BYTES
    try:
        async with asyncio.timeout(_SPILL_S):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        pass


async def _receive_within(receive: Receive, seconds: float) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(max(seconds, 0.001)):
            message = await receive()
    except TimeoutError:
        raise failure.RequestTimeout from None
    if message["type"] == "http.disconnect":
        raise _ClientGone
    return message


async def _unless_gone(work: Awaitable[object], receive: Receive) -> object:
    """The result of `work`; cancelled as soon as the client hangs up."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_wait_until_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise _ClientGone
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _hardened(send: Send, content_policy: str, extra: list[tuple[bytes, bytes]]) -> Send:
    async def hardened(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            more = [*_HARDENING, (b"content-security-policy", content_policy.encode()), *extra]
            message = {**message, "headers": [*message.get("headers", []), *(h for h in more if h[0] not in present)]}
        await send(message)

    return hardened
