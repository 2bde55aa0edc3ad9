"""The methods of the JSON WebSockets: one table, the same for a session's own socket and the server's.

A handler gets the channel, the session (None for methods of the server) and checked parameters, and returns what goes
into `result`. Methods that wait run beside the others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field

from wsh.http.command_route import look_at, read_output, run_in
from wsh.http.element_route import elements, shown
from wsh.http.rooms import actor_of
from wsh.http.session_route import create_session, make_wait, patch_session, split_tags
from wsh.http.subscription import Subscribe
from wsh.session.session import Session
from wsh.terminal.key import encode_key
from wsh.wire.command import RunRequest
from wsh.wire.element import (
    BatchUpdate,
    ElementId,
    FocusRequest,
    Kind,
    OverlayCreate,
    OverlayPatch,
    OverlayReplace,
    PanelCreate,
    PanelPatch,
    PanelReplace,
    RegionWrites,
    SpansUpdate,
)
from wsh.wire.error import InvalidOverlay, InvalidPanel, InvalidRequest, Refused
from wsh.wire.model import Format, Model
from wsh.wire.session import Persist, Resize, SessionCreate, SessionPatch

if TYPE_CHECKING:
    from wsh.http.channel import Channel

Handle: TypeAlias = Callable[["Channel", Session, Any], Awaitable[Any]]
HandleServer: TypeAlias = Callable[["Channel", Any], Awaitable[Any]]
Count = Annotated[int, Field(ge=0, le=2**53)]
Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]


class Nothing(Model):
    """No parameters."""


class Formatted(Model):
    format: Format = "styled"


class ScrollbackParams(Formatted):
    offset: Count = 0
    limit: Count = 100
    since_line: Count | None = None


class IdleParams(Formatted):
    timeout_ms: Milliseconds | None = None
    max_wait_ms: Milliseconds = 30_000
    last_generation: Count | None = None
    fresh: bool = False
    text: Annotated[str, Field(max_length=4096)] | None = None
    regex: Annotated[str, Field(max_length=4096)] | None = None
    command: bool = False
    prompt: bool = False
    input_wanted: bool = False
    exit: bool = False


class CommandParams(Model):
    id: Count


class OutputParams(CommandParams):
    format: Format = "plain"
    offset: Count = 0
    limit: Count = 1000
    search: Annotated[str, Field(max_length=4096)] | None = None
    regex: Annotated[str, Field(max_length=4096)] | None = None


class InputParams(Model):
    data: str
    encoding: Literal["utf8", "base64", "keys"] = "utf8"


class ElementParams(Model):
    id: ElementId


class UpdateOverlay(OverlayReplace):
    id: ElementId


class PatchOverlay(OverlayPatch):
    id: ElementId


class UpdatePanel(PanelReplace):
    id: ElementId


class PatchPanel(PanelPatch):
    id: ElementId


class UpdateSpans(SpansUpdate):
    id: ElementId


class WriteRegion(RegionWrites):
    id: ElementId


class ListParams(Model):
    tag: str | None = None


class NameParams(Model):
    name: str | None = None


class RenameParams(NameParams):
    new_name: str | None = None


class TagParams(NameParams):
    add: list[str] | None = None
    remove: list[str] | None = None
    add_tags: list[str] | None = None
    remove_tags: list[str] | None = None


@dataclass(frozen=True)
class Method:
    name: str
    params: type[Model]
    summary: str
    handle: Handle | None = None
    handle_server: HandleServer | None = None
    waits: bool = False
    """It runs beside the other requests."""
    replaces: bool = False
    """A newer one on the same session ends it."""
    server_only: bool = False
    owner_only: bool = False
    invalid: type[InvalidRequest] = InvalidRequest


# of a session


async def subscribe(channel: Channel, session: Session, params: Subscribe) -> Any:
    return channel.subscribe(session, params)


async def unsubscribe(channel: Channel, session: Session, params: Nothing) -> Any:
    channel.unsubscribe(session)
    return {"events": []}


async def await_idle(channel: Channel, session: Session, params: IdleParams) -> Any:
    result = await session.wait(make_wait(params, channel.rooms))
    return channel.rooms.idle_answer(session, result, params.format)


async def get_screen(channel: Channel, session: Session, params: Formatted) -> Any:
    return channel.rooms.screen(session, params.format)


async def get_scrollback(channel: Channel, session: Session, params: ScrollbackParams) -> Any:
    styled = params.format == "styled"
    page = session.terminal.scrollback(params.offset, params.limit, styled=styled, since_line=params.since_line)
    return page.to_wire()


async def run_command(channel: Channel, session: Session, params: RunRequest) -> Any:
    return await run_in(channel.rooms, session, params, channel.caller)


async def list_commands(channel: Channel, session: Session, params: Nothing) -> Any:
    return [command.to_wire() for command in session.list_commands()]


async def get_command(channel: Channel, session: Session, params: CommandParams) -> Any:
    return session.get_command(params.id).to_wire()


async def get_command_output(channel: Channel, session: Session, params: OutputParams) -> Any:
    return await read_output(session, session.get_command(params.id), params)


async def get_state(channel: Channel, session: Session, params: Nothing) -> Any:
    return await look_at(session)


def decode_input(params: InputParams, session: Session) -> bytes:
    if params.encoding == "utf8":
        return params.data.encode("utf-8", "surrogateescape")
    if params.encoding == "keys":
        return b"".join(encode_key(key, session.terminal) for key in params.data.split())
    try:
        return base64.b64decode(params.data, validate=True)
    except binascii.Error:
        raise InvalidRequest("The data is not base64.", hint="Use encoding 'utf8' for text.") from None


async def send_input(channel: Channel, session: Session, params: InputParams) -> Any:
    generation = await session.send_input(decode_input(params, session), actor_of(channel.caller))
    return {"generation": generation}


async def resize(channel: Channel, session: Session, params: Resize) -> Any:
    channel.rooms.stages.of(session).resize(params.rows, params.cols)
    return channel.rooms.describe(session)


async def get_input_mode(channel: Channel, session: Session, params: Nothing) -> Any:
    return {"mode": channel.rooms.stages.of(session).input.mode}


async def capture_input(channel: Channel, session: Session, params: Nothing) -> Any:
    control = channel.rooms.stages.of(session).input
    control.capture(channel.id)
    return {"mode": control.mode}


async def release_input(channel: Channel, session: Session, params: Nothing) -> Any:
    control = channel.rooms.stages.of(session).input
    control.release(channel.id, is_person=channel.caller.is_owner)
    return {"mode": control.mode}


async def focus(channel: Channel, session: Session, params: FocusRequest) -> Any:
    channel.rooms.stages.of(session).focus(params.id)
    return {"focused": params.id}


async def unfocus(channel: Channel, session: Session, params: Nothing) -> Any:
    channel.rooms.stages.of(session).input.focus(None)
    return {"focused": None}


async def get_focus(channel: Channel, session: Session, params: Nothing) -> Any:
    return {"focused": channel.rooms.stages.of(session).input.focused}


async def batch_update(channel: Channel, session: Session, params: BatchUpdate) -> Any:
    found = elements(channel.rooms.stages.of(session), params.type)
    return shown(found.update(params.id, params.spans, params.writes))


async def get_screen_mode(channel: Channel, session: Session, params: Nothing) -> Any:
    return {"mode": channel.rooms.stages.of(session).mode}


async def enter_alt_screen(channel: Channel, session: Session, params: Nothing) -> Any:
    channel.rooms.stages.of(session).enter_alternate()
    return {"mode": "alt"}


async def exit_alt_screen(channel: Channel, session: Session, params: Nothing) -> Any:
    stage = channel.rooms.stages.of(session)
    stage.leave_alternate()
    return {"mode": stage.mode}


def _element_methods(kind: Kind) -> list[Method]:
    is_overlay = kind == "overlay"
    invalid = InvalidOverlay if is_overlay else InvalidPanel

    def of(channel: Channel, session: Session) -> Any:
        return elements(channel.rooms.stages.of(session), kind)

    async def create(channel: Channel, session: Session, params: Any) -> Any:
        return {"id": of(channel, session).create(params).id}

    async def list_all(channel: Channel, session: Session, params: Nothing) -> Any:
        return [shown(element) for element in of(channel, session).list()]

    async def get(channel: Channel, session: Session, params: ElementParams) -> Any:
        return shown(of(channel, session).get(params.id))

    async def update(channel: Channel, session: Session, params: Any) -> Any:
        return shown(of(channel, session).replace(params.id, _without_id(params)))

    async def patch(channel: Channel, session: Session, params: Any) -> Any:
        return shown(of(channel, session).patch(params.id, _without_id(params)))

    async def delete(channel: Channel, session: Session, params: ElementParams) -> Any:
        of(channel, session).remove(params.id)
        return {}

    async def clear(channel: Channel, session: Session, params: Nothing) -> Any:
        of(channel, session).clear()
        return {}

    async def update_spans(channel: Channel, session: Session, params: UpdateSpans) -> Any:
        return shown(of(channel, session).update(params.id, spans=params.spans))

    async def region_write(channel: Channel, session: Session, params: WriteRegion) -> Any:
        return shown(of(channel, session).update(params.id, writes=params.writes))

    new = OverlayCreate if is_overlay else PanelCreate
    replaced = UpdateOverlay if is_overlay else UpdatePanel
    patched = PatchOverlay if is_overlay else PatchPanel
    return [
        Method(f"create_{kind}", new, f"Show a new {kind}.", create, invalid=invalid),
        Method(f"list_{kind}s", Nothing, f"All {kind}s.", list_all),
        Method(f"get_{kind}", ElementParams, f"One {kind}.", get),
        Method(f"update_{kind}", replaced, "New spans, and a new place where given.", update, invalid=invalid),
        Method(f"patch_{kind}", patched, "Change any of its fields.", patch, invalid=invalid),
        Method(f"delete_{kind}", ElementParams, f"Remove the {kind}.", delete),
        Method(f"clear_{kind}s", Nothing, f"Remove all {kind}s.", clear),
        Method(f"update_{kind}_spans", UpdateSpans, "Replace the spans with these ids.", update_spans, invalid=invalid),
        Method(f"{kind}_region_write", WriteRegion, "Put text at positions within it.", region_write, invalid=invalid),
    ]


def _without_id(params: Any) -> Any:
    """The same request as the base class of `params` has it: without the id that says which element is meant."""
    base: Any = type(params).__mro__[1]
    return base.model_construct(
        _fields_set=params.model_fields_set - {"id"}, **{name: getattr(params, name) for name in base.model_fields}
    )


# of the server


async def create(channel: Channel, params: SessionCreate) -> Any:
    return channel.rooms.describe(await create_session(channel.rooms, params, channel.caller))


async def list_sessions(channel: Channel, params: ListParams) -> Any:
    return [channel.rooms.describe(s) for s in channel.rooms.registry.list_sessions(split_tags(params.tag))]


async def kill_session(channel: Channel, session: Session, params: NameParams) -> Any:
    await channel.rooms.registry.kill(session.name)
    return {}


async def detach_session(channel: Channel, session: Session, params: NameParams) -> Any:
    return {"detached": channel.rooms.clients.detach(session)}


async def rename_session(channel: Channel, session: Session, params: RenameParams) -> Any:
    new = params.new_name if params.new_name is not None else params.name
    if new is None:
        raise InvalidRequest("The new name is missing.", hint="Give it as new_name.")
    return channel.rooms.describe(channel.rooms.registry.rename(session.name, new))


async def update_session(channel: Channel, session: Session, params: SessionPatch) -> Any:
    return channel.rooms.describe(patch_session(channel.rooms, session, params))


async def update_tags(channel: Channel, session: Session, params: TagParams) -> Any:
    change = SessionPatch(
        add_tags=[*(params.add or ()), *(params.add_tags or ())],
        remove_tags=[*(params.remove or ()), *(params.remove_tags or ())],
    )
    return channel.rooms.describe(patch_session(channel.rooms, session, change))


async def set_server_mode(channel: Channel, params: Persist) -> Any:
    if not channel.caller.is_owner:
        raise Refused("Only the owner may do this.", hint="Use the owner's token; an agent's token is not enough.")
    lifetime = channel.rooms.server.lifetime
    lifetime.set_persistent(params.persistent)
    return {"persistent": lifetime.persistent}


METHODS: dict[str, Method] = {
    method.name: method
    for method in [
        Method("subscribe", Subscribe, "Hear events, beginning with `sync`.", subscribe),
        Method("unsubscribe", Nothing, "Hear no more.", unsubscribe),
        Method(
            "await_idle",
            IdleParams,
            "Wait until it is quiet, or for something else.",
            await_idle,
            waits=True,
            replaces=True,
        ),
        Method("await_quiesce", IdleParams, "The same as `await_idle`.", await_idle, waits=True, replaces=True),
        Method("run_command", RunRequest, "Run a command and wait for its end.", run_command, waits=True),
        Method("list_commands", Nothing, "What ran here.", list_commands),
        Method("get_command", CommandParams, "One command.", get_command),
        Method(
            "get_command_output", OutputParams, "What it printed, by line or by search.", get_command_output, waits=True
        ),
        Method("get_state", Nothing, "What it runs and what it waits for.", get_state),
        Method("get_screen", Formatted, "What is on the screen now.", get_screen),
        Method("get_scrollback", ScrollbackParams, "The last lines, or those since one.", get_scrollback),
        Method("send_input", InputParams, "Type text, bytes or keys.", send_input),
        Method("resize", Resize, "Give it another size.", resize),
        Method("get_input_mode", Nothing, "Whether keys are captured.", get_input_mode),
        Method("capture_input", Nothing, "Send people's keys to events; ends with this connection.", capture_input),
        Method("release_input", Nothing, "Let keys pass again.", release_input),
        Method("focus", FocusRequest, "Give an element the focus.", focus),
        Method("unfocus", Nothing, "Take the focus away.", unfocus),
        Method("get_focus", Nothing, "Which element has the focus.", get_focus),
        *_element_methods("overlay"),
        *_element_methods("panel"),
        Method("batch_update", BatchUpdate, "Spans and cells of one element, all or nothing.", batch_update),
        Method("get_screen_mode", Nothing, "The normal or the alternate screen.", get_screen_mode),
        Method("enter_alt_screen", Nothing, "Enter the alternate screen mode.", enter_alt_screen),
        Method("exit_alt_screen", Nothing, "Leave it, and remove its elements.", exit_alt_screen),
        Method("create_session", SessionCreate, "Start a session.", handle_server=create, server_only=True),
        Method(
            "list_sessions",
            ListParams,
            "All sessions, or those with a tag.",
            handle_server=list_sessions,
            server_only=True,
        ),
        Method("kill_session", NameParams, "Kill its whole tree and forget it.", kill_session, server_only=True),
        Method("detach_session", NameParams, "Send every client of it away.", detach_session, server_only=True),
        Method("rename_session", RenameParams, "Give it another name.", rename_session, server_only=True),
        Method("update_session", SessionPatch, "Rename and tag it, all or nothing.", update_session, server_only=True),
        Method("update_tags", TagParams, "Add and remove tags.", update_tags, server_only=True),
        Method(
            "set_server_mode", Persist, "Make the server stay, or not.", handle_server=set_server_mode, server_only=True
        ),
    ]
}
