"""Calls of operations at other machines: where a call is made, what travels, and what an answer from there means here.

A name that a host tells (`train`) is an address here (`gpu1/train`). What is asked of several hosts at once becomes one answer that
says from where each part came.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, ValidationError

from wsh.host.address import check_host_name, parse_address
from wsh.host.carrier import ForwardedAnswer, ForwardedCall, ForwardedCaller, ProgressListener
from wsh.operation.sandbox import choose_profile, is_agent
from wsh.sandbox.profile import is_within
from wsh.wire.error import HostUnreachable, InternalError, InvalidRequest, InvalidSessionName, SandboxRefused, WshError
from wsh.wire.model.base import Model
from wsh.wire.system.shortage import find_shortage

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.operation.operation import Operation, OperationCall
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject
    from wsh.wire.tool import Progress
    from wsh.wire.tool import Stream as ProgressStream

log = logging.getLogger("wsh.host")

_SLACK_S = 10.0
"""Beyond what a call says that it waits: for the way there and back, and for a connection that is being made."""
_LONGEST_WORD = 4000
_SCREENS = frozenset({"screen", "lines", "spans", "output", "card", "structured"})
"""Parts of answers that are what programs printed; no addresses stand in them."""


@dataclass(frozen=True)
class Forwarding:
    """What an operation says about being made elsewhere."""

    addresses: tuple[str, ...] = ()
    """Parameters that are addresses: of what the call is about, where it is about no session, or of something beside it."""
    names: tuple[str, ...] = ("session",)
    """Fields of the result that become addresses here."""
    joined: str | None = None
    """Asked of all hosts: the key of the list that their answers are put together in; empty where the result is the list."""
    repeatable: bool = False
    """Whether it does no harm to make it twice; what only reads never does."""
    held: bool = False
    """Whether an agent acts in a session by it: then the sandbox that agents get here is looked at before it is sent."""
    model: type[BaseModel] | None = None
    """What the result is, where it is not JSON at once."""
    revive: Callable[[JsonObject], object] | None = None
    """Makes the result of its JSON, where it is neither a model nor JSON at once."""


HERE = Forwarding()
"""Of an operation that says nothing special."""


@dataclass(frozen=True)
class Place:
    """Where a call is made, and with which words there."""

    host: str
    session: str | None
    params: Model


def find_place(call: OperationCall) -> Place | None:
    """None for a call that is made here."""
    session, host = call.session, call.host
    new_name = getattr(call.params, "name", None) if call.operation.on_session else None
    if (
        isinstance(new_name, str)
        and "/" in new_name
        and new_name.partition("/")[0] != (session or "").partition("/")[0]
    ):
        raise InvalidSessionName(new_name)  # a session does not move to another machine
    given = {
        name: parse_address(value)
        for name in call.operation.forwarding.addresses
        if isinstance(value := getattr(call.params, name, None), str) and "/" in value
    }
    if call.operation.on_session and session is not None and "/" in session and host is None:
        host, session = parse_address(session)
    elif host is None and given and not call.operation.on_session:
        host = next(iter(given.values())).host
    other = next((address for address in given.values() if address.host != host), None)
    if other is not None:
        raise InvalidRequest(
            f"{str(other)!r} is on another machine than what the call is about.", hint="Both must be on the same one."
        )
    if host is None:
        return None
    changed = {name: address.name or None for name, address in given.items()}
    params = call.params.model_copy(update=changed) if changed else call.params
    return Place(check_host_name(host), session, params)


async def forward(
    call: OperationCall,
    place: Place,
    rooms: Rooms,
    deadline_s: float | None = None,
    progress: Progress | None = None,
    *,
    repeatable: bool | None = None,
) -> object:
    """The result as the operation would have given it here. Raises what was raised there, or HostUnreachable.

    `repeatable` is for a call that says less than its parameters whether it may be made twice.
    """
    carrier = rooms.hosts.get_carrier(place.host)
    operation = call.operation
    if operation.forwarding.held and is_agent(call.caller):
        place = await _hold_in(call, place, rooms)
    sent = ForwardedCall(
        id=secrets.token_hex(8),
        operation=operation.name,
        params=_dump(place.params),
        session=place.session,
        caller=ForwardedCaller.of(call.caller, rooms.server.hostname),
        deadline_s=find_deadline(operation, place.params, rooms) if deadline_s is None else deadline_s,
        repeatable=operation.is_repeatable if repeatable is None else repeatable,
    )
    answer = await carrier.call(sent, None if progress is None else lambda told: _tell(progress, told))
    if answer.error is not None:
        raise _adopt_error(answer, place)
    if answer.body is not None:
        from wsh.operation.operation import File

        return File(answer.body, answer.media_type)
    return _adopt(operation, answer.unwrap(), place.host)


def _tell(progress: Progress, told: JsonObject) -> None:
    stream = told.get("stream")
    known: ProgressStream = "stdout" if stream == "stdout" else "stderr" if stream == "stderr" else "info"
    progress(str(told.get("message", ""))[:_LONGEST_WORD], stream=known, phase=str(told.get("phase", "progress"))[:64])


async def _hold_in(call: OperationCall, place: Place, rooms: Rooms) -> Place:
    """What agents get here holds at hosts, too: the sandbox of a session they open there, and which ones they type into."""
    policy = await rooms.sandbox.load()
    if policy.agents is None:
        return place
    if hasattr(place.params, "sandbox") and place.session is None:
        profile = choose_profile(call.caller, place.params.sandbox, policy)
        assert profile is not None
        return replace(place, params=place.params.model_copy(update={"sandbox": profile.name}))
    if place.session is not None:
        await check_far_sandbox(call.caller, place.host, place.session, rooms)
    return place


async def check_far_sandbox(caller: Caller, host: str, session: str, rooms: Rooms) -> None:
    """Raises SandboxRefused where an agent's input would act outside what agents get here."""
    from wsh.operation.operation import NOTHING, OperationCall
    from wsh.operation.session import get_session

    policy = await rooms.sandbox.load()
    if policy.agents is None:
        return
    asked = OperationCall(get_session, NOTHING, caller, session)
    info = cast("JsonObject", await forward(asked, Place(host, session, NOTHING), rooms))
    held = info.get("sandbox")
    try:
        profile = None if not isinstance(held, dict) else policy.find(str(held["profile"]))
    except KeyError:
        profile = None
    if not is_within(profile, policy.agents):
        raise SandboxRefused(
            f"Session '{host}/{session}' is not held in {policy.agents.name!r} or narrower, in which agents work here, so nothing "
            "was typed.",
            hint="Open a session of your own, or ask the person to type it.",
            session=f"{host}/{session}",
            agents=policy.agents.name,
        )


