"""Routes of the HTTP server itself: health, sign-in, documents."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

from wsh.http.auth import COOKIE_S, Authority
from wsh.http.error import AuthInvalid
from wsh.http.openapi import make_document
from wsh.http.route import Answer, Call, Query, Route, Table, dump_json
from wsh.wire.error import Refused
from wsh.wire.session import Health, Link, Ticket

if TYPE_CHECKING:
    from wsh.operation.context import Lifetime

DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@dataclass
class ServerFacts:
    """What the routes here say about the server."""

    url: str
    base_prefix: str
    server_id: str
    authority: Authority
    lifetime: Lifetime
    table: Table
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


def facts_of(call: Call) -> ServerFacts:
    facts = call.rooms.server
    assert isinstance(facts, ServerFacts)
    return facts


class LinkQuery(Query):
    code: str


async def get_health(call: Call) -> bytes:
    return b'{"status":"ok"}'


async def get_root(call: Call) -> Answer:
    facts = facts_of(call)
    return Answer(b"", 303, headers=(("location", f"{facts.base_prefix}/{facts.home}"),))


async def make_ticket(call: Call) -> Ticket:
    facts = facts_of(call)
    return Ticket(ticket=facts.authority.tickets.issue(call.caller))


async def make_link(call: Call) -> Link:
    facts = facts_of(call)
    return Link(url=facts.make_link())


async def open_link(call: Call) -> Answer:
    """Trade a one-use code for a cookie. A HEAD (a preview) does not use the code up."""
    facts = facts_of(call)
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


async def get_openapi_json(call: Call) -> bytes:
    facts = facts_of(call)
    return facts.document("json")


async def get_openapi_yaml(call: Call) -> Answer:
    facts = facts_of(call)
    return Answer(facts.document("yaml"), media_type="application/yaml")


def _static(name: str) -> bytes:
    return (resources.files("wsh.http") / "page" / name).read_bytes()


async def get_docs(call: Call) -> Answer:
    facts = facts_of(call)
    body = _static("docs.html").replace(b"{{prefix}}", facts.base_prefix.encode())
    return Answer(body, media_type="text/html; charset=utf-8", headers=(("content-security-policy", DOCS_POLICY),))


async def get_docs_script(call: Call) -> Answer:
    return Answer(_static("docs.js"), media_type="text/javascript; charset=utf-8")


async def get_docs_style(call: Call) -> Answer:
    return Answer(_static("docs.css"), media_type="text/css; charset=utf-8")


async def get_token(call: Call) -> Answer:
    """The owner's token, for `wsh token`; on the unix socket alone, where the kernel vouches for the user."""
    facts = facts_of(call)
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
)
