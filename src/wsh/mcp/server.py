"""The MCP server object: one for all transports and both protocol eras, made of what the rooms offer.

Handlers translate. `call` runs tools; what is read comes from `resource`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import ListenHandler
from starlette.requests import Request

from wsh.mcp import error
from wsh.mcp.call import CallRunner
from wsh.mcp.caller import ConnectionSurroundings, McpClient
from wsh.mcp.quick_call import REVISIONS, CallLink, QuickCalls
from wsh.mcp.registry import Registry, Tool, to_json
from wsh.mcp.resource.index import ResourceIndex
from wsh.mcp.resource.prompt import PromptIndex
from wsh.mcp.sdk_compat import (
    CancelParams,
    Context,
    WshServer,
    call_at_end,
    get_connection,
    guard,
    hold_structured,
    make_version_stamp,
    put_structured,
    send_progress,
    spell_problem,
)
from wsh.mcp.tool.lean_text import spell_failure
from wsh.wire.caller import Caller
from wsh.wire.json import handshake
from wsh.wire.json.object import JsonObject
from wsh.wire.surrogate import find_unsound, mend_all
from wsh.wire.tool import FieldProblem, ToolOutcome
from wsh.wire.version import VERSION

log = logging.getLogger(__name__)

CALLER_KEY = "wsh.caller"
MODERN_VERSION = "2026-07-28"


class StdioConnection(CallLink, Protocol):
    """A stdio connection, as messages that came by it carry it."""

    quick_calls: QuickCalls | None

    @property
    def surroundings(self) -> ConnectionSurroundings: ...

    @property
    def caller(self) -> Caller: ...


@dataclass
class ConnectedClient:
    """A connected client, as the list of clients shows it. `client` is what it calls itself."""

    caller: Caller
    kind: Literal["mcp-stdio", "mcp-http"]
    since: float = field(default_factory=time.time)
    client: str = ""


@dataclass
class McpDoor:
    """What the handlers share."""

    registry: Registry
    calls: CallRunner
    home: ConnectionSurroundings
    resources: ResourceIndex
    prompts: PromptIndex
    end_listeners: list[Callable[[str], None]] = field(default_factory=list)
    """Told the owner when a connection ends (legacy HTTP session or stdio): leases of its end with it."""
    clients: dict[str, ConnectedClient] = field(default_factory=dict)
    """Connections under way, by owner. Modern HTTP has none: each of its requests stands alone."""
    quick_calls: bool = True
    """Whether short calls over stdio may skip the SDK's own dispatch."""

    def list_clients(self) -> list[dict[str, object]]:
        return [
            {
                "session": None,
                "role": connected.caller.role,
                "name": connected.caller.id,
                "manner": "mcp",
                "kind": connected.kind,
                "client": connected.client or None,
                "since": connected.since,
            }
            for connected in self.clients.values()
        ]

    def find_client(self, ctx: Context) -> McpClient:
        params = ctx.session.client_params
        client = params.client_info.name[:128] if params is not None else ""
        if not isinstance(ctx.request, Request):
            link: StdioConnection = cast(StdioConnection, ctx.request)
            there = link.surroundings
            owner = f"stdio:{there.id}"
            return self._make_client(link.caller, owner, client, there)
        caller: Caller = ctx.request.scope[CALLER_KEY]
        session = get_connection(ctx).session_id
        modern = ctx.protocol_version == MODERN_VERSION
        owner = f"token:{caller.id}" if modern or session is None else f"mcp:{session}"
        if not modern and session is not None and owner not in self.clients:
            # With the first request that makes something: not every client says that its handshake is over.
            self.clients[owner] = ConnectedClient(caller, "mcp-http")
            call_at_end(ctx, lambda: self.tell_end(owner))
        return self._make_client(caller, owner, client, self.home, exclusive=not modern)

    def _make_client(
        self, caller: Caller, owner: str, client: str, there: ConnectionSurroundings, *, exclusive: bool = True
    ) -> McpClient:
        self._name_client(owner, client)
        caller = replace(caller, connection=owner, client=client, for_model=True, cwd=there.cwd, environ=there.environ)
        return McpClient(caller, there.toolsets, exclusive)

    def _name_client(self, owner: str, client: str) -> None:
        connected = self.clients.get(owner)
        if connected is not None and client:
            connected.client = client

    def tell_end(self, owner: str) -> None:
        self.clients.pop(owner, None)
        for listener in self.end_listeners:
            try:
                listener(owner)
            except Exception:
                log.exception("a listener to the end of a connection failed")


def to_fields(outcome: ToolOutcome) -> tuple[str, dict[str, object] | None]:
    """The text and the structured content of a result."""
    structured = outcome.structured
    if structured is None:
        return str(mend_all(outcome.text or "")), None
    text = outcome.text if outcome.text is not None else to_json(structured)
    if "\\ud" in text and find_unsound(structured) is not None:  # a file's name that is not UTF-8; the wire is
        structured = mend_all(structured)
        text = to_json(structured if outcome.text is None else mend_all(json.loads(text)))
    return text, dict(structured) if hasattr(structured, "keys") else {"items": list(structured)}


