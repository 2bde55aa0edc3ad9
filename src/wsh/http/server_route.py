"""Routes about the server itself: health, sign-in, documents, persistence."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from wsh.http.auth import COOKIE_S, Authority
from wsh.http.error import AuthInvalid
from wsh.http.openapi import make_document
from wsh.http.route import Answer, Call, Query, Route, Table, dump_json
from wsh.wire.error import Refused
from wsh.wire.session import Health, Link, Persist, ServerInfo, Ticket
from wsh.wire.version import VERSION

DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Lifetime(Protocol):
    """What decides how long the server lives."""

    persistent: bool

    def set_persistent(self, persistent: bool) -> None: ...

    def stop(self, *, keep_sessions: bool) -> None: ...


@dataclass
class ServerFacts:
    """What the routes here say about the server."""

    url: str
    base_prefix: str
    server_id: str
    authority: Authority
    lifetime: Lifetime
    table: Table
    policy_file: Path
    list_damage: Callable[[], list[str]] = list
    """What the sessions' room has to warn of, once it is open."""
    secure: bool = False
    home: str = "ui/"
    """Where a signed-in browser is sent to, below the base prefix."""
    hostname: str = field(default_factory=socket.gethostname)
    _documents: dict[str, bytes] = field(default_factory=dict)

    def make_link(self) -> str:
        """A link that signs one browser in, once. Only for the owner's eyes."""
        from wsh.wire.caller import Caller

        code = self.authority.links.issue(Caller("owner", "owner", "cookie"))
        return f"{self.url}{self.base_prefix}/auth/open?code={code}"

    def document(self, kind: str) -> bytes:
        if kind not in self._documents:
            document = make_document(self.table.routes, self.base_prefix or "/")
            if kind == "json":
                self._documents[kind] = dump_json(document)
            else:
                import yaml

                self._documents[kind] = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
        return self._documents[kind]


class LinkQuery(Query):
    code: str


async def get_health(call: Call[Any]) -> bytes:
    return b'{"status":"ok"}'


async def get_root(call: Call[Any]) -> Answer:
    facts: ServerFacts = call.rooms.server
    return Answer(b"", 303, headers=(("location", f"{facts.base_prefix}/{facts.home}"),))


async def make_ticket(call: Call[Any]) -> Ticket:
    facts: ServerFacts = call.rooms.server
    return Ticket(ticket=facts.authority.tickets.issue(call.caller))


async def make_link(call: Call[Any]) -> Link:
    facts: ServerFacts = call.rooms.server
    return Link(url=facts.make_link())


async def open_link(call: Call[Any]) -> Answer:
    """Trade a one-use code for a cookie. A HEAD (a preview) does not use the code up."""
    facts: ServerFacts = call.rooms.server
    home = f"{facts.base_prefix}/{facts.home}"
    if call.scope["method"] == "HEAD":
        return Answer(b"", 303, headers=(("location", home),))
    if facts.authority.links.redeem(call.query.code) is None:
        problem = facts.authority.brake.note_failure("link")
        raise problem if not isinstance(problem, AuthInvalid) else AuthInvalid("link")
    cookie = (
        f"{facts.authority.cookie_name}={facts.authority.make_cookie()}; Path={facts.base_prefix or '/'}; "
        f"Max-Age={COOKIE_S}; HttpOnly; SameSite=Strict" + ("; Secure" if facts.secure else "")
    )
    return Answer(b"", 303, headers=(("location", home), ("set-cookie", cookie)))


async def get_openapi_json(call: Call[Any]) -> bytes:
    facts: ServerFacts = call.rooms.server
    return facts.document("json")


async def get_openapi_yaml(call: Call[Any]) -> Answer:
    facts: ServerFacts = call.rooms.server
    return Answer(facts.document("yaml"), media_type="application/yaml")


def _static(name: str) -> bytes:
    return (resources.files("wsh.http") / "page" / name).read_bytes()


async def get_docs(call: Call[Any]) -> Answer:
    facts: ServerFacts = call.rooms.server
    body = _static("docs.html").replace(b"{{prefix}}", facts.base_prefix.encode())
    return Answer(body, media_type="text/html; charset=utf-8", headers=(("content-security-policy", DOCS_POLICY),))


async def get_docs_script(call: Call[Any]) -> Answer:
    return Answer(_static("docs.js"), media_type="text/javascript; charset=utf-8")


async def get_docs_style(call: Call[Any]) -> Answer:
    return Answer(_static("docs.css"), media_type="text/css; charset=utf-8")


