"""The screen mode of a session: the normal screen, or the alternate one that a program or an agent has."""

from __future__ import annotations

from wsh.operation.context import OnSession
from wsh.operation.operation import operation
from wsh.wire.model.element import ScreenMode

_ONE = ("session_not_found",)


@operation(manner="reads", errors=_ONE)
async def get_screen_mode(on: OnSession) -> ScreenMode:
    """The normal or the alternate screen."""
    return ScreenMode(mode=on.stage.mode)


@operation(errors=(*_ONE, "already_in_alt_screen"))
async def enter_alt_screen(on: OnSession) -> ScreenMode:
    """Enter the alternate screen mode."""
    on.stage.enter_alternate()
    return ScreenMode(mode=on.stage.mode)


@operation(errors=(*_ONE, "not_in_alt_screen"))
async def exit_alt_screen(on: OnSession) -> ScreenMode:
    """Leave it, and remove its elements."""
    on.stage.leave_alternate()
    return ScreenMode(mode=on.stage.mode)
