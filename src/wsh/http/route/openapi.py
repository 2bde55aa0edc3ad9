"""OpenAPI 3.1 from the table of routes and the models of the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from wsh.http.error import STATUS
from wsh.http.route.table import Route
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import ErrorAnswer
from wsh.wire.version import VERSION

_PREFIX = "#/components/schemas/{model}"
_ALWAYS = ("invalid_request", "method_not_allowed", "host_not_allowed", "origin_not_allowed", "internal_error")
_BEHIND_TOKEN = ("auth_required", "auth_invalid", "too_many_attempts", "shutting_down")
_WITH_BODY = ("too_large", "request_timeout")


def make_document(routes: Iterable[Route], server_url: str = "/") -> JsonObject:
    """The whole document. WebSockets are described in words, since OpenAPI has none for them."""
    listed = list(routes)
    schemas = _schemas(listed)
    paths: dict[str, JsonObject] = {}
    sockets = []
    for route in listed:
        if route.method == "WEBSOCKET":
            sockets.append(f"- `{route.path}`: {route.summary}")
            continue
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wsh",
            "version": VERSION,
            "description": "Terminals that agents and people share.\n\nWebSockets:\n\n" + "\n".join(sockets),
        },
        "servers": [{"url": server_url}],
        "security": [{"bearer": []}, {"cookie": [], "page": []}],
        "tags": [{"name": name} for name in dict.fromkeys(route.group for route in listed)],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "wsh"},
                "page": {"type": "apiKey", "in": "header", "name": "Wsh-Page"},
            },
        },
    }


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _schemas(routes: list[Route]) -> JsonObject:
    wanted: dict[tuple[type[BaseModel], Any], None] = {(ErrorAnswer, "serialization"): None}
    for route in routes:
        for model in _models(route.answer):
            wanted[(model, "serialization")] = None
        for model in _models(route.body):
            wanted[(model, "validation")] = None
    _, document = models_json_schema(list(wanted), ref_template=_PREFIX)
    found: JsonObject = document["$defs"]
    _name_clashing_choices(found)
    return found


def _name_clashing_choices(schemas: JsonObject) -> None:
    """Give inline choices a component of their own where their usual name is taken.

    Generators of clients name an inline enum after its model and its field (`Screen`, `mode`: ScreenMode), and drop the
    model, and everything that refers to it, where a component has that name already.
    """
    taken = set(schemas)
    for model, schema in list(schemas.items()):
        for field, detail in schema.get("properties", {}).items():
            name = model + "".join(part.capitalize() for part in field.split("_"))
            for holder in (detail, detail.get("items", {}), *detail.get("anyOf", [])):
                if "enum" not in holder:
                    continue
                if name not in taken:
                    taken.add(name)
                    continue
                choice = {key: holder.pop(key) for key in ("enum", "type") if key in holder}
                schemas[f"{name}Choice"] = choice
                holder["$ref"] = _PREFIX.format(model=f"{name}Choice")


def _reference(annotation: Any) -> JsonObject:
    if get_origin(annotation) is list:
        return {"type": "array", "items": _reference(get_args(annotation)[0])}
    return {"$ref": _PREFIX.format(model=annotation.__name__)}


def _operation(route: Route) -> JsonObject:
    operation: JsonObject = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "tags": [route.group],
        "responses": _responses(route),
    }
    if route.description:
        operation["description"] = route.description
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    if route.query is not None:
        schema = route.query.model_json_schema()
        for name, detail in schema.get("properties", {}).items():
            parameters.append(
                {
                    "name": name,
                    "in": "query",
                    "required": name in schema.get("required", []),
                    "schema": {key: value for key, value in detail.items() if key not in {"title"}},
                }
            )
    if parameters:
        operation["parameters"] = parameters
    if route.body is bytes:
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.body is not None:
        required = any(f.is_required() for f in route.body.model_fields.values())  # type: ignore[union-attr]  # there is a body here
        content = {"application/json": {"schema": _reference(route.body)}}
        operation["requestBody"] = {"required": required, "content": content}
    if route.unauthenticated:
        operation["security"] = []
    return operation


def _responses(route: Route) -> JsonObject:
    responses: JsonObject = {}
    if route.answer is None:
        status = 204 if route.status == 200 else route.status
        responses[str(status)] = {"description": "Done."}
    elif isinstance(route.answer, str):
        responses[str(route.status)] = {"description": route.answer}
        if route.status != 303:
            responses[str(route.status)]["content"] = {kind: {"schema": {}} for kind in route.media_type.split(", ")}
    else:
        responses[str(route.status)] = {
            "description": route.summary,
            "content": {route.media_type: {"schema": _reference(route.answer)}},
        }
    codes = [*_ALWAYS, *route.errors]
    if not route.unauthenticated:
        codes += _BEHIND_TOKEN
    if route.owner_only:
        codes.append("forbidden")
    if route.body is not None:
        codes += _WITH_BODY
        if route.body is not bytes:
            codes += ("unsupported_media_type", route.invalid.code)
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(STATUS[code], []).append(code)
    for status in route.own_statuses:
        by_status.setdefault(status, [])
    for status, names in sorted(by_status.items()):
        schema: JsonObject = {} if status in route.own_statuses else _reference(ErrorAnswer)
        responses[str(status)] = {
            "description": ", ".join(sorted(names)) or "See the handler's own documentation.",
            "content": {"application/json": {"schema": schema}},
        }
    return dict(sorted(responses.items()))
