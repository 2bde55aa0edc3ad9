"""Routes of the HTTP server itself: health, sign-in, documents."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from wsh.http.auth import Authority
from wsh.http.error import STATUS
from wsh.http.route.openapi import make_document
from wsh.http.route.table import HttpAnswer, HttpCall, Query, Route, Table, dump_json
from wsh.wire.error import Refused
from wsh.wire.model.base import Model
from wsh.wire.model.session import Health, Link, PageSecret, Ticket
from wsh.wire.token_file import SIGN_IN_S

if TYPE_CHECKING:
    from wsh.operation.context import ServerLifetime

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
    lifetime: ServerLifetime
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
        code = self.authority.links.issue(True, "")
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


class KeyBody(Model):
    """The key that stands behind the `#` of the address to which a sign-in link leads."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


async def get_health(call: HttpCall) -> bytes:
    return b'{"status":"ok"}'


async def get_root(call: HttpCall) -> HttpAnswer:
    facts = call.server
    return HttpAnswer(b"", 303, headers=(("location", f"{facts.base_prefix}/{facts.home}"),))


async def make_ticket(call: HttpCall) -> Ticket:
    facts = call.server
    return Ticket(ticket=facts.authority.tickets.issue(call.caller, call.caller.account))


async def make_link(call: HttpCall) -> Link:
    facts = call.server
    return Link(url=facts.make_link())


async def open_link(call: HttpCall) -> HttpAnswer:
    """Trade a one-use code for a cookie, and for a key that the page trades for its secret.

    The key stands behind the `#`: it reaches the page and no server. A HEAD (a preview) does not use the code up.
    """
    facts = call.server
    home = f"{facts.base_prefix}/{facts.home}"
    if call.scope["method"] == "HEAD":
        return HttpAnswer(b"", 303, headers=(("location", home),))
    if facts.authority.links.redeem(call.read_query(LinkQuery).code) is None:
        return _open_used_link(call, home)
    value, key = facts.authority.sign_in()
    cookie = (
        f"{facts.authority.cookie_name}={value}; Path={facts.base_prefix or '/'}; "
        f"Max-Age={int(SIGN_IN_S)}; HttpOnly; SameSite=Strict" + ("; Secure" if facts.secure else "")
    )
    target = f"{home}#key={key}"
    if call.headers.get("sec-fetch-site") == "cross-site":
        # Followed on another site or in a file: browsers keep a strict cookie back through the redirects of such a visit. A page of
        # ours that goes on by itself ends the visit.
        body = f'<!doctype html><title>wsh</title><meta http-equiv="refresh" content="0;url={escape(target)}">'
        return HttpAnswer(body.encode(), 200, "text/html; charset=utf-8", (("set-cookie", cookie),))
    return HttpAnswer(b"", 303, headers=(("location", target), ("set-cookie", cookie)))


def _open_used_link(call: HttpCall, home: str) -> HttpAnswer:
    """To the page where the browser is signed in already; else words for a person, and an error for a program."""
    authority = call.server.authority
    cookie = authority.find_cookie(call.headers)
    if cookie is not None and authority.check.has_cookie(cookie):
        return HttpAnswer(b"", 303, headers=(("location", home),))
    error = authority.brake.note_failure("link")
    if "text/html" not in call.headers.get("accept", ""):
        raise error
    body = _static("used_link.html").replace(b"{{home}}", escape(home).encode())
    headers = (("content-security-policy", DOCS_POLICY), ("cache-control", "no-store"))
    return HttpAnswer(body, STATUS[error.code], "text/html; charset=utf-8", headers)


async def make_page_secret(call: HttpCall) -> PageSecret:
    return PageSecret(secret=call.server.authority.trade_key(call.read_body(KeyBody).key, call.headers))


async def get_openapi_json(call: HttpCall) -> bytes:
    facts = call.server
    return facts.document("json")


async def get_openapi_yaml(call: HttpCall) -> HttpAnswer:
    facts = call.server
    return HttpAnswer(facts.document("yaml"), media_type="application/yaml")


def _static(name: str) -> bytes:
    return (resources.files("wsh.http") / "page" / name).read_bytes()


async def get_docs(call: HttpCall) -> HttpAnswer:
    facts = call.server
    body = _static("docs.html").replace(b"{{prefix}}", facts.base_prefix.encode())
    return HttpAnswer(body, media_type="text/html; charset=utf-8", headers=(("content-security-policy", DOCS_POLICY),))


async def get_docs_script(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_static("docs.js"), media_type="text/javascript; charset=utf-8")


async def get_docs_style(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_static("docs.css"), media_type="text/css; charset=utf-8")


async def get_token(call: HttpCall) -> HttpAnswer:
    """A new token of the owner's; on the unix socket alone, where the kernel vouches for the user."""
    facts = call.server
    if call.caller.proof != "unix":
        raise Refused("Tokens are made on the unix socket alone.", hint="Run `wsh token` on the server's machine.")
    return HttpAnswer(dump_json({"token": facts.authority.tokens.lend_owner()}))


GROUP = "server"

ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", get_health, "Whether the server is up.", GROUP, answer=Health, unauthenticated=True),
    Route(
        "GET",
        "/",
        get_root,
        "To the page.",
        GROUP,
        answer="A redirect.",
        status=303,
        media_type="text/plain",
        public=True,
    ),
    Route(
        "GET", "/openapi.json", get_openapi_json, "This API as OpenAPI 3.1.", GROUP, answer="The document.", public=True
    ),
    Route(
        "GET",
        "/openapi.yaml",
        get_openapi_yaml,
        "This API as OpenAPI 3.1, in YAML.",
        GROUP,
        answer="The document.",
        media_type="application/yaml",
        public=True,
    ),
    Route("GET", "/docs", get_docs, "Try the API.", GROUP, answer="A page.", media_type="text/html", public=True),
    Route(
        "GET",
        "/docs/docs.js",
        get_docs_script,
        "Script of /docs.",
        GROUP,
        answer="Text.",
        media_type="text/javascript",
        public=True,
    ),
    Route(
        "GET",
        "/docs/docs.css",
        get_docs_style,
        "Style of /docs.",
        GROUP,
        answer="Text.",
        media_type="text/css",
        public=True,
    ),
    Route(
        "POST",
        "/auth/ws-ticket",
        make_ticket,
        "A ticket that opens one WebSocket or one download within 30 s.",
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
        answer="A redirect with a cookie, and with a key behind the `#`.",
        status=303,
        media_type="text/plain",
        unauthenticated=True,
        errors=("auth_invalid", "too_many_attempts"),
    ),
    Route(
        "POST",
        "/auth/page",
        make_page_secret,
        "Trade the key of a sign-in, with its cookie, for the secret that the page sends with every call.",
        GROUP,
        body=KeyBody,
        answer=PageSecret,
        unauthenticated=True,
        errors=("auth_invalid", "too_many_attempts"),
    ),
    Route(
        "GET",
        "/auth/token",
        get_token,
        "A new token of the owner's, for a day, on the unix socket.",
        GROUP,
        answer='{"token"}',
        owner_only=True,
    ),
)
