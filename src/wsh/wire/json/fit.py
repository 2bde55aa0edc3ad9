"""A quick yes for arguments that fit a JSON Schema: asked before the validator, which takes twenty times as long.

A check is made once for a schema and says True only where the validator would find nothing. False says nothing at all: what does not fit,
and what these checks do not know (patterns, alternatives, 3.0 for a whole number), is the validator's. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from wsh.wire.surrogate import is_sound

Check: TypeAlias = Callable[[Any], bool]

_SAYS_NOTHING = frozenset({"description", "title", "default", "type", "examples"})


def make_check(schema: object) -> Check:
    """A check of values against `schema`. One that it cannot judge never fits."""
    if not isinstance(schema, Mapping):
        return _never
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(kinds, list):
        return _never
    checks = [_make(kind, schema) for kind in kinds]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any(check(value) for check in checks)


def _never(value: object) -> bool:
    return False


def _make(kind: object, schema: Mapping[str, Any]) -> Check:
    made = {"string": _text, "integer": _whole, "number": _number, "boolean": _flag, "null": _null}.get(str(kind))
    if made is None:
        made = {"object": _object, "array": _list}.get(str(kind))
    return _never if made is None else made(schema)


def _knows(schema: Mapping[str, Any], *rules: str) -> bool:
    """Whether nothing in `schema` is a rule but these."""
    return _SAYS_NOTHING.issuperset(schema.keys() - {*rules})


def _text(schema: Mapping[str, Any]) -> Check:
    if not _knows(schema, "enum", "minLength", "maxLength"):
        return _never
    least, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    if "enum" in schema:
        choices = frozenset(word for word in schema["enum"] if isinstance(word, str) and least <= len(word) <= most)
        return lambda value: type(value) is str and value in choices
    return lambda value: type(value) is str and least <= len(value) <= most and is_sound(value)


def _whole(schema: Mapping[str, Any]) -> Check:
    if not _knows(schema, "minimum", "maximum"):
        return _never
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    return lambda value: type(value) is int and least <= value <= most


def _number(schema: Mapping[str, Any]) -> Check:
    if not _knows(schema, "minimum", "maximum"):
        return _never
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    return lambda value: (type(value) is int or type(value) is float) and least <= value <= most


def _flag(schema: Mapping[str, Any]) -> Check:
    return (lambda value: type(value) is bool) if _knows(schema) else _never


def _null(schema: Mapping[str, Any]) -> Check:
    return (lambda value: value is None) if _knows(schema) else _never


def _list(schema: Mapping[str, Any]) -> Check:
    if not _knows(schema, "items", "minItems", "maxItems") or "items" not in schema:
        return _never
    each = make_check(schema["items"])
    least, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))
    return lambda value: type(value) is list and least <= len(value) <= most and all(map(each, value))


def _object(schema: Mapping[str, Any]) -> Check:
    if not _knows(schema, "properties", "required", "additionalProperties"):
        return _never
    if schema.get("additionalProperties") is not False:
        return _never
    checks = {name: make_check(entry) for name, entry in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for name, inner in value.items():
            check = checks.get(name)
            if check is None or not check(inner):
                return False
        return True

    return fits
