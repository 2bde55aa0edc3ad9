"""Sessions as resources: what they hold, and the news about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import cast

from wsh.mcp.error import RpcFailure
from wsh.mcp.registry import to_json
from wsh.mcp.resource.index import SESSIONS_URI, ResourceIndex
from wsh.mcp.tool.show import show_listed, show_state
from wsh.operation.command import CommandParams, OutputParams, get_command, get_command_output, list_commands
from wsh.operation.context import Rooms
from wsh.operation.operation import NOTHING, Operation, OperationCall
from wsh.operation.screen import Formatted, ScrollbackParams, get_screen, get_scrollback
from wsh.operation.session import ListParams, list_sessions
from wsh.session.command.command import Command
from wsh.session.event import (
    CommandFinished,
    Exited,
    Output,
    Resized,
    SessionEvent,
    TagsChanged,
    TakenOver,
    TitleChanged,
)
from wsh.session.record.playback import read_output
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionDestroyed
from wsh.session.session import Session
from wsh.wire import tool
from wsh.wire.caller import Caller
from wsh.wire.error import CommandNotFound
from wsh.wire.json import rpc
from wsh.wire.model.base import Model

_READER = Caller("agent", "resources", "token", account="resources")
"""For whom sessions of other machines are read: resources are the same for every client."""
_ON_LIST = (Exited, Resized, TagsChanged, TakenOver, TitleChanged)
_SHOWN = (
    "id",
    "command",
    "author",
    "cwd",
    "started",
    "duration_ms",
    "exit_code",
    "pipestatus",
    "first_line",
    "last_line",
    "state",
)


class SessionResources:
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._stops: dict[str, Callable[[], None]] = {}

    def list_names(self) -> list[str]:
        here = [session.name for session in self._rooms.registry.list_sessions()]
        return here + [str(far["name"]) for sessions in self._rooms.hosts.last_sessions.values() for far in sessions]

    async def read_sessions(self) -> str:
        listed = await OperationCall(list_sessions, ListParams(), _READER).make(self._rooms)
        shown = [show_listed(self._rooms, info) for info in cast("list[dict[str, object]]", listed)]
        return to_json([one for one in shown if one is not None])

    async def read_view(self, name: str, view: str) -> str:
        if "/" in name:
            return to_json(await self._read_far(name, view))
        session = self._rooms.registry.get_session(name)
        if view == "screen":
            return to_json(self._rooms.stages.read_screen(session, "styled") | show_state(session))
        if view == "scrollback":
            return to_json(session.terminal.scrollback(0, 100, styled=True).to_wire())
        if view == "commands":
            return to_json([describe_command(command) for command in session.history.list_commands()])
        return to_json(await self._read_command(session, view.removeprefix("commands/")))

    async def _read_far(self, name: str, view: str) -> object:
        """The same of a session on another machine."""

        async def ask(operation: Operation, params: Model = NOTHING) -> object:
            return await OperationCall(operation, params, _READER, name).make(self._rooms)

        if view == "screen":
            return await ask(get_screen, Formatted(format="styled"))
        if view == "scrollback":
            return await ask(get_scrollback, ScrollbackParams(offset=0, limit=100, format="styled"))
        if view == "commands":
            return await ask(list_commands)
        id = view.removeprefix("commands/")
        if not id.isdecimal() or len(id) > 12:
            raise CommandNotFound(id)
        shown = cast("dict[str, object]", await ask(get_command, CommandParams(id=int(id))))
        return shown | cast("dict[str, object]", await ask(get_command_output, OutputParams(id=int(id), limit=100_000)))

    async def _read_command(self, session: Session, id: str) -> dict[str, object]:
        if not id.isdecimal() or len(id) > 12:
            raise RpcFailure(
                rpc.INVALID_PARAMS,
                f"{id[:40]!r} is not a command id.",
                {"code": tool.NOT_FOUND, "hint": f"List them at {SESSIONS_URI}/{session.name}/commands."},
            )
        command = session.history.get_command(int(id))
        output = await read_output(session, command, 16 * 1024 * 1024)
        shown = describe_command(command) | {"output": output.text}
        return shown | {"omitted_bytes": output.omitted_bytes} if output.truncated else shown

    def watch(self, resources: ResourceIndex) -> Callable[[], None]:
        registry = self._rooms.registry

        def on_lifecycle(event: LifecycleEvent) -> None:
            if isinstance(event, SessionCreated):
                self._follow(event.session, resources)
            elif isinstance(event, SessionDestroyed):
                self._stops.pop(event.sid, lambda: None)()
                self._rooms.marks.forget_session(event.sid)
            resources.note_list()

        stops = [
            registry.lifecycle.add(on_lifecycle),
            self._rooms.hosts.listen(lambda host, news: resources.note_list()),
        ]
        for session in registry.list_sessions():
            self._follow(session, resources)

        def end() -> None:
            for stop in stops:
                stop()
            for each in self._stops.values():
                each()
            self._stops.clear()

        return end

    def _follow(self, session: Session, resources: ResourceIndex) -> None:
        def hear(event: SessionEvent) -> None:
            if isinstance(event, Output):
                resources.note_session(session.name)
                if resources.wanted and session.commands is not None and session.commands.current is not None:
                    resources.note_command(session.name, session.commands.current.id)
            elif isinstance(event, CommandFinished):
                resources.note_command(session.name, event.id)
            elif isinstance(event, _ON_LIST):
                resources.note_session(session.name)
                resources.note_sessions()

        self._stops[session.sid] = session.listeners.add(hear)


def describe_command(command: Command) -> dict[str, object]:
    fields = asdict(command)
    return {key: fields[key] for key in _SHOWN} | {"output_bytes": command.output_bytes}
