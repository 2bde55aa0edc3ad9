"""The methods of the JSON WebSockets: operations by their names, the same for a session's own socket and the server's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from wsh.http.ws.subscription import Subscribe
from wsh.operation import capture, command, element, inbox, input, mode, run, screen, server, session, wait
from wsh.operation.element import OVERLAY, PANEL, ElementOperations
from wsh.operation.operation import Nothing, Operation
from wsh.wire.error import InvalidRequest
from wsh.wire.model.base import Model
from wsh.wire.model.element import Created
from wsh.wire.model.session import Persist, SessionPatch


class NameParams(Model):
    name: str | None = None
    session: str | None = None
    """The same; older recipes call it so."""

    @property
    def address(self) -> str | None:
        return self.session if self.session is not None else self.name


class ListTagged(Model):
    tag: str | list[str] | None = None


class ServerMode(Model):
    persistent: bool | None = None


class RenameParams(NameParams):
    new_name: str | None = None


class TagParams(NameParams):
    add: list[str] | None = None
    remove: list[str] | None = None
    add_tags: list[str] | None = None
    remove_tags: list[str] | None = None


def _as_it_is(params: Model) -> Model:
    return params


@dataclass(frozen=True)
class Method:
    """An operation as this door spells it, or, without one, something between a client and its connection alone.

    `params` is what is published; `spell` makes the operation's parameters of it.
    """

    name: str
    params: type[Model]
    operation: Operation | None = None
    spell: Callable[[Model], Model] = _as_it_is
    shows: type[Model] | None = None
    """The published part of the result, where that is less."""
    replaces: bool = False
    """A newer one on the same session ends it."""
    server_only: bool = False
    otherwise: Operation | None = None
    """Called instead where no parameter is given."""

    @property
    def on_session(self) -> bool:
        return self.operation is None or self.operation.on_session

    @property
    def waits(self) -> bool:
        """True if it runs beside the other requests of its socket."""
        return self.operation is not None and self.operation.manner == "waits"

    @property
    def invalid(self) -> type[InvalidRequest]:
        return InvalidRequest if self.operation is None else self.operation.invalid


def call_by_name(
    operation: Operation,
    name: str | None = None,
    *,
    params: type[Model] | None = None,
    spell: Callable[[Model], Model] = _as_it_is,
    shows: type[Model] | None = None,
    replaces: bool = False,
    server_only: bool = False,
    otherwise: Operation | None = None,
) -> Method:
    """A method that calls `operation`, by another name than its own where that is published."""
    published = operation.params if params is None else params
    return Method(name or operation.name, published, operation, spell, shows, replaces, server_only, otherwise)


def _of_elements(kind: ElementOperations) -> tuple[Method, ...]:
    changes = (kind.replace, kind.patch, kind.remove, kind.clear, kind.update_spans, kind.write)
    return (call_by_name(kind.create, shows=Created), *map(call_by_name, (kind.list, kind.get, *changes)))


def _rename(params: Model) -> SessionPatch:
    asked = cast(RenameParams, params)
    new = asked.new_name if asked.new_name is not None else asked.name
    if new is None:
        raise InvalidRequest("The new name is missing.", hint="Give it as new_name.")
    return SessionPatch(name=new)


def _list(params: Model) -> session.ListParams:
    asked = cast(ListTagged, params).tag
    return session.ListParams(tag=",".join(asked) if isinstance(asked, list) else asked)


def _persist(params: Model) -> Persist:
    asked = cast(ServerMode, params).persistent
    if asked is None:
        raise InvalidRequest("`persistent` is null.", hint="Give true or false; leave it out to ask for the mode.")
    return Persist(persistent=asked)


def _tag(params: Model) -> SessionPatch:
    asked = cast(TagParams, params)
    return SessionPatch(
        add_tags=[*(asked.add or ()), *(asked.add_tags or ())],
        remove_tags=[*(asked.remove or ()), *(asked.remove_tags or ())],
    )


METHODS: dict[str, Method] = {
    method.name: method
    for method in [
        Method("subscribe", Subscribe),
        Method("unsubscribe", Nothing),
        call_by_name(wait.await_idle, replaces=True),
        call_by_name(wait.await_idle, "await_quiesce", replaces=True),
        call_by_name(run.run_command),
        call_by_name(command.list_commands),
        call_by_name(command.get_command),
        call_by_name(command.get_command_output),
        call_by_name(command.get_state),
        call_by_name(screen.get_screen),
        call_by_name(screen.get_scrollback),
        call_by_name(input.send_input),
        call_by_name(session.resize),
        call_by_name(capture.get_input_mode),
        call_by_name(capture.capture_input),
        call_by_name(capture.release_input),
        call_by_name(capture.focus),
        call_by_name(capture.unfocus),
        call_by_name(capture.get_focus),
        *_of_elements(OVERLAY),
        *_of_elements(PANEL),
        call_by_name(element.batch_update),
        call_by_name(mode.get_screen_mode),
        call_by_name(mode.enter_alt_screen),
        call_by_name(mode.exit_alt_screen),
        call_by_name(inbox.list_inbox, server_only=True),
        call_by_name(inbox.mark_inbox, server_only=True),
        call_by_name(session.create_session, server_only=True),
        call_by_name(session.list_sessions, params=ListTagged, spell=_list, server_only=True),
        call_by_name(session.kill_session, params=NameParams, shows=Nothing, server_only=True),
        call_by_name(session.detach_session, params=NameParams, server_only=True),
        call_by_name(session.update_session, "rename_session", params=RenameParams, spell=_rename, server_only=True),
        call_by_name(session.update_session, server_only=True),
        call_by_name(session.update_session, "update_tags", params=TagParams, spell=_tag, server_only=True),
        call_by_name(
            server.set_server_mode,
            params=ServerMode,
            spell=_persist,
            server_only=True,
            otherwise=server.get_server_mode,
        ),
    ]
}