def find_deadline(operation: Operation, params: Model, rooms: Rooms) -> float:
    """How long the answer may take: what the call waits for, and some more. One that waits and does not say how long may wait longest."""
    waits = getattr(params, "max_wait_ms", None) or getattr(params, "timeout_ms", None)
    if waits is None and operation.manner == "waits":
        waits = rooms.settings.get_int("server.max_wait_ms")
    if isinstance(waits, int):
        return rooms.cap_wait(waits) / 1000 + _SLACK_S
    return rooms.settings.get_float("hosts.call_timeout_s")


async def join_hosts(call: OperationCall, result: object, rooms: Rooms) -> object:
    """The answer of this server, with those of all hosts that can be reached; what they last told, for sessions of the others."""
    await rooms.hosts.refresh()
    states = rooms.hosts.list_hosts()
    deadline_s = rooms.settings.get_int("hosts.list_timeout_ms") / 1000

    async def ask(host: str) -> object:
        return await forward(call, Place(host, None, call.params), rooms, deadline_s)

    told = rooms.hosts.told_sessions if call.operation.name == "list_sessions" else {}
    asked = [state.name for state in states if state.online and state.name not in told and state.same_as is None]
    answers = await asyncio.gather(*map(ask, asked), return_exceptions=True)
    found: list[tuple[str, object]] = []
    for host, answer in zip(asked, answers, strict=True):
        if isinstance(answer, BaseException):
            if not isinstance(answer, Exception):
                raise answer
            log.debug("host %s did not answer: %s", host, answer)
        else:
            found.append((host, answer))
    if call.operation.name == "list_sessions":
        found = _remember(rooms, found, getattr(call.params, "tag", None))
    return _join(call.operation.forwarding.joined or "", result, found)


def _remember(rooms: Rooms, found: list[tuple[str, object]], tag: str | None) -> list[tuple[str, object]]:
    """With the sessions of hosts that tell them by themselves, and those of hosts that did not answer as they were when last known."""
    hosts = rooms.hosts
    answered = dict(found)
    if tag is None:
        hosts.remember(cast("dict[str, list[JsonObject]]", answered))
    wanted = None if tag is None else {one.strip() for one in tag.split(",")}
    for state in hosts.list_hosts():
        if state.name in answered or state.same_as is not None:
            continue
        told = hosts.told_sessions.get(state.name)
        if told is None:
            known = hosts.last_sessions.get(state.name, [])
        else:
            known = [one | {"name": f"{state.name}/{one['name']}", "host": state.name} for one in told()]
        since = {"unreachable_since": None if state.online else state.since}
        answered[state.name] = [one | since for one in known if wanted is None or wanted & set(one["tags"])]
    return sorted(answered.items())


