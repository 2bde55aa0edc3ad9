"""Tools, resources and prompts that the official conformance suite expects of a server under test.

`JUDGED` as the environment of a server installs them there; nothing here touches a terminal. Everything else falls through to the real handlers, so the
suite judges the real door.
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError

from wsh.mcp.resource.index import ResourceIndex
from wsh.mcp.sdk_compat import Context, WshServer
from wsh.wire.json.object import JsonObject

_HERE = Path(__file__).parent
JUDGED = {"PYTHONPATH": os.pathsep.join((str(_HERE / "judged"), str(_HERE.parents[2])))}
"""The environment of a server that the suite judges."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Any]]
TOOLS: dict[str, tuple[JsonObject, Tool]] = {}


def _tool(name: str, **properties: JsonObject) -> Callable[[Tool], Tool]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}

    def register(run: Tool) -> Tool:
        TOOLS[name] = (schema, run)
        return run

    return register


def _text(text: str, **more: Any) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], **more}


def _resource(uri: str, mime: str, text: str) -> JsonObject:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


def _fixed(name: str, result: JsonObject) -> None:
    async def run(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
        return result

    _tool(name)(run)


_IMAGE: JsonObject = {"type": "image", "data": PNG, "mimeType": "image/png"}
_fixed("test_simple_text", _text("This is a simple text response for testing."))
_fixed("test_image_content", {"content": [_IMAGE]})
_fixed("test_audio_content", {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})
_fixed(
    "test_embedded_resource",
    {"content": [_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]},
)
_fixed(
    "test_multiple_content_types",
    {
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            _IMAGE,
            _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]
    },
)
_fixed("test_error_handling", _text("This tool intentionally returns an error for testing", isError=True))


