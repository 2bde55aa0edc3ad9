"""What an operation is, and a call of one as a value.

    @operation(errors=("session_not_found",))
    async def resize(on: OnSession, params: Resize) -> SessionInfo:
        "Give it another size."

That is a whole declaration: the name, the parameters, the result, whether it is about one session, and the summary are read
from the function. A result that is made as JSON at once says which model describes it: `Annotated[Json, Screen]`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from wsh.operation.context import Context, Json, OnSession, Rooms, ignore_progress
from wsh.operation.forward import HERE, Forwarding, find_place, forward, join_hosts
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidRequest, NotFound, OwnerOnly, SessionRequired
from wsh.wire.model.base import Model
from wsh.wire.tool import Family, Progress

__all__ = ["Json"]
Who: TypeAlias = Literal["owner", "agent"]
"""The least that a caller must be: an owner may do all that an agent may."""
Manner: TypeAlias = Literal["writes", "reads", "waits"]
Run: TypeAlias = Callable[..., Awaitable[object]]


class Nothing(Model):
    """No parameters."""


NOTHING = Nothing()


@dataclass(frozen=True)
class File:
    """A result that is a file."""

    body: bytes
    media_type: str


@dataclass(frozen=True)
class Operation:
    """One declaration. `invalid` is raised for parameters that cannot be, `missing` for an id that cannot be one."""

    name: str
    run: Run = field(repr=False)
    summary: str
    params: type[Model]
    result: object
    """What describes the result: a model, a list of one, a sentence, or None."""
    on_session: bool
    who: Who = "agent"
    manner: Manner = "writes"
    errors: tuple[str, ...] = ()
    invalid: type[InvalidRequest] = InvalidRequest
    missing: Callable[[str], NotFound] | None = None
    family: Family | None = None
    """The toolset without which an agent may not do it, by whatever door; None for what every agent may."""
    forwarding: Forwarding = HERE
    """What of it are addresses, and how the answers of several hosts become one."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it does no harm to make a call of it twice."""
        return self.manner == "reads" or self.forwarding.repeatable


@dataclass(frozen=True)
class OperationCall:
    """A call as a value: it can be checked, allowed, recorded, and made elsewhere. `session` is the address of one."""

    operation: Operation
    params: Model
    caller: Caller
    session: str | None = None
    host: str | None = None
    """Where it is made, where nothing in it is the address of something there; None for this server."""

    def check(self) -> None:
        """Raises OwnerOnly where the caller may not."""
        if self.operation.who == "owner" and not self.caller.is_owner:
            raise OwnerOnly(self.caller.fault)

    async def make(self, rooms: Rooms, progress: Progress = ignore_progress) -> object:
        self.check()
        operation = self.operation
        rooms.check_offered(operation.family, self.caller)
        if operation.on_session and self.session is None:
            raise SessionRequired
        place = find_place(self)
        if place is not None:
            with rooms.waits.hold(self.caller.counted_as):
                return await forward(self, place, rooms, progress=progress)
        result = await self._make_here(rooms, progress)
        if operation.forwarding.joined is not None and len(rooms.hosts) and not self.caller.via:
            return await join_hosts(self, result, rooms)
        return result

    async def _make_here(self, rooms: Rooms, progress: Progress) -> object:
        operation = self.operation
        if operation.on_session:
            assert self.session is not None
            context: Context = OnSession(rooms, self.caller, progress, rooms.registry.get_session(self.session))
        else:
            context = Context(rooms, self.caller, progress)
        if operation.manner == "waits":
            with rooms.waits.hold(self.caller.counted_as):
                return await self._run(context)
        return await self._run(context)

    async def _run(self, context: Context) -> object:
        if self.operation.params is Nothing:
            return await self.operation.run(context)
        return await self.operation.run(context, self.params)


def operation(
    *,
    errors: tuple[str, ...] = (),
    who: Who = "agent",
    manner: Manner = "writes",
    invalid: type[InvalidRequest] = InvalidRequest,
    missing: Callable[[str], NotFound] | None = None,
    family: Family | None = None,
    forwarding: Forwarding = HERE,
) -> Callable[[Run], Operation]:
    """Declare the function below as an operation of its name."""

    def declare(run: Run) -> Operation:
        hints = get_type_hints(run, include_extras=True)
        result = hints.pop("return", None)
        model = result if isinstance(result, type) and issubclass(result, BaseModel) else None
        if get_origin(result) is Annotated:
            result = get_args(result)[1]
        context, params = [*hints.values(), Nothing][:2]
        return Operation(
            name=run.__name__,
            run=run,
            summary=(inspect.getdoc(run) or "").partition("\n\n")[0].replace("\n", " "),
            params=params,
            result=None if result is type(None) else result,
            on_session=issubclass(context, OnSession),
            who=who,
            manner=manner,
            errors=errors,
            invalid=invalid,
            missing=missing,
            family=family,
            forwarding=replace(forwarding, model=model),
        )

    return declare
