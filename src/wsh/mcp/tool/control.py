"""Tools about who gets the keys and which screen is shown: input capture with focus, and the alternate screen."""

from __future__ import annotations

from wsh.mcp.tool import schema as s
from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.mcp.tool.show import report_exit
from wsh.operation.capture import AskKeys, ask_keys
from wsh.operation.mode import enter_alt_screen, exit_alt_screen, get_screen_mode
from wsh.wire.tool import Annotations, ToolOutcome


async def _input_mode(call: ToolCall) -> ToolOutcome:
    session = call.session
    was_running = session.running
    told = await call.make(ask_keys, AskKeys(**call.pick("mode", "focus", "unfocus", "wait_ms")))
    if not session.running and (was_running or call.arguments.get("wait_ms")):
        raise report_exit(session, told)
    return ToolOutcome(told)


async def _screen_mode(call: ToolCall) -> ToolOutcome:
    operations = {"enter_alt": enter_alt_screen, "exit_alt": exit_alt_screen}
    found = await call.make(operations.get(call.arguments.get("action", ""), get_screen_mode))
    return ToolOutcome({"mode": found.mode})


TOOLS = (
    OperationTool(
        name="wsh_input_mode",
        title="Capture a person's keys",
        description=(
            "Get or set who receives the keys that people press. `capture` gives them to you as events instead of the "
            "program, so that a panel or overlay can ask something; `release` gives them back. Your own input always reaches "
            "the program. While you hold the capture, each call returns the events since the last one; wait_ms waits for "
            "the next key. Ask briefly, show how to get out (Ctrl+\\), release at once. If mode is passthrough again, a "
            "person took the keyboard back: stop asking."
        ),
        input_schema=s.on_session(
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
        spell=_input_mode,
        calls=(ask_keys,),
        schema_version=3,
        default_timeout_ms=310_000,
        annotations=Annotations(idempotent=False),
    ),
    OperationTool(
        name="wsh_screen_mode",
        title="Get or change the screen mode",
        description=(
            "Whether the session shows its normal or the alternate screen (vim, htop and the like use the latter). Elements "
            "belong to the mode they were made in. enter_alt gives you an empty alternate screen to draw on, exit_alt leaves it "
            "and removes what was drawn there; a program's own alternate screen is not yours to leave."
        ),
        input_schema=s.on_session(
            action=s.choice("Left out: only report.", "enter_alt", "exit_alt"),
        ),
        output_schema=s.result(["mode"], mode=s.choice("The screen mode now.", "normal", "alt")),
        schema_version=2,
        spell=_screen_mode,
        calls=(get_screen_mode, enter_alt_screen, exit_alt_screen),
    ),
)
