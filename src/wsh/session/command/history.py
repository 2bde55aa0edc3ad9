"""The commands of one session, as far as its integrated shell has told; none for a program without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsh.session.command.command import Command
from wsh.wire.error import CommandNotFound

if TYPE_CHECKING:
    from wsh.session.session import Session


class CommandHistory:
    def __init__(self, session: Session) -> None:
        self._session = session

    def list_commands(self) -> list[Command]:
        """Oldest first."""
        log = self._session.commands
        return list(log) if log is not None else []

    def get_command(self, id: int) -> Command:
        """Raises CommandNotFound for one that is not in the history (any more)."""
        log = self._session.commands
        command = log.find(id) if log is not None else None
        if command is None:
            raise CommandNotFound(id)
        return command

    @property
    def ended_count(self) -> int:
        """Commands that have ended, those included that are not kept."""
        log = self._session.commands
        return 0 if log is None else log.finished

    @property
    def last_ended(self) -> int | None:
        """Id of the newest command that has ended."""
        return next((c.id for c in reversed(self.list_commands()) if c.end is not None), None)

    def has_ended_since(self, count: int, generation: int | None) -> bool:
        """Whether a command ended after `count` others had, or after `generation` if that is given."""
        if generation is None:
            return self.ended_count > count
        return any(c.end is not None and c.end > generation for c in reversed(self.list_commands()[-16:]))