async def get_info(call: Call[Any]) -> ServerInfo:
    facts: ServerFacts = call.rooms.server
    warnings = await asyncio.to_thread(_list_warnings, facts.policy_file)
    return ServerInfo(
        hostname=facts.hostname,
        version=VERSION,
        server_id=facts.server_id,
        warnings=[*warnings, *facts.list_damage()],
    )


def _list_warnings(policy_file: Path) -> list[str]:
    """What the owner should know at once. Reads a file and, the first time, imports a room: not on the loop."""
    from wsh.policy.store import PolicyStore

    warning = PolicyStore(policy_file).warning
    return [] if warning is None else [warning]


async def get_persist(call: Call[Any]) -> Persist:
    facts: ServerFacts = call.rooms.server
    return Persist(persistent=facts.lifetime.persistent)


async def set_persist(call: Call[Any]) -> Persist:
    facts: ServerFacts = call.rooms.server
    facts.lifetime.set_persistent(call.body.persistent)
    return Persist(persistent=facts.lifetime.persistent)


class StopQuery(Query):
    keep: bool = False


async def stop_server(call: Call[Any]) -> Answer:
    """End the server after this answer; with `keep`, the sessions stay for the next one."""
    facts: ServerFacts = call.rooms.server
    facts.lifetime.stop(keep_sessions=call.query.keep)
    return Answer(dump_json({"stopping": True, "pid": os.getpid()}), 202)


async def get_token(call: Call[Any]) -> Answer:
    """The owner's token, for `wsh token`; on the unix socket alone, where the kernel vouches for the user."""
    facts: ServerFacts = call.rooms.server
    if call.caller.proof != "unix":
        raise Refused("The token is told on the unix socket alone.", hint="Run `wsh token` on the server's machine.")
    return Answer(dump_json({"token": facts.authority.tokens.owner}))


GROUP = "server"

ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", get_health, "Whether the server is up.", GROUP, answer=Health, unauthenticated=True),
    Route("GET", "/", get_root, "To the page.", GROUP, answer="A redirect.", status=303, media_type="text/plain"),
    Route("GET", "/openapi.json", get_openapi_json, "This API as OpenAPI 3.1.", GROUP, answer="The document."),
    Route(
        "GET",
        "/openapi.yaml",
        get_openapi_yaml,
        "This API as OpenAPI 3.1, in YAML.",
        GROUP,
        answer="The document.",
        media_type="application/yaml",
    ),
    Route("GET", "/docs", get_docs, "Try the API.", GROUP, answer="A page.", media_type="text/html"),
    Route(
        "GET", "/docs/docs.js", get_docs_script, "Script of /docs.", GROUP, answer="Text.", media_type="text/javascript"
    ),
    Route("GET", "/docs/docs.css", get_docs_style, "Style of /docs.", GROUP, answer="Text.", media_type="text/css"),
    Route(
        "POST",
        "/auth/ws-ticket",
        make_ticket,
        "A ticket that opens one WebSocket within 30 s.",
        GROUP,
        answer=Ticket,
        errors=("resource_limit_reached",),
    ),
    Route(
        "POST",
        "/auth/link",
        make_link,
        "A link that signs one browser in.",
        GROUP,
        answer=Link,
        status=201,
        owner_only=True,
        errors=("resource_limit_reached",),
    ),
    Route(
        "GET",
        "/auth/open",
        open_link,
        "Use a sign-in link.",
        GROUP,
        query=LinkQuery,
        answer="A redirect with a cookie.",
        status=303,
        media_type="text/plain",
        unauthenticated=True,
        errors=("auth_invalid", "too_many_attempts"),
    ),
    Route(
        "GET",
        "/auth/token",
        get_token,
        "The owner's token, on the unix socket.",
        GROUP,
        answer='{"token"}',
        owner_only=True,
    ),
    Route("GET", "/server/info", get_info, "Which server this is.", GROUP, answer=ServerInfo),
    Route("GET", "/server/persist", get_persist, "Whether it stays without clients.", GROUP, answer=Persist),
    Route(
        "PUT",
        "/server/persist",
        set_persist,
        "Make it stay, or not.",
        GROUP,
        body=Persist,
        answer=Persist,
        owner_only=True,
    ),
    Route(
        "POST",
        "/server/stop",
        stop_server,
        "End the server, and the sessions unless `keep`.",
        GROUP,
        query=StopQuery,
        answer="What it is about to do.",
        status=202,
        owner_only=True,
    ),
)
