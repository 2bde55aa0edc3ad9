"""What the tools that type and read may ask of the rooms."""

from __future__ import annotations

from typing import Any

from wsh.mcp.tool.show import show_state
from wsh.operation.context import Rooms
from wsh.session.session import Session
from wsh.wire.model import Format


class TerminalRooms:
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    @property
    def settings(self) -> Any:
        return self._rooms.settings

    @property
    def input_marks(self) -> dict[tuple[str, str], int]:
        return self._rooms.marks.inputs

    def get_session(self, arguments: dict[str, Any]) -> Session:
        return self._rooms.registry.get_session(arguments["session"])

    def cap_wait(self, max_wait_ms: int) -> int:
        return self._rooms.cap_wait(max_wait_ms)

    def read_screen(self, session: Session, format: Format) -> dict[str, Any]:
        return self._rooms.stages.read_screen(session, format)

    def read_state(self, session: Session) -> dict[str, Any]:
        return show_state(session)

    def describe_screen(self, session: Session, format: Format) -> dict[str, Any]:
        return self.read_screen(session, format) | show_state(session)

    def read_scrollback(
        self, session: Session, *, offset: int, limit: int, since_line: int | None, format: Format
    ) -> dict[str, Any]:
        page = session.terminal.scrollback(offset, limit, styled=format == "styled", since_line=since_line)
        return page.to_wire()
