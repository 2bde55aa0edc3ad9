"""Arguments against a JSON Schema, with problems that name the field and say what to write instead.

Pure: a schema goes in once, arguments as often as needed. Knows no tool and no dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wsh.mcp.near import find_near
from wsh.wire.json.fit import Check, make_check
from wsh.wire.surrogate import find_unsound
from wsh.wire.tool import FieldProblem

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

MAX_PROBLEMS = 16
# Validation is linear in the number of values; a body of millions of them would hold the loop for minutes.
MAX_VALUES = 60_000


class Validator:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        """`schema` is taken to be one: a test checks ours, since checking takes 5 ms each."""
        self._schema = schema

    @cached_property
    def _validator(self) -> Draft202012Validator:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(dict(self._schema))

    @cached_property
    def _fits(self) -> Check:
        return make_check(self._schema)

    def find_problems(self, arguments: object) -> list[FieldProblem]:
        """What is wrong with `arguments`, the plainest first; empty when they fit."""
        if _count_values(arguments, MAX_VALUES) > MAX_VALUES:
            return [FieldProblem("", f"the arguments hold more than {MAX_VALUES} values", "Send less in one call.")]
        if self._fits(arguments):
            return []
        unsound = find_unsound(arguments)
        if unsound is not None:
            return [FieldProblem(unsound, "holds half of a surrogate pair, which is no character", "Send whole text.")]
        problems: list[FieldProblem] = []
        for error in self._validator.iter_errors(arguments):
            problems.extend(_explain(error))
            if len(problems) >= MAX_PROBLEMS:
                break
        return sorted(problems[:MAX_PROBLEMS], key=lambda problem: (problem.path.count("."), problem.path))

    def normalise(self, arguments: dict[str, object]) -> dict[str, object]:
        """Valid arguments with whole numbers as `int`: JSON Schema takes 24.0 for an integer, Python does not."""
        properties = self._schema.get("properties", {})
        for key, value in arguments.items():
            if isinstance(value, float) and _wants_integer(properties.get(key)):
                arguments = arguments | {key: int(value)}
        return arguments


def _wants_integer(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") in ("integer", ["integer", "null"])


def _count_values(value: object, limit: int) -> int:
    count = 0
    stack = [value]
    while stack and count <= limit:
        here = stack.pop()
        count += 1
        if isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return count


def _path(parts: Iterable[object]) -> str:
    return ".".join(str(part) for part in parts)


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _explain(error: ValidationError) -> list[FieldProblem]:
    path = _path(error.absolute_path)
    rule = error.validator
    wanted: Any = error.validator_value
    value: Any = error.instance
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    where = path or "the arguments"
    if rule == "required":
        missing = [name for name in wanted if isinstance(value, dict) and name not in value]
        # iter_errors yields one error per missing name; its message starts with that name.
        name = next((n for n in missing if error.message.startswith(repr(n))), missing[0] if missing else "?")
        return [FieldProblem(f"{path}.{name}" if path else name, "is required", _describe(schema, name))]
    if rule == "additionalProperties":
        known = list(schema.get("properties", {}))
        extra = [name for name in value if name not in known] if isinstance(value, dict) else []
        return [_unknown(f"{path}.{name}" if path else name, name, known) for name in extra[:MAX_PROBLEMS]]
    if rule == "type":
        kinds = [wanted] if isinstance(wanted, str) else list(wanted)
        kind = " or ".join(_KINDS.get(k, k) for k in kinds)
        return [FieldProblem(path, f"must be {kind}, not {_show(value)}")]
    if rule == "enum":
        choices = ", ".join(repr(choice) for choice in wanted)
        return [FieldProblem(path, f"must be one of {choices}, not {_show(value)}", _nearest(value, wanted))]
    if rule == "const":
        return [FieldProblem(path, f"must be {_show(wanted)}, not {_show(value)}")]
    if rule in {"minimum", "exclusiveMinimum"}:
        return [FieldProblem(path, f"must be at least {wanted}, not {_show(value)}")]
    if rule in {"maximum", "exclusiveMaximum"}:
        return [FieldProblem(path, f"must be at most {wanted}, not {_show(value)}")]
    if rule == "minLength":
        return [FieldProblem(path, "must not be empty" if wanted == 1 else f"must have at least {wanted} characters")]
    if rule == "maxLength":
        return [FieldProblem(path, f"must have at most {wanted} characters, not {len(value)}")]
    if rule == "pattern":
        return [FieldProblem(path, f"does not have the right form: {_show(value)}", schema.get("description"))]
    if rule in {"minItems", "maxItems"}:
        return [FieldProblem(path, f"must have {'at least' if rule == 'minItems' else 'at most'} {wanted} entries")]
    if rule in {"anyOf", "oneOf"} and error.context:
        from jsonschema.exceptions import best_match

        nearest = best_match(error.context)
        if nearest is not None and nearest.validator != "type":
            return _explain(nearest)
        return [FieldProblem(path, f"has no accepted form: {_show(value)}", _alternatives(wanted))]
    if rule == "not" or rule == "dependentRequired":
        return [FieldProblem(path, "cannot be combined like this", schema.get("description"))]
    return [FieldProblem(path, f"{where} does not fit the schema ({rule})")]


def _unknown(path: str, name: str, known: list[str]) -> FieldProblem:
    near = find_near(name, known)
    if near:
        return FieldProblem(path, "is not a known argument", f"Did you mean {near!r}?")
    listed = ", ".join(known) if known else "none"
    return FieldProblem(path, "is not a known argument", f"Known arguments: {listed}.")


def _describe(schema: object, name: str) -> str | None:
    if isinstance(schema, Mapping):
        entry = schema.get("properties", {}).get(name)
        if isinstance(entry, Mapping) and isinstance(entry.get("description"), str):
            return str(entry["description"])
    return None


def _nearest(value: object, choices: Iterable[object]) -> str | None:
    near = find_near(str(value), map(str, choices))
    return f"Did you mean {near!r}?" if near else None


def _alternatives(schemas: Iterable[object]) -> str | None:
    kinds = [
        _KINDS.get(str(s.get("type")), str(s.get("type"))) for s in schemas if isinstance(s, Mapping) and "type" in s
    ]
    return f"Give {' or '.join(dict.fromkeys(kinds))}." if kinds else None
