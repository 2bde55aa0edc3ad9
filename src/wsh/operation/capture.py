"""Who gets the keys that people press: capture, and the focus within it."""

from __future__ import annotations

from wsh.operation.context import OnSession
from wsh.operation.operation import operation
from wsh.wire.element import Focus, FocusRequest, InputMode

_ONE = ("session_not_found",)


def _mode(on: OnSession) -> InputMode:
    return InputMode(mode=on.stage.input.mode)


@operation(manner="reads", errors=_ONE)
async def get_input_mode(on: OnSession) -> InputMode:
    """Whether keys are captured."""
    return _mode(on)


@operation(errors=(*_ONE, "input_captured"))
async def capture_input(on: OnSession) -> InputMode:
    """Send people's keys to events instead of the program."""
    on.stage.input.capture(on.caller.id)
    return _mode(on)


@operation(errors=(*_ONE, "forbidden"))
async def release_input(on: OnSession) -> InputMode:
    """Let keys pass again."""
    on.stage.input.release(on.caller.id, is_person=on.caller.is_owner)
    return _mode(on)


@operation(manner="reads", errors=_ONE)
async def get_focus(on: OnSession) -> Focus:
    """Which element has the focus."""
    return Focus(focused=on.stage.input.focused)


@operation(errors=(*_ONE, "not_found", "not_focusable"))
async def focus(on: OnSession, params: FocusRequest) -> Focus:
    """Give an element the focus."""
    on.stage.focus(params.id)
    return Focus(focused=params.id)


@operation(errors=_ONE)
async def unfocus(on: OnSession) -> Focus:
    """Take the focus away."""
    on.stage.input.focus(None)
    return Focus(focused=None)