@_tool("test_tool_with_logging")
async def _with_logging(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    for number, line in enumerate(("Tool execution started", "Tool processing data", "Tool execution completed")):
        if number:
            await asyncio.sleep(0.05)
        await _log(ctx, line)
    return _text("Three lines were logged.")


@_tool("test_logging_tool")
async def _logging(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    await _log(ctx, "logged only if the request asked for it")
    return _text("done")


async def _log(ctx: Context, line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logging is deprecated, and the suite tests it
        await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)


@_tool("test_tool_with_progress")
async def _with_progress(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    token = (ctx.meta or {}).get("progress_token")
    for number in (0, 50, 100):
        if number:
            await asyncio.sleep(0.05)
        if token is not None:
            await ctx.session.send_progress_notification(
                token, number, total=100, related_request_id=str(ctx.request_id)
            )
    return _text("Progress was reported.")


# what legacy servers ask of their clients


def _need(ctx: Context, capability: str) -> None:
    if getattr(ctx.session.client_capabilities, capability, None) is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"The client did not declare {capability}.",
            {"requiredCapabilities": {capability: {}}},
        )


@_tool("test_sampling", prompt={"type": "string"})
async def _sampling(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    prompt = (params.arguments or {}).get("prompt", "")
    answer = await _ask(ctx, types.CreateMessageRequest, _sampling_params(prompt, 100), types.CreateMessageResult)
    content = answer["content"]
    return _text(f"LLM response: {content.get('text') if isinstance(content, dict) else content}")


async def _elicit(ctx: Context, message: str, properties: JsonObject, required: list[str]) -> JsonObject:
    schema = {"type": "object", "properties": properties, "required": required}
    return await _ask(ctx, types.ElicitRequest, {"message": message, "requestedSchema": schema}, types.ElicitResult)


async def _ask(ctx: Context, request: Any, params: JsonObject, result: Any) -> JsonObject:
    asked = request.model_validate({"method": request.model_fields["method"].default, "params": params})
    from mcp.shared.message import ServerMessageMetadata

    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = await ctx.session.send_request(asked, result, metadata=related)
    dumped: JsonObject = answer.model_dump(by_alias=True, exclude_none=True)
    return dumped


@_tool("test_elicitation", message={"type": "string"})
async def _elicitation(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = await _elicit(ctx, (params.arguments or {}).get("message", ""), properties, list(properties))
    return _text(f"User response: action: {answer['action']}, content: {json.dumps(answer.get('content'))}")


@_tool("test_elicitation_sep1034_defaults")
async def _defaults(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    properties: JsonObject = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = await _elicit(ctx, "Please check the defaults", properties, [])
    return _text(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}")


@_tool("test_elicitation_sep1330_enums")
async def _enums(ctx: Context, params: types.CallToolRequestParams) -> JsonObject:
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    properties: JsonObject = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answer = await _elicit(ctx, "Please choose", properties, [])
    return _text(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}")


# what modern servers ask by an unfinished result


def _sampling_params(text: str, tokens: int) -> JsonObject:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": tokens}


def _question(message: str, **properties: JsonObject) -> JsonObject:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


_NAME = _question("What is your name?", name={"type": "string"})
_ROOTS: JsonObject = {"method": "roots/list", "params": {}}


def _sample(text: str, tokens: int = 100) -> JsonObject:
    return {"method": "sampling/createMessage", "params": _sampling_params(text, tokens)}


def _unfinished(requests: JsonObject, state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult.model_validate(
        {"resultType": "input_required", "inputRequests": requests, "requestState": state}
    )


def _answers(ctx: Context) -> JsonObject:
    given = (ctx.params or {}).get("inputResponses")
    return given if isinstance(given, dict) else {}


def _accepted(answers: JsonObject, key: str, field: str) -> Any:
    answer = answers.get(key)
    if not isinstance(answer, dict) or answer.get("action") != "accept" or not isinstance(answer.get("content"), dict):
        return None
    return answer["content"].get(field)


@_tool("test_input_required_result_elicitation")
async def _ir_elicitation(ctx: Context, params: types.CallToolRequestParams) -> Any:
    name = _accepted(_answers(ctx), "user_name", "name")
    return _text(f"Hello, {name}!") if isinstance(name, str) else _unfinished({"user_name": _NAME})


@_tool("test_streaming_elicitation")
async def _ir_streaming(ctx: Context, params: types.CallToolRequestParams) -> Any:
    return await _ir_elicitation(ctx, params)


@_tool("test_input_required_result_sampling")
async def _ir_sampling(ctx: Context, params: types.CallToolRequestParams) -> Any:
    answer = _answers(ctx).get("capital_question")
    if not isinstance(answer, dict):
        return _unfinished({"capital_question": _sample("What is the capital of France?")})
    return _text(str(answer.get("content", {}).get("text", "")))


@_tool("test_input_required_result_list_roots")
async def _ir_roots(ctx: Context, params: types.CallToolRequestParams) -> Any:
    answer = _answers(ctx).get("client_roots")
    if not isinstance(answer, dict):
        return _unfinished({"client_roots": _ROOTS})
    return _text(f"Roots: {json.dumps(answer.get('roots'))}")


def _stateful(name: str) -> None:
    async def run(ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.request_state != "confirmed-by-us" or "confirm" not in _answers(ctx):
            return _unfinished({"confirm": _question("Please confirm", ok={"type": "boolean"})}, "confirmed-by-us")
        return _text("state-ok")

    _tool(name)(run)


_stateful("test_input_required_result_request_state")
_stateful("test_input_required_result_tampered_state")


@_tool("test_input_required_result_multiple_inputs")
async def _ir_multiple(ctx: Context, params: types.CallToolRequestParams) -> Any:
    wanted = {"user_name": _NAME, "greeting": _sample("Generate a greeting", 50), "client_roots": _ROOTS}
    missing = {key: request for key, request in wanted.items() if key not in _answers(ctx)}
    return _unfinished(wanted, "multiple") if missing else _text("All three were answered.")


@_tool("test_input_required_result_multi_round")
async def _ir_rounds(ctx: Context, params: types.CallToolRequestParams) -> Any:
    answers = _answers(ctx)
    if params.request_state == "round-2" and "step2" in answers:
        return _text("Both rounds were answered.")
    if params.request_state == "round-1" and "step1" in answers:
        return _unfinished(
            {"step2": _question("Step 2: What is your favorite color?", color={"type": "string"})}, "round-2"
        )
    return _unfinished({"step1": _question("Step 1: What is your name?", name={"type": "string"})}, "round-1")


@_tool("test_input_required_result_capabilities")
async def _ir_capabilities(ctx: Context, params: types.CallToolRequestParams) -> Any:
    known = ctx.session.client_capabilities
    wanted: JsonObject = {}
    if known is not None and known.sampling is not None:
        wanted["greeting"] = _sample("Generate a greeting", 50)
    if known is not None and known.elicitation is not None:
        wanted["user_name"] = _NAME
    return _unfinished(wanted) if wanted and not _answers(ctx) else _text("Nothing more is needed.")


@_tool("test_missing_capability")
async def _missing(ctx: Context, params: types.CallToolRequestParams) -> Any:
    _need(ctx, "sampling")
    return _text("The client can sample.")


# resources and prompts

_RESOURCES: tuple[JsonObject, ...] = (
    {"uri": "test://static-text", "name": "static-text", "description": "A text.", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static-binary", "description": "A picture.", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "To watch.", "mimeType": "text/plain"},
)
_TEMPLATE: JsonObject = {
    "uriTemplate": "test://template/{id}/data",
    "name": "template",
    "description": "A template.",
    "mimeType": "application/json",
}


def _read(uri: str) -> JsonObject | None:
    if uri in ("test://static-text", "test://watched-resource"):
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        id = uri.removeprefix("test://template/").removesuffix("/data")
        text = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"}, separators=(",", ":"))
        return {"uri": uri, "mimeType": "application/json", "text": text}
    return None


def _argument(name: str) -> JsonObject:
    return {"name": name, "description": f"The {name}.", "required": True}


_PROMPTS: dict[str, list[JsonObject]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": [_argument("arg1"), _argument("arg2")],
    "test_prompt_with_embedded_resource": [_argument("resourceUri")],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


def _message(content: JsonObject) -> JsonObject:
    return {"role": "user", "content": content}


def _said(text: str) -> JsonObject:
    return _message({"type": "text", "text": text})


def _get_prompt(ctx: Context, name: str, arguments: dict[str, str]) -> Any:
    if name == "test_simple_prompt":
        return {"messages": [_said("This is a simple prompt for testing.")]}
    if name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        return {"messages": [_said(text)]}
    if name == "test_prompt_with_embedded_resource":
        uri = arguments.get("resourceUri", "")
        resource = _resource(uri, "text/plain", "Embedded resource content for testing.")
        return {"messages": [_message(resource), _said("Please process the embedded resource above.")]}
    if name == "test_prompt_with_image":
        return {"messages": [_message(_IMAGE), _said("Please analyze the image above.")]}
    context = _accepted(_answers(ctx), "user_context", "context")
    if not isinstance(context, str):
        question = _question("What context should the prompt use?", context={"type": "string"})
        return _unfinished({"user_context": question})
    return {"messages": [_said(f"Use this context: {context}")]}


def _typed(model: Any, result: Any) -> Any:
    return model.model_validate(result) if isinstance(result, dict) else result


def install(server: WshServer, shelf: ResourceIndex) -> None:
    """Put the fixtures before the real handlers of `server`."""
    real = {method: server.get_request_handler(method) for method in _WRAPPED}

    async def fall_through(method: str, ctx: Context, params: Any) -> Any:
        entry = real[method]
        assert entry is not None
        return await entry.handler(ctx, params)

    async def publish(event: ServerEvent) -> JsonObject:
        await shelf.bus.publish(event)
        return _text("published")

    async def change_tools(ctx: Context, params: Any) -> JsonObject:
        return await publish(ToolsListChanged())

    async def change_prompts(ctx: Context, params: Any) -> JsonObject:
        return await publish(PromptsListChanged())

    tools = TOOLS | {
        "test_trigger_tool_change": ({"type": "object", "properties": {}}, change_tools),
        "test_trigger_prompt_change": ({"type": "object", "properties": {}}, change_prompts),
    }

    async def list_tools(ctx: Context, params: Any) -> Any:
        result = await fall_through("tools/list", ctx, params)
        result.tools.extend(
            types.Tool(name=name, description=f"Fixture {name}.", input_schema=schema)
            for name, (schema, _) in tools.items()
        )
        return result

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name in tools:
            return _typed(types.CallToolResult, await tools[params.name][1](ctx, params))
        return await fall_through("tools/call", ctx, params)

    async def list_resources(ctx: Context, params: Any) -> Any:
        result = await fall_through("resources/list", ctx, params)
        result.resources.extend(types.Resource.model_validate(entry) for entry in _RESOURCES)
        return result

    async def list_templates(ctx: Context, params: Any) -> Any:
        result = await fall_through("resources/templates/list", ctx, params)
        result.resource_templates.append(types.ResourceTemplate.model_validate(_TEMPLATE))
        return result

    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        content = _read(str(params.uri))
        if content is None:
            return await fall_through("resources/read", ctx, params)
        return _typed(types.ReadResourceResult, {"contents": [content]})

    async def subscribe(ctx: Context, params: Any) -> Any:
        if str(params.uri).startswith("test://"):
            return types.EmptyResult()
        return await fall_through("resources/subscribe", ctx, params)

    async def list_prompts(ctx: Context, params: Any) -> Any:
        result = await fall_through("prompts/list", ctx, params)
        result.prompts.extend(
            types.Prompt.model_validate({"name": name, "description": f"Fixture {name}.", "arguments": arguments})
            for name, arguments in _PROMPTS.items()
        )
        return result

    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> Any:
        if params.name in _PROMPTS:
            return _typed(types.GetPromptResult, _get_prompt(ctx, params.name, params.arguments or {}))
        return await fall_through("prompts/get", ctx, params)

    async def complete(ctx: Context, params: types.CompleteRequestParams) -> Any:
        if isinstance(params.ref, types.PromptReference) and params.ref.name in _PROMPTS:
            values = ["paris", "park", "party"]
            return types.CompleteResult(completion=types.Completion(values=values, total=3, has_more=False))
        return await fall_through("completion/complete", ctx, params)

    async def set_level(ctx: Context, params: Any) -> Any:
        return types.EmptyResult()

    wrapped: dict[str, tuple[Any, Any]] = {
        "tools/list": (types.PaginatedRequestParams, list_tools),
        "tools/call": (types.CallToolRequestParams, call_tool),
        "resources/list": (types.PaginatedRequestParams, list_resources),
        "resources/templates/list": (types.PaginatedRequestParams, list_templates),
        "resources/read": (types.ReadResourceRequestParams, read_resource),
        "resources/subscribe": (types.SubscribeRequestParams, subscribe),
        "prompts/list": (types.PaginatedRequestParams, list_prompts),
        "prompts/get": (types.GetPromptRequestParams, get_prompt),
        "completion/complete": (types.CompleteRequestParams, complete),
        "logging/setLevel": (types.SetLevelRequestParams, set_level),
    }
    for method, (params_type, handler) in wrapped.items():
        server.add_request_handler(method, params_type, handler)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="wsh"))


_WRAPPED = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
)