def _join(key: str, result: object, found: list[tuple[str, object]]) -> object:
    if not key:
        return [*cast("list[object]", result), *(item for _, items in found for item in cast("list[object]", items))]
    if isinstance(result, BaseModel):
        items = [*getattr(result, key), *(item for _, other in found for item in getattr(other, key))]
        counts = (
            {"wants": result.wants + sum(getattr(other, "wants", 0) for _, other in found)}
            if hasattr(result, "wants")
            else {}
        )
        return result.model_copy(update={key: items, **counts})
    whole = cast("JsonObject", result)
    return whole | {key: [*whole[key], *(item for _, other in found for item in cast("JsonObject", other)[key])]}


# the far end


async def make_forwarded(
    rooms: Rooms, call: ForwardedCall, proven: Caller, on_progress: ProgressListener
) -> ForwardedAnswer:
    """Make a call that another server forwards for its caller; a failure is an answer as well. `proven` is who brought it."""
    from wsh.operation.operation import File, OperationCall

    try:
        operation = _find_operation(call.operation)
        try:
            params = operation.params.model_validate_json(json.dumps(call.params))
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise operation.invalid(
                f"The parameter {where!r} cannot be: {first['msg']}.", hint="The two servers may differ in version."
            ) from None
        made = OperationCall(operation, params, call.caller.to_caller(proven), call.session)

        def progress(message: str, *, stream: ProgressStream = "info", phase: str = "progress") -> None:
            on_progress({"message": message, "stream": stream, "phase": phase})

        result = await made.make(rooms, progress)
    except WshError as error:
        return ForwardedAnswer.of_error(error)
    except Exception as problem:
        shortage = find_shortage(problem)
        if shortage is None:
            log.error("a forwarded call failed", exc_info=problem)
        return ForwardedAnswer.of_error(shortage or InternalError())
    if isinstance(result, File):
        return ForwardedAnswer(body=result.body, media_type=result.media_type)
    return ForwardedAnswer(result=_to_json(result))


_operations: dict[str, Operation] = {}


def _find_operation(name: str) -> Operation:
    if not _operations:
        from wsh.operation.catalog import list_operations

        _operations.update(list_operations())
    found = _operations.get(name)
    if found is None:
        raise InvalidRequest(
            f"This host's server has no operation {name[:80]!r}.",
            hint="It is of another version: `wsh host list` shows which.",
        )
    return found


def _to_json(result: object) -> object:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    if isinstance(result, list):
        return [_to_json(item) for item in result]
    return result


# words of there and words of here


def _dump(params: Model) -> JsonObject:
    data = getattr(params, "data", None)
    if isinstance(data, bytes):
        return {"data": base64.b64encode(data).decode(), "encoding": "base64"}
    return params.model_dump(mode="json", exclude_unset=True)


def _adopt(operation: Operation, result: object, host: str) -> object:
    forwarding = operation.forwarding
    adopted = adopt_names(result, host, forwarding.names)
    if forwarding.joined is not None:
        items = adopted if not forwarding.joined else cast("JsonObject", adopted)[forwarding.joined]
        for item in cast("list[JsonObject]", items):
            item["host"] = host
    if forwarding.revive is not None:
        return forwarding.revive(cast("JsonObject", adopted))
    if forwarding.model is None or not isinstance(adopted, dict):
        return adopted
    known = {name: value for name, value in adopted.items() if name in forwarding.model.model_fields}
    return forwarding.model.model_validate(known)


def adopt_names(result: object, host: str, names: tuple[str, ...] = ("session",), depth: int = 3) -> object:
    """The same with `name` as `host/name` in these fields. Entries of lists say which host they are of."""
    if isinstance(result, list):
        return [adopt_names(item, host, names, depth) for item in result]
    if not isinstance(result, dict) or not depth:
        return result
    adopted = {
        key: f"{host}/{value}"
        if key in names and isinstance(value, str) and value
        else value
        if key in _SCREENS
        else adopt_names(value, host, names, depth - 1)
        for key, value in result.items()
    }
    return adopted | {"host": host} if result.get("host", 0) is None else adopted


def _adopt_error(answer: ForwardedAnswer, place: Place) -> WshError:
    assert answer.error is not None
    try:
        answer.unwrap()
    except WshError as error:
        return adopt_error(error, place.host)
    raise AssertionError


def adopt_error(error: WshError, host: str) -> WshError:
    """As it is told here: the session by its address, and from which host."""
    if isinstance(error, HostUnreachable):
        return error
    name = error.facts.get("session")
    if isinstance(name, str) and "/" not in name:
        error.facts["session"] = f"{host}/{name}"
        error.message = re.sub(rf"(?<=')({re.escape(name)})(?=')", f"{host}/{name}", error.message)
        error.args = (error.message,)
    error.facts.setdefault("host", host)
    return error
