"""Doors as a test uses them: each calls an operation in its own spelling, where it shows that operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol, cast
from urllib.parse import quote, urlencode

import jsonschema
from pydantic import TypeAdapter

from tests.support.http.talk import Talk
from tests.support.mcp.host import HttpHost
from tests.support.serving import RunningServer
from wsh.http.route.operation_route import ROUTES
from wsh.http.route.table import Route
from wsh.http.ws.methods import METHODS, Method
from wsh.operation.operation import Operation
from wsh.wire.model.base import AnyJson

Json = dict[str, Any]
Spelling = Callable[[Json], tuple[str, Json]]


class Refusal(Exception):
    """The door's answer was an error with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Door(Protocol):
    name: str

    def shows(self, operation: Operation) -> bool: ...

    def call(self, operation: Operation, session: str, params: Json) -> Any:
        """The result as far as the door publishes it, checked against what describes it; Refusal for an error."""
        ...


class HttpDoor:
    name = "HTTP"

    def __init__(self, server: RunningServer, token: str = "") -> None:
        self._server = server
        self._token = token
        self._routes: dict[str, Route] = {}
        for route in ROUTES:
            assert route.operation is not None
            self._routes.setdefault(route.operation.name, route)

    def shows(self, operation: Operation) -> bool:
        return operation.name in self._routes

    def call(self, operation: Operation, session: str, params: Json) -> Any:
        route = self._routes[operation.name]
        left = dict(params)
        path = route.path.replace("{name}", quote(session, safe=""))
        for name in route.parameters:
            if name != "name":
                path = path.replace(f"{{{name}}}", quote(str(left.pop(name)), safe=""))
        body: Any = None
        if route.query is not None and left:
            path += "?" + urlencode({k: str(v).lower() if isinstance(v, bool) else v for k, v in left.items()})
        elif route.body is bytes:
            body = left["data"].encode()
        elif route.body is AnyJson:
            (body,) = left.values()
        elif route.body is not None:
            body = left
        reply = self._server.request(route.method, path, body, token=self._token)
        if reply.status >= 400:
            raise Refusal(reply.code)
        assert reply.status == (204 if route.answer is None else route.status), (route.path, reply)
        if route.answer is None:
            return None
        if "json" not in reply.headers["content-type"]:
            assert reply.headers["content-type"].partition(";")[0] in route.media_type
            return reply.body
        return check(route.answer, reply.json)


class WebSocketDoor:
    """The server's own socket."""

    name = "WebSocket"

    def __init__(self, talk: Talk, *, one_session: bool = False) -> None:
        self._talk = talk
        self._one = one_session
        self._methods: dict[str, Method] = {}
        for method in METHODS.values():
            if method.operation is not None and method.name == method.operation.name:
                self._methods[method.name] = method
        if one_session:
            self.name = "WebSocket of a session"
            self._methods = {name: method for name, method in self._methods.items() if not method.server_only}

    def shows(self, operation: Operation) -> bool:
        return operation.name in self._methods

    def call(self, operation: Operation, session: str, params: Json) -> Any:
        method = self._methods[operation.name]
        more = {} if self._one or not operation.on_session else {"session": session}
        answer = self._talk.answer(self._talk.send(method.name, params, **more))
        if "error" in answer:
            raise Refusal(answer["error"]["code"])
        if operation.result is None:
            assert answer["result"] == {}
            return None
        return check(operation.result if method.shows is None else method.shows, answer["result"])


def _element(kind: str) -> dict[str, Spelling]:
    return {
        f"create_{kind}": lambda params: (f"wsh_{kind}", params),
        f"list_{kind}s": lambda params: (f"wsh_{kind}", {"list": True}),
        f"patch_{kind}": lambda params: (f"wsh_{kind}", params),
        f"delete_{kind}": lambda params: (f"wsh_remove_{kind}", params),
        f"clear_{kind}s": lambda params: (f"wsh_remove_{kind}", {}),
    }


SPELLINGS: dict[str, Spelling] = {
    "create_session": lambda params: ("wsh_create_session", params),
    "list_sessions": lambda params: ("wsh_list_sessions", params),
    "get_session": lambda params: ("wsh_list_sessions", params),
    "update_session": lambda params: ("wsh_manage_session", {"action": "rename", "new_name": params["name"]}),
    "kill_session": lambda params: ("wsh_manage_session", {"action": "kill"}),
    "detach_session": lambda params: ("wsh_manage_session", {"action": "detach"}),
    **_element("overlay"),
    **_element("panel"),
    "send_input": lambda params: ("wsh_send_input", {"input": params["data"]}),
    "run_command": lambda params: ("wsh_run_command", params),
    "get_screen": lambda params: ("wsh_get_screen", params),
    "get_scrollback": lambda params: ("wsh_get_scrollback", params),
    "await_state": lambda params: ("wsh_await_quiesce", params),
    "ask_keys": lambda params: ("wsh_input_mode", params),
    "get_screen_mode": lambda params: ("wsh_screen_mode", {}),
    "enter_alt_screen": lambda params: ("wsh_screen_mode", {"action": "enter_alt"}),
    "exit_alt_screen": lambda params: ("wsh_screen_mode", {"action": "exit_alt"}),
    "call_terminal": lambda params: ("memory_terminal_interactive", params["request"]),
    "call_workspace": lambda params: (params["tool"], params["arguments"]),
    "execute_command": lambda params: ("execute_command", params),
}
"""Which tool, with which arguments, is a call of each operation that MCP shows."""


class McpDoor:
    name = "MCP"

    def __init__(self, host: HttpHost) -> None:
        self._host = host
        self._tools = {tool["name"]: tool for tool in host.request("tools/list")["result"]["tools"]}

    def shows(self, operation: Operation) -> bool:
        return operation.name in SPELLINGS

    def call(self, operation: Operation, session: str, params: Json) -> Any:
        tool, arguments = SPELLINGS[operation.name](params)
        if operation.on_session:
            arguments = {"session": session, **arguments}
        answer = self._host.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        if answer["result"].get("isError"):
            raise Refusal(answer["result"]["structuredContent"]["code"])
        found = answer["result"]["structuredContent"]
        jsonschema.validate(found, self._tools[tool]["outputSchema"])
        return found


def check(described: object, found: Any) -> Any:
    """`found`, if it is what the description says."""
    if not isinstance(described, str):
        TypeAdapter(cast(Any, described)).validate_json(json.dumps(found))
    return found