def to_result(outcome: ToolOutcome) -> types.CallToolResult:
    text, content = to_fields(outcome)
    texts: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    if content is None:
        return types.CallToolResult(content=texts, is_error=outcome.is_error)
    return types.CallToolResult(content=texts, structured_content=hold_structured(content), is_error=outcome.is_error)


def spell_result(tool: Tool, outcome: ToolOutcome) -> JsonObject:
    """A result as the SDK spells it for the legacy revisions with structured content."""
    text, content = to_fields(spell_failure(outcome) if tool.spec.family == "lean" else outcome)
    result: JsonObject = {"content": [{"type": "text", "text": text}], "isError": outcome.is_error}
    if content is not None:
        result["structuredContent"] = content
    return result


def refuse_cursor(ctx: Context, params: types.PaginatedRequestParams | None) -> None:
    """Our lists have one page, so we gave no cursor."""
    if params is not None and params.cursor is not None:
        hint = "Leave it out: a list comes whole."
        raise error.refuse_params(ctx.method, [FieldProblem("cursor", "is none that this server gave", hint)])


def build_server(door: McpDoor) -> WshServer:
    registry, calls = door.registry, door.calls

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        refuse_cursor(ctx, params)
        client = door.find_client(ctx)
        tools = registry.list_tools(client.toolsets, client.caller.environ)
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool.definition) for tool in tools])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = door.find_client(ctx)
        tool = registry.find_tool(params.name, client.toolsets)
        if tool is None:
            raise error.unknown_tool(params.name, registry.find_near(params.name, client.toolsets))
        meta: dict[str, object] = dict(ctx.meta or {})
        raw = (ctx.params or {}).get("_meta")
        if isinstance(raw, dict):
            meta |= raw

        async def emit(fields: dict[str, object]) -> None:
            await send_progress(ctx, fields)

        arguments = params.arguments or {}
        try:
            outcome = await calls.serve(tool, arguments, client, ctx.request_id, meta, emit)
            return to_result(spell_failure(outcome) if tool.spec.family == "lean" else outcome)
        finally:
            # Before the answer: many clients close when they have it, and choke on what comes after.
            await door.resources.tell_caller(ctx)

    async def list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        refuse_cursor(ctx, params)
        # The guides speak of the terminal tools.
        has_tools = "terminal" in door.find_client(ctx).toolsets
        return types.ListPromptsResult(prompts=door.prompts.list_prompts() if has_tools else [])

    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return door.prompts.get_prompt(params.name, params.arguments)

    async def list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        refuse_cursor(ctx, params)
        return types.ListResourcesResult(resources=door.resources.list_resources())

    async def list_templates(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        refuse_cursor(ctx, params)
        return types.ListResourceTemplatesResult(resource_templates=door.resources.list_templates())

    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = await door.resources.read(str(params.uri))
        content = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        door.resources.subscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        door.resources.unsubscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        found: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference) and params.argument.name == "name":
            found = door.resources.complete(str(params.ref.uri), params.argument.value)
        shown = types.Completion(values=found[:100], total=len(found), has_more=len(found) > 100)
        return types.CompleteResult(completion=shown)

    async def cancel(ctx: Context, params: CancelParams) -> None:
        calls.cancel(door.find_client(ctx).caller.id, params.id)

    async def cancel_by_request(ctx: Context, params: CancelParams) -> types.EmptyResult:
        """Some clients give every message an id; theirs is answered, and the call itself as always."""
        calls.cancel(door.find_client(ctx).caller.id, params.id)
        return types.EmptyResult()

    async def initialized(ctx: Context, params: types.NotificationParams) -> None:
        if ctx.protocol_version != MODERN_VERSION:
            door.resources.greet(ctx)
            client = door.find_client(ctx)
            if not isinstance(ctx.request, Request) and ctx.protocol_version in REVISIONS and door.quick_calls:
                open_quick_calls(ctx, cast(StdioConnection, ctx.request), client)

    def open_quick_calls(ctx: Context, link: StdioConnection, client: McpClient) -> None:
        async def tell_caller() -> None:
            await door.resources.tell_caller(ctx)

        link.quick_calls = QuickCalls(link, registry, calls, client, spell_result, spell_problem, tell_caller)

    async def instruct(ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: instructions that speak of the tools which this client has."""
        result = await call_next(ctx)
        if isinstance(result, dict) and "instructions" in result:
            instructions = handshake.find_instructions(door.find_client(ctx).toolsets)
            if instructions is None:
                del result["instructions"]
            else:
                result["instructions"] = instructions
        return result

    server = WshServer(
        handshake.NAME,
        version=VERSION,
        title=handshake.TITLE,
        description=handshake.DESCRIPTION,
        instructions=handshake.INSTRUCTIONS,
        get_tool_input_schema=lambda name: t.spec.input_schema if (t := registry.find_tool(name)) else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(door.resources.bus),
    )
    server.add_notification_handler("$/cancelRequest", CancelParams, cancel)
    server.add_request_handler("$/cancelRequest", CancelParams, cancel_by_request)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
    # Instead of the SDK's default list, which carries OpenTelemetry that nothing here uses.
    server.middleware[:] = [guard, make_version_stamp(registry), instruct, put_structured]
    return server
