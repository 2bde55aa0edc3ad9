"""Tools about who gets the keys and which screen is shown: input capture with focus, and the alternate screen."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from wsh.mcp.tool import schema as s
from wsh.mcp.tool.rooms import TerminalRooms, report_exit
from wsh.session.event import Destroyed, Exited, SessionEvent
from wsh.session.session import Session
from wsh.visual.input import InputControl, InputEvent, ModeChanged
from wsh.visual.stage import Stage, StageEvent
from wsh.wire.error import InvalidRequest, NotFocusable
from wsh.wire.tool import Annotations, CallContext, ToolOutcome, ToolSpec


def make_control_tools(rooms: TerminalRooms) -> list[ToolSpec]:
    async def input_mode(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        session = rooms.get_session(a)
        stage = rooms.stages.of(session)
        _check_wait(rooms, session, a, ctx)
        _change_input(rooms, session, stage, a, ctx)
        mark = rooms.read_marks.get((ctx.caller, session.sid))
        was_running = session.running
        if mark is not None and a.get("wait_ms"):
            await _wait_for_keys(session, stage, mark, a["wait_ms"] / 1000)
        told = _describe_input(rooms, session, stage, ctx.caller)
        if was_running and not session.running:
            raise report_exit(session, told)
        return ToolOutcome(told)

    async def screen_mode(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        stage = rooms.stages.of(rooms.get_session(a))
        if a.get("action") == "enter_alt":
            stage.enter_alternate()
        elif a.get("action") == "exit_alt":
            stage.leave_alternate()
        return ToolOutcome({"mode": stage.mode})

    return [
        ToolSpec(
            name="wsh_input_mode",
            title="Capture a person's keys",
            description=(
                "Get or set who receives the keys that people press. `capture` gives them to you as events instead of the "
                "program, so that a panel or overlay can ask something; `release` gives them back. Your own input always reaches "
                "the program. While you hold the capture, each call returns the events since the last one; wait_ms waits for "
                "the next key. Ask briefly, show how to get out (Ctrl+\\), release at once. If mode is passthrough again, a "
                "person took the keyboard back: stop asking."
            ),
            input_schema=s.arguments(
                ["session"],
                session=s.SESSION,
                mode=s.choice("Take or give back the keys; left out: only report.", "capture", "release"),
                focus=s.text(
                    "Element that the keys are meant for: an overlay's or a panel's id.", minLength=1, maxLength=64
                ),
                unfocus=s.flag("Take the focus away."),
                wait_ms=s.number(
                    "Wait up to this long for a key. Only with a capture of yours, which this call may make.",
                    0,
                    300_000,
                    0,
                ),
            ),
            output_schema=s.result(
                ["mode"],
                mode=s.choice("Where people's keys go.", "passthrough", "capture"),
                focused_element=s.text("The element with the focus."),
                events={
                    "type": "array",
                    "description": "Keys since your last call.",
                    "items": s.result(
                        ["raw"],
                        key=s.text("Name of the key, where it has one."),
                        raw=s.text("Its bytes in base64."),
                        target=s.text("The element that had the focus."),
                        viewer=s.text("Where it was pressed."),
                        seq={"type": "integer"},
                    ),
                },
                dropped={"type": "integer", "description": "Keys that were too old to be kept."},
                captured_by_you={"type": "boolean"},
            ),
            family="terminal",
            run=input_mode,
            schema_version=2,
            default_timeout_ms=310_000,
            annotations=Annotations(idempotent=False),
        ),
        ToolSpec(
            name="wsh_screen_mode",
            title="Get or change the screen mode",
            description=(
                "Whether the session shows its normal or the alternate screen (vim, htop and the like use the latter). Elements "
                "belong to the mode they were made in. enter_alt gives you an empty alternate screen to draw on, exit_alt leaves it "
                "and removes what was drawn there; a program's own alternate screen is not yours to leave."
            ),
            input_schema=s.arguments(
                ["session"],
                session=s.SESSION,
                action=s.choice("Left out: only report.", "enter_alt", "exit_alt"),
            ),
            output_schema=s.result(["mode"], mode=s.choice("The screen mode now.", "normal", "alt")),
            family="terminal",
            run=screen_mode,
        ),
    ]


def _change_input(rooms: TerminalRooms, session: Session, stage: Stage, a: dict[str, Any], ctx: CallContext) -> None:
    if "focus" in a and a.get("unfocus"):
        raise InvalidRequest("Give either focus or unfocus.", hint="Focusing another element takes it from the first.")
    if "focus" in a:
        # Looked at first: a capture must not stay behind when the focus cannot be had.
        if not stage.get_element(a["focus"]).focusable:
            raise NotFocusable(a["focus"])
        if a.get("mode") == "release":
            raise InvalidRequest("Released keys have no focus.", hint="Leave focus out, or capture.")
    if a.get("mode") == "capture":
        stage.input.capture(ctx.caller)
        rooms.read_marks.setdefault((ctx.caller, session.sid), stage.input.next_seq)
    elif a.get("mode") == "release":
        stage.input.release(ctx.caller, is_person=ctx.actor == "owner")
    if "focus" in a:
        stage.focus(a["focus"])
    elif a.get("unfocus"):
        stage.input.focus(None)


def _check_wait(rooms: TerminalRooms, session: Session, a: dict[str, Any], ctx: CallContext) -> None:
    """A wait for keys that cannot come is refused. Whoever lost a capture is told so by the answer, not refused."""
    mode = a.get("mode")
    holds = (ctx.caller, session.sid) in rooms.read_marks
    if a.get("wait_ms") and (mode == "release" or mode is None and not holds):
        raise InvalidRequest(
            "wait_ms waits for captured keys, and you capture none here.",
            hint="Give mode capture with it, or leave wait_ms out.",
        )


async def _wait_for_keys(session: Session, stage: Stage, mark: int, timeout_s: float) -> None:
    """Until a key was pressed, the capture or the session ended, or the time is over."""
    ended = asyncio.Event()

    def hear_session(event: SessionEvent) -> None:
        if isinstance(event, Exited | Destroyed):
            ended.set()

    def hear(event: StageEvent) -> None:
        if isinstance(event, ModeChanged) or isinstance(event, InputEvent) and event.seq >= mark:
            ended.set()

    stop, stop_session = stage.subscribe(hear), session.listeners.add(hear_session)
    try:
        if stage.input.mode == "capture" and stage.input.next_seq <= mark:
            async with asyncio.timeout(timeout_s):
                await ended.wait()
    except TimeoutError:
        pass
    finally:
        stop()
        stop_session()


def _describe_input(rooms: TerminalRooms, session: Session, stage: Stage, caller: str) -> dict[str, Any]:
    control: InputControl = stage.input
    mine = control.owner == caller
    shown: dict[str, Any] = {"mode": control.mode, "captured_by_you": mine}
    if control.focused is not None:
        shown["focused_element"] = control.focused
    key = (caller, session.sid)
    mark = rooms.read_marks.get(key)
    shown["events"] = []
    if mark is not None:
        events, following, dropped = control.read_events(mark)
        shown["events"] = [_describe_event(event) for event in events]
        if dropped:
            shown["dropped"] = dropped
        if mine:
            rooms.read_marks[key] = following
        else:
            del rooms.read_marks[key]
    return shown


def _describe_event(event: InputEvent) -> dict[str, Any]:
    shown: dict[str, Any] = {"seq": event.seq, "raw": base64.b64encode(event.raw).decode(), "viewer": event.viewer}
    if event.key is not None:
        shown["key"] = event.key
    if event.target is not None:
        shown["target"] = event.target
    return shown
