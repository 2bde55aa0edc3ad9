"""Write what is made from the operations and the doors' tables: run it after a change of either.

    python scripts/generate_reference.py           writes
    python scripts/generate_reference.py --check   says what is stale, and fails

It makes `web/src/api.ts` (types and calls for the page), `src/wsh/client/model.py` (answers in Python) and the tables of
`docs/http-api.md`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from wsh.http.error import STATUS
from wsh.http.route import operation_route, page_route, server_route, socket_route
from wsh.http.route.openapi import make_document
from wsh.http.route.table import Route
from wsh.http.ws.methods import METHODS
from wsh.wire.model.base import AnyJson

ROOT = Path(__file__).parents[1]
MADE = "Made by scripts/generate_reference.py"
Schema = dict[str, Any]

ROUTES: list[Route] = [
    route for module in (server_route, operation_route, socket_route, page_route) for route in module.ROUTES
]


# the page


def render_typescript() -> str:
    document = make_document(ROUTES)
    schemas: dict[str, Schema] = document["components"]["schemas"]
    lines = [
        f"// {MADE}: what the server's operations take and answer.",
        "",
        'import { ask, sessionPath } from "./request";',
        "",
    ]
    lines += ['export * from "./request";', ""]
    calls = [line for route in operation_route.ROUTES for line in _typescript_call(route, document)]
    wanted = _reach(schemas, "\n".join(calls))
    for name in sorted(wanted):
        lines += _typescript_type(name, schemas[name])
    return "\n".join([*lines, *calls]) + "\n"


def _reach(schemas: dict[str, Schema], text: str) -> set[str]:
    """The schemas that a text names, and those that they name."""
    found: set[str] = set()
    waiting = [name for name in schemas if re.search(rf"\b{name}\b", text)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r"#/components/schemas/(\w+)", repr(schemas[name]))
    return found


def _typescript_type(name: str, schema: Schema) -> list[str]:
    if "properties" not in schema:
        return [f"export type {name} = {_typescript(schema)};", ""]
    required = schema.get("required", [])
    fields = [
        f"  {field}{'' if field in required else '?'}: {_typescript(entry)};"
        for field, entry in schema["properties"].items()
    ]
    return [f"export interface {name} {{", *fields, "}", ""]


def _typescript(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_typescript(part) for part in schema["anyOf"]))
    match schema.get("type"):
        case "string":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "null":
            return "null"
        case "array":
            inner = _typescript(schema.get("items", {}))
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case "object" if "properties" in schema:
            fields = "; ".join(f"{k}: {_typescript(v)}" for k, v in schema["properties"].items())
            return f"{{ {fields} }}"
        case "object":
            more = schema.get("additionalProperties")
            return f"Record<string, {_typescript(more) if isinstance(more, dict) else 'unknown'}>"
    return "unknown"


def _typescript_call(route: Route, document: Schema) -> list[str]:
    """One function, for what takes and answers JSON."""
    assert route.operation is not None
    if route.media_type != "application/json" or route.body is bytes or route.path.endswith("/quiesce"):
        return []
    entry = document["paths"][route.path][route.method.lower()]
    name = re.sub(r"_(\w)", lambda found: found.group(1).upper(), route.operation.name)
    given = [f"{parameter}: string" for parameter in route.parameters]
    passed = [f'"{route.method}"', _typescript_path(route)]
    queried = [p for p in entry.get("parameters", []) if p["in"] == "query"]
    if queried:
        fields = "; ".join(f"{p['name']}{'' if p['required'] else '?'}: {_typescript(p['schema'])}" for p in queried)
        given.append(f"query: {{ {fields} }} = {{}}")
    if route.body is not None:
        given.append(f"body: {'unknown' if route.body is AnyJson else route.body.__name__}")
    if queried or route.body is not None:
        passed.append("query" if queried else "undefined")
    if route.body is not None:
        passed.append("body")
    answer = "void" if route.answer is None else _typescript_answer(route.answer)
    generic = "<T>" if answer == "T" else ""
    return [
        f"/** {route.summary} */",
        f"export const {name} = {generic}({', '.join(given)}): Promise<{answer}> => ask({', '.join(passed)});",
        "",
    ]


def _typescript_answer(answer: object) -> str:
    if isinstance(answer, str):
        return "T"
    if get_origin(answer) is list:
        return f"{get_args(answer)[0].__name__}[]"
    assert isinstance(answer, type)
    return answer.__name__


def _typescript_path(route: Route) -> str:
    if route.path.startswith("/sessions/{name}"):
        rest = route.path.removeprefix("/sessions/{name}")
        return f"sessionPath(name{', ' + _typescript_text(rest) if rest else ''})"
    return _typescript_text(route.path)


def _typescript_text(path: str) -> str:
    if "{" not in path:
        return f'"{path}"'
    return "`" + re.sub(r"\{(\w+)\}", r"${encodeURIComponent(\1)}", path) + "`"


# the client


CLIENT = {
    "SessionInfo": "SessionReply",
    "Screen": "ScreenReply",
    "Scrollback": "ScrollbackReply",
    "IdleAnswer": "WaitReply",
    "RunAnswer": "RunReply",
}
"""Models that the client gives back, and what it calls them."""


def render_client() -> str:
    schemas: dict[str, Schema] = make_document(ROUTES)["components"]["schemas"]
    lines = [
        f'"""What the server\'s answers become in Python: frozen values, made from JSON without a model library. {MADE}."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from dataclasses import dataclass, field, fields",
        "from typing import TypeAlias, TypeVar",
        "",
        "from wsh.wire.json.object import JsonObject",
        "",
        'Answer = TypeVar("Answer")',
        "Line: TypeAlias = str | list[JsonObject]",
        '"""A text, or spans with their styles."""',
        "",
        "",
        "def from_wire(model: type[Answer], wire: Mapping[str, object]) -> Answer:",
        '    """A `model` of the fields it knows; a newer server may send more."""',
        "    known = {f.name for f in fields(model)}  # type: ignore[arg-type]  # every model here is a dataclass",
        "    return model(**{key: value for key, value in wire.items() if key in known})",
        "",
    ]
    for published, name in CLIENT.items():
        lines += ["", "@dataclass(frozen=True)", f"class {name}:", *_python_fields(schemas[published], schemas)]
        if name in ("ScreenReply", "ScrollbackReply"):
            lines += [
                "",
                "    @property",
                "    def text(self) -> str:",
                '        """The lines as one text; styled lines lose their styles."""',
                f'        return "\\n".join(_plain(line) for line in self.lines){".rstrip(chr(10))" if name == "ScreenReply" else ""}',
            ]
        lines.append("")
    lines += [
        "",
        "def _plain(line: Line) -> str:",
        '    return line if isinstance(line, str) else "".join(str(span.get("text", "")) for span in line)',
    ]
    return "\n".join(lines) + "\n"


