"""From an operation to a route: where its parameters stand, and what of its result is shown.

What the path names stands in the path (`{name}` is the session); the rest is read from the query of a GET and from the JSON body
of every other method, unless the line says otherwise. The model of that rest is the base of the parameters that has none of the
path's fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from wsh.http.error import from_validation
from wsh.http.route.table import HttpAnswer, HttpCall, Method, Route, to_answer
from wsh.operation.operation import NOTHING, File, Nothing, Operation, OperationCall
from wsh.wire.model.base import AnyJson, Model

SESSION = "name"
AS_IT_IS = object()


def offer(
    method: Method,
    path: str,
    operation: Operation,
    group: str,
    *,
    status: int = 200,
    shows: object = AS_IT_IS,
    in_query: bool | None = None,
    raw: str | None = None,
    whole: str | None = None,
    answer: Callable[[object], HttpAnswer] | None = None,
    own_statuses: tuple[int, ...] = (),
    media_type: str = "application/json",
) -> Route:
    """A route that calls `operation`.

    `shows` is the published answer where it is less than the result: None, or a model. `raw` names the parameter that the body
    is, byte by byte, `whole` the one that it is as JSON. `answer` makes the answer where the result has statuses of its own.
    """
    named = [name for name in re.findall(r"\{(\w+)\}", path) if name != SESSION]
    rest = _find_rest(operation.params, named)
    part = rest if raw is not None or whole is not None else None
    queried = method == "GET" if in_query is None else in_query

    async def serve(call: HttpCall) -> HttpAnswer:
        given = call.query if queried else call.body
        if part is not None:
            given = part.model_construct(None, **{raw or whole or "": given})
        assert given is None or isinstance(given, Model)
        params = _join(operation, given, {name: call.path[name] for name in named})
        made = OperationCall(operation, params, call.caller, call.path.get(SESSION), call.host)
        result = await made.make(call.rooms)
        return show(result, shows, status) if answer is None else answer(result)

    return Route(
        method,
        path,
        serve,
        operation.summary,
        group,
        query=rest if queried else None,
        body=bytes if raw is not None else AnyJson if whole is not None else None if queried else rest,
        answer=operation.result if shows is AS_IT_IS else shows,
        status=status,
        errors=operation.errors,
        owner_only=operation.who == "owner",
        waits=operation.manner == "waits",
        invalid=operation.invalid,
        own_statuses=own_statuses,
        media_type=media_type,
        operation=operation,
        takes_ticket=method == "GET" and media_type != "application/json",
    )


def _find_rest(params: type[Model], named: list[str]) -> type[Model] | None:
    """What is left of the parameters beside those in the path; None for nothing."""
    if params is Nothing:
        return None
    for base in params.__mro__:
        if base is Model:
            return None
        if issubclass(base, Model) and not set(named) & set(base.model_fields):
            return base
    return None


def _join(operation: Operation, given: Model | None, named: dict[str, str]) -> Model:
    """Parameters of what was checked already and of what the path names. A name that cannot be one names nothing."""
    if not named:
        return NOTHING if given is None else given
    try:
        found = {name: _adapter(operation.params, name).validate_strings(named[name], strict=False) for name in named}
    except ValidationError as problem:
        if operation.missing is not None:
            raise operation.missing(next(iter(named.values()))[:80]) from None
        raise from_validation(problem, operation.invalid) from None
    if given is None:
        return operation.params.model_construct(_fields_set=set(found), **found)
    fields = {name: getattr(given, name) for name in type(given).model_fields}
    return operation.params.model_construct(_fields_set=given.model_fields_set | set(found), **fields, **found)


@cache
def _adapter(params: type[Model], name: str) -> TypeAdapter[object]:
    return TypeAdapter(cast("type[object]", params.model_fields[name].rebuild_annotation()))


def pick_fields(result: object, shows: type[BaseModel]) -> dict[str, object]:
    """The published part of a result, which is a model, or JSON from another machine."""
    given = result.get if isinstance(result, dict) else partial(getattr, result)
    return {name: given(name) for name in shows.model_fields}


def show(result: object, shows: object, status: int) -> HttpAnswer:
    """A result as an answer; of a model only the published fields, where those are fewer."""
    if isinstance(result, File):
        return HttpAnswer(result.body, status, result.media_type)
    if shows is None or result is None:
        return to_answer(None, status)
    if isinstance(shows, type) and issubclass(shows, BaseModel):
        return to_answer(pick_fields(result, shows), status)
    return to_answer(result, status)
