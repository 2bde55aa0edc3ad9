"""Who gets the keys that people press: capture, and the focus within it."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Literal

from pydantic import Field

from wsh.operation.context import OnSession
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.operation.sandbox import admit, is_agent, refuse_taken
from wsh.session.event import Destroyed, Exited, SessionEvent
from wsh.visual.input.capture import InputEvent, ModeChanged
from wsh.visual.stage import StageEvent
from wsh.wire.error import InvalidRequest, NotFocusable
from wsh.wire.model.base import Model
from wsh.wire.model.element import ElementId, Focus, FocusRequest, InputMode

_ONE = ("session_not_found",)
_REFUSED = ("session_taken", "sandbox_refused")


def _mode(on: OnSession) -> InputMode:
    return InputMode(mode=on.stage.input.mode)


@operation(manner="reads", errors=_ONE)
async def get_input_mode(on: OnSession) -> InputMode:
    """Whether keys are captured."""
    return _mode(on)


@operation(errors=(*_ONE, *_REFUSED, "input_captured"), forwarding=Forwarding(held=True))
async def capture_input(on: OnSession) -> InputMode:
    """Send people's keys to events instead of the program."""
    await _admit(on)
    on.stage.input.capture(on.caller.id, by_agent=is_agent(on.caller))
    return _mode(on)


async def _admit(on: OnSession) -> None:
    """Raises where an agent could not type either: SandboxRefused, or SessionTaken while a person has taken over."""
    if is_agent(on.caller):
        admit(on.session, await on.rooms.sandbox.load(), "no keys are captured")
        refuse_taken(on.session)


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


class AskKeys(Model):
    """Capture, focus and read in one; all of it or nothing."""

    mode: Literal["capture", "release"] | None = None
    focus: ElementId | None = None
    unfocus: bool = False
    wait_ms: Annotated[int, Field(ge=0, le=300_000)] = 0


@operation(
    manner="waits",
    errors=(*_ONE, *_REFUSED, "not_found", "not_focusable", "input_captured", "forbidden", "invalid_request"),
)
async def ask_keys(
    on: OnSession, params: AskKeys
) -> Annotated[Json, "`{mode, captured_by_you, focused_element?, events, dropped?}`"]:
    """Take people's keys, give them back, and read those since the last call."""
    control, me = on.stage.input, on.caller.id
    if params.mode == "capture":
        await _admit(on)
    _check_keys(on, params)
    if params.mode == "capture":
        control.capture(me, by_agent=is_agent(on.caller))
    elif params.mode == "release":
        control.release(me, is_person=on.caller.is_owner)
    if params.focus is not None:
        on.stage.focus(params.focus)
    elif params.unfocus:
        control.focus(None)
    mark = control.find_mark(me)
    if mark is not None and params.wait_ms:
        await _wait_for_keys(on, mark, params.wait_ms / 1000)
    shown: Json = {"mode": control.mode, "captured_by_you": control.owner == me}
    if control.focused is not None:
        shown["focused_element"] = control.focused
    events, dropped = control.take_events(me)
    shown["events"] = [_describe_event(event) for event in events]
    return shown | {"dropped": dropped} if dropped else shown


def _check_keys(on: OnSession, params: AskKeys) -> None:
    """Everything that can be refused is refused first: a capture must not stay behind when the focus cannot be had."""
    if params.focus is not None and params.unfocus:
        raise InvalidRequest("Give either focus or unfocus.", hint="Focusing another element takes it from the first.")
    # A caller that lost its capture is told so by the answer, not refused.
    holds = params.mode == "capture" or params.mode is None and on.stage.input.find_mark(on.caller.id) is not None
    if params.wait_ms and not holds:
        raise InvalidRequest(
            "wait_ms waits for captured keys, and you capture none here.",
            hint="Give mode capture with it, or leave wait_ms out.",
        )
    if params.focus is not None:
        if not on.stage.get_element(params.focus).focusable:
            raise NotFocusable(params.focus)
        if params.mode == "release":
            raise InvalidRequest("Released keys have no focus.", hint="Leave focus out, or capture.")


async def _wait_for_keys(on: OnSession, mark: int, timeout_s: float) -> None:
    """Until a key was pressed, the capture or the session has ended, or the time is over."""
    ended = asyncio.Event()

    def hear_session(event: SessionEvent) -> None:
        if isinstance(event, Exited | Destroyed):
            ended.set()

    def hear(event: StageEvent) -> None:
        if isinstance(event, ModeChanged) or isinstance(event, InputEvent) and event.seq >= mark:
            ended.set()

    stops = on.stage.subscribe(hear), on.session.listeners.add(hear_session)
    try:
        if on.session.running and on.stage.input.mode == "capture" and on.stage.input.next_seq <= mark:
            async with asyncio.timeout(timeout_s):
                await ended.wait()
    except TimeoutError:
        pass
    finally:
        for stop in stops:
            stop()


def _describe_event(event: InputEvent) -> Json:
    shown: Json = {"seq": event.seq, "raw": base64.b64encode(event.raw).decode(), "viewer": event.viewer}
    if event.key is not None:
        shown["key"] = event.key
    if event.target is not None:
        shown["target"] = event.target
    return shown