DEFAULTS = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}


def _python_fields(schema: Schema, schemas: dict[str, Schema]) -> list[str]:
    """What has no default comes first; the rest may be left out by an older server, or because it is not known."""
    required = schema.get("required", [])
    first: list[str] = []
    rest: list[str] = []
    for name, entry in schema["properties"].items():
        kind = _python(entry, schemas)
        if kind.startswith("list[") and not kind.endswith(" | None"):
            rest.append(f"    {name}: {kind} = field(default_factory=list)")
        elif name not in required or kind.endswith(" | None"):
            rest.append(f"    {name}: {kind} = None")
        elif kind in DEFAULTS and name != "name":
            rest.append(f"    {name}: {kind} = {DEFAULTS[kind]}")
        else:
            first.append(f"    {name}: {kind}")
    return first + rest


def _python(schema: Schema, schemas: dict[str, Schema]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return CLIENT.get(name) or ("str" if "enum" in schemas[name] else "JsonObject")
    if "anyOf" in schema:
        kinds = [_python(part, schemas) for part in schema["anyOf"]]
        return "Any" if "Any" in kinds else " | ".join(dict.fromkeys(kinds))
    match schema.get("type"):
        case "string":
            return "str"
        case "integer":
            return "int"
        case "number":
            return "float"
        case "boolean":
            return "bool"
        case "null":
            return "None"
        case "array":
            return (
                f"list[{'Line' if 'anyOf' in schema.get('items', {}) else _python(schema.get('items', {}), schemas)}]"
            )
        case "object":
            return "JsonObject"
    return "Any"


# the reference


def render_tables() -> dict[str, str]:
    return {"routes": _render_routes(), "statuses": _render_statuses(), "methods": _render_methods()}


BELOW = ("SessionInfo", "Screen", "Scrollback")
"""Models that the page describes in words."""


def _render_routes() -> str:
    lines = ["| route | | request | answer |", "|---|---|---|---|"]
    for route in ROUTES:
        if route.method == "WEBSOCKET":
            continue
        who = "owner" if route.owner_only else "anybody" if route.unauthenticated else ""
        request = ", ".join(part for part in (who, _describe_request(route)) if part)
        path = route.path.replace("{name}", "{n}")
        lines.append(
            f"| `{route.method} {path}` | {route.summary} | {request} | {_describe_answer(route)} |".replace(
                "||", "\\|\\|"
            )
        )
    return "\n".join(lines)


def _describe_request(route: Route) -> str:
    if route.body is bytes:
        return "raw bytes, any content type"
    if route.body is AnyJson:
        return "JSON"
    if route.body is not None:
        return f"`{{{_list_fields(route.body)}}}`"
    return f"`?{', '.join(route.query.model_fields)}`" if route.query is not None else ""


def _list_fields(model: type[BaseModel] | type[bytes]) -> str:
    assert issubclass(model, BaseModel)
    return ", ".join(name + ("" if field.is_required() else "?") for name, field in model.model_fields.items())


def _describe_answer(route: Route) -> str:
    if route.answer is None:
        return "204"
    status = "" if route.status == 200 else f"{route.status} "
    if isinstance(route.answer, str):
        return status + route.answer
    if get_origin(route.answer) is list:
        return f"{status}array of {get_args(route.answer)[0].__name__}"
    name = route.answer.__name__
    return status + (name if name in BELOW else f"{name} `{{{_list_fields(route.answer)}}}`")


def _render_statuses() -> str:
    by_status: dict[int, list[str]] = {}
    for code, status in STATUS.items():
        by_status.setdefault(status, []).append(code)
    rows = [f"| {status} | {', '.join(f'`{code}`' for code in codes)} |" for status, codes in sorted(by_status.items())]
    return "\n".join(["| status | codes |", "|---|---|", *rows])


def _render_methods() -> str:
    lines = ["| method | | params |", "|---|---|---|"]
    for method in METHODS.values():
        about = method.operation.summary if method.operation is not None else "News of a session: see below."
        where = " (`/ws/json`)" if method.server_only else ""
        fields = _list_fields(method.params)
        lines.append(f"| `{method.name}`{where} | {about} | {f'`{{{fields}}}`' if fields else ''} |")
    return "\n".join(lines)


def render_reference(text: str) -> str:
    for name, table in render_tables().items():
        begin, end = f"<!-- {name}: made by scripts/generate_reference.py -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"the page has no place for the table of {name}"
        text = f"{before}{begin}{table}\n{end}{after}"
    return text


def render_all() -> dict[Path, str]:
    page = ROOT / "docs" / "http-api.md"
    return {
        ROOT / "web" / "src" / "api.ts": render_typescript(),
        ROOT / "src" / "wsh" / "client" / "model.py": render_client(),
        page: render_reference(page.read_text()),
    }


def main() -> int:
    stale = [path for path, text in render_all().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run python scripts/generate_reference.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(render_all()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
