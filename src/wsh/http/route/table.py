"""The table of routes: one entry per method and path, from which dispatch, OpenAPI and the docs are made.

A handler gets a `HttpCall` whose path, query and body have been checked, and returns what goes on the wire: a model, a
JSON-ready value, bytes that are JSON already, None for 204, or an `HttpAnswer` of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from wsh.http.error import MethodNotAllowed, RouteNotFound
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidRequest

if TYPE_CHECKING:
    from wsh.http.route.server_route import ServerFacts
    from wsh.operation.context import Rooms
    from wsh.operation.operation import Operation

Given = TypeVar("Given", bound=BaseModel)
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "WEBSOCKET"]


class Query(BaseModel):
    """Parameters behind the question mark: text that is read as what the model says; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True)
class HttpAnswer:
    """An answer that is not plain JSON."""

    body: bytes = b""
    status: int = 200
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class HttpCall:
    """One request, as far as it could be checked without asking the rooms."""

    opened: Rooms | None
    server: ServerFacts
    caller: Caller
    path: Mapping[str, str]
    query: BaseModel | None
    body: BaseModel | bytes | None
    headers: Mapping[str, str]
    scope: Mapping[str, object]
    host: str | None = None
    """The machine that is meant, where the query says so."""

    @property
    def rooms(self) -> Rooms:
        assert self.opened is not None, "a route that is answered before the rooms are open needs none"
        return self.opened

    @property
    def session_name(self) -> str:
        return self.path["name"]

    def read_query(self, model: type[Given]) -> Given:
        """The query, as the route declares it."""
        assert isinstance(self.query, model)
        return self.query

    def read_body(self, model: type[Given]) -> Given:
        """The body, as the route declares it."""
        assert isinstance(self.body, model)
        return self.body


Handler: TypeAlias = Callable[..., Awaitable[object]]


@dataclass(frozen=True)
class Route:
    """One registration. `body` is a model, `bytes` for raw input, or None; `answer` is what a 2xx carries."""

    method: Method
    path: str
    handler: Handler
    summary: str
    group: str
    query: type[BaseModel] | None = None
    body: type[BaseModel] | type[bytes] | None = None
    answer: object = None
    status: int = 200
    errors: tuple[str, ...] = ()
    owner_only: bool = False
    unauthenticated: bool = False
    public: bool = False
    """The same for everybody who is signed in: a browser's cookie alone is enough to see it."""
    takes_ticket: bool = False
    """A download: `?ticket=` opens it, since a browser sends no header when it follows a link."""
    waits: bool = False
    """The handler may take long; it is cancelled when the client hangs up."""
    invalid: type[InvalidRequest] = InvalidRequest
    own_statuses: tuple[int, ...] = ()
    """Statuses whose body is the handler's own, not the one error shape."""
    media_type: str = "application/json"
    description: str = ""
    operation: Operation | None = None
    """What it calls, where it is one."""

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)

    @property
    def operation_id(self) -> str:
        words = [word.strip("{}") for word in re.split(r"[/.]", self.path) if word]
        return "_".join([self.method.lower(), *words]).replace("-", "_")


@dataclass
class _Node:
    literal: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    names: tuple[str, ...] = ()
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Table:
    """Routes as a tree of path segments; finds one in a handful of dictionary lookups."""

    def __init__(self, routes: Sequence[Route] = ()) -> None:
        self.routes: list[Route] = []
        self._root = _Node()
        for route in routes:
            self.add(route)

    def add(self, route: Route) -> None:
        node = self._root
        names: list[str] = []
        for segment in route.path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literal.setdefault(segment, _Node())
        assert route.method not in node.routes, f"{route.method} {route.path} is registered twice"
        node.routes[route.method] = (route, tuple(names))
        self.routes.append(route)

    def find(self, method: str, segments: Sequence[str]) -> tuple[Route, dict[str, str]]:
        """The route for a path split at its slashes. Raises RouteNotFound or MethodNotAllowed."""
        node = self._root
        values: list[str] = []
        for segment in segments:
            following = node.literal.get(segment)
            if following is None:
                if node.variable is None or not segment:
                    raise RouteNotFound
                values.append(segment)
                following = node.variable
            node = following
        if not node.routes:
            raise RouteNotFound
        found = node.routes.get("GET" if method == "HEAD" else method)
        if found is None:
            if method == "GET" and "WEBSOCKET" in node.routes:
                raise InvalidRequest("This path is a WebSocket.", hint="Connect with a WebSocket client.")
            allowed = [name for name in node.routes if name != "WEBSOCKET"]
            if not allowed or method == "WEBSOCKET":
                raise RouteNotFound
            raise MethodNotAllowed(sorted(allowed))
        route, names = found
        return route, dict(zip(names, values, strict=True))


def to_answer(value: object, status: int) -> HttpAnswer:
    """What a handler returned, as bytes."""
    if isinstance(value, HttpAnswer):
        return value
    if value is None:
        return HttpAnswer(b"", 204 if status == 200 else status)
    if isinstance(value, bytes):
        return HttpAnswer(value, status)
    return HttpAnswer(dump_json(value), status)


def dump_json(value: object) -> bytes:
    """JSON, whatever the text: a lone surrogate from a file name or a program becomes U+FFFD."""
    try:
        return to_json(value)
    except (UnicodeEncodeError, ValueError):
        return json.dumps(value, ensure_ascii=True, default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    raise TypeError(f"{type(value).__name__} has no JSON")
