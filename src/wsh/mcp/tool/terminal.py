"""Tools about what is typed and shown: input, screen, scrollback, waiting, and all of it in one call."""

from __future__ import annotations

from wsh.mcp.tool import schema as s
from wsh.mcp.tool.declare import Arguments, OperationTool, ToolCall
from wsh.mcp.tool.show import report_exit, reported_output, show_state
from wsh.operation.input import InputParams, send_input
from wsh.operation.run import run_command
from wsh.operation.screen import Formatted, ScrollbackParams, get_screen, get_scrollback
from wsh.operation.wait import WaitParams, await_state
from wsh.wire.error import InvalidRequest, SessionNotFound
from wsh.wire.json.object import JsonObject
from wsh.wire.model.command import RunRequest
from wsh.wire.tool import Annotations, ToolOutcome

_UNTIL = ("quiet", "command", "prompt", "input_wanted", "exit")


async def _send_input(call: ToolCall) -> ToolOutcome:
    params = InputParams(data=call.arguments["input"], **call.pick("encoding"))
    return ToolOutcome({"success": True, "generation": (await call.make(send_input, params)).generation})


async def _get_screen(call: ToolCall) -> ToolOutcome:
    session = call.session
    return ToolOutcome(await call.make(get_screen, Formatted(**call.pick("format"))) | show_state(session))


async def _get_scrollback(call: ToolCall) -> ToolOutcome:
    if "since_line" in call.arguments and "offset" in call.arguments:
        raise InvalidRequest(
            "Give either offset or since_line.",
            hint="offset counts back from the newest line, since_line from a number.",
        )
    params = ScrollbackParams(**call.pick("offset", "limit", "since_line", "format"))
    return ToolOutcome(await call.make(get_scrollback, params))


async def _await_quiesce(call: ToolCall) -> ToolOutcome:
    session = call.session
    params = _spell_wait(call.arguments)
    with reported_output(call.context, session, "wait"):
        ended = await call.make(await_state, params)
    state = {"running": False, "exit_code": session.exit_code} if session.closed else show_state(session)
    shown = state | ended
    if ended["ended_by"] == "exit" and not params.exit:
        raise report_exit(session, shown)
    return ToolOutcome(shown)


def _spell_wait(a: Arguments) -> WaitParams:
    until = set(a.get("until", ()))
    others = until - {"quiet"} or "text" in a or "regex" in a
    wants_quiet = "quiet" in until or "timeout_ms" in a or not others
    return WaitParams(
        timeout_ms=a.get("timeout_ms", 2000) if wants_quiet else None,
        max_wait_ms=a.get("max_wait_ms", 30_000),
        last_generation=a.get("generation"),
        text=a.get("text"),
        regex=a.get("regex"),
        command="command" in until,
        prompt="prompt" in until,
        input_wanted="input_wanted" in until,
        exit="exit" in until,
    )


async def _run_command(call: ToolCall) -> ToolOutcome:
    session = call.session
    given = call.pick("input", "enter", "timeout_ms", "max_wait_ms", "max_output_bytes", "clear_line", "format")
    given |= call.pick("sandbox", "reason")
    try:
        with reported_output(call.context, session, "run"):
            told = spell_run(await call.make(run_command, RunRequest(**given)))
    except SessionNotFound:  # killed meanwhile: it was there when the call came
        raise report_exit(session, {"finished_by": "exit"}) from None
    state = show_state(session)
    state.pop("exit_code", None)  # here it is the command's
    if "outside" in told:
        return ToolOutcome(state | told)
    if not session.running:
        raise report_exit(session, state | told)
    return ToolOutcome(state | told)


def spell_run(told: JsonObject) -> dict[str, object]:
    """What a run found out, in the words of this door."""
    shown = {
        name: value for name, value in told.items() if name not in ("commands", "background", "truncated", "unfinished")
    }
    if "duration_ms" in told:
        shown["duration_ms"] = round(told["duration_ms"], 3)
    if "commands" in told:
        shown["command_ids"] = told["commands"]
    if "background" in told:
        shown["jobs"] = [{"pid": job["pid"], "argv": job["argv"]} for job in told["background"]]
    if "truncated" in told:
        shown["output_omitted"] = {
            "bytes": told["truncated"]["omitted_bytes"],
            "lines": told["truncated"]["omitted_lines"],
            "read": "wsh_get_scrollback" + (", or the resource of this command_id" if "command_id" in shown else ""),
        }
    return shown


TOOLS = (
    OperationTool(
        name="wsh_send_input",
        title="Type into a session",
        description=(
            "Type text or press keys, without waiting for anything. For answers to prompts, keys in full-screen "
            "programs, and interrupting (`ctrl+c` with encoding keys). Where a line that somebody else typed stands without "
            "Enter it fails with LINE_IN_USE; you may go on with your own. For a command whose result you want, "
            "wsh_run_command is better. Returns the generation from before the input: give it to wsh_await_quiesce, "
            "then read with wsh_get_screen."
        ),
        input_schema=s.on_session(
            "input",
            input=s.text(
                "What to type. In utf8, \\r is Enter. In keys, names separated by spaces: `enter`, `escape`, `ctrl+c`, "
                "`shift+tab`, `alt+left`, `f5`, `space`, or single characters.",
                minLength=1,
            ),
            encoding=s.choice(
                "How `input` is written: text, base64 of raw bytes, or names of keys.",
                "utf8",
                "base64",
                "keys",
                default="utf8",
            ),
        ),
        output_schema=s.result(["success"], success=s.SUCCESS, generation=s.GENERATION),
        spell=_send_input,
        calls=(send_input,),
        schema_version=3,
        default_timeout_ms=60_000,
        annotations=Annotations(destructive=True, open_world=True),
    ),
    OperationTool(
        name="wsh_get_screen",
        title="Read the screen",
        description=(
            "What the terminal shows now, with the cursor. Reading never disturbs the program. Use format plain unless "
            "colour matters. For lines that scrolled away use wsh_get_scrollback; to wait first, wsh_await_quiesce."
        ),
        input_schema=s.on_session(format=s.FORMAT),
        output_schema=s.result(s.SCREEN_REQUIRED, **s.SCREEN_PROPERTIES, **s.STATE_PROPERTIES),
        schema_version=2,
        spell=_get_screen,
        calls=(get_screen,),
        reads=True,
        annotations=Annotations(read_only=True, idempotent=True),
    ),
    OperationTool(
        name="wsh_get_scrollback",
        title="Read past output",
        description=(
            "Lines that were printed, the visible screen included, in the order they were printed. `offset` counts back "
            "from the newest line: offset 0 and limit 100 are the last 100 lines. With `since_line`, the lines from that "
            "lasting number on: keep first_line plus the number of lines to ask for what came since."
        ),
        input_schema=s.on_session(
            offset=s.number("Lines to leave out at the newest end.", 0, 2**53, 0),
            limit=s.number("Most lines to return.", 0, 1_000_000, 100),
            since_line=s.number("Lasting number of the first line wanted; instead of offset.", 0, 2**53),
            format=s.FORMAT,
        ),
        output_schema=s.result(
            ["lines", "total"],
            lines=s.LINES,
            total={"type": "integer", "description": "Lines that are kept."},
            total_lines={"type": "integer", "description": "Lines there have ever been: the next line's number."},
            offset={"type": "integer"},
            first_line={"type": "integer", "description": "Lasting number of the first line returned."},
            epoch={"type": "integer", "description": "Grows when line numbering starts again."},
        ),
        schema_version=2,
        spell=_get_scrollback,
        calls=(get_scrollback,),
        reads=True,
        annotations=Annotations(read_only=True, idempotent=True),
    ),
    OperationTool(
        name="wsh_await_quiesce",
        title="Wait for a session",
        description=(
            "Wait until the terminal has been silent for timeout_ms, or until another condition holds: a text or regular "
            "expression is printed, a command of the shell ended, the shell shows its prompt, the program wants input, the "
            "program exited. The first that holds ends the wait and is named in ended_by. Give `generation` (from "
            "wsh_send_input or an earlier result) to wait for something newer. Past max_wait_ms it fails with "
            "TOOL_TIMEOUT; the program is left alone. A session that ends meanwhile fails it with SESSION_EXITED, unless "
            "`until` names exit. Returns no screen: read it afterwards."
        ),
        input_schema=s.on_session(
            timeout_ms=s.TIMEOUT_MS,
            max_wait_ms=s.MAX_WAIT,
            generation=s.number(
                "Only texts, commands and silence after this count; equal to the current, wait for new output. Left out, "
                "texts and commands count since your last input to the session, that of a run included. States "
                "(prompt, input_wanted, exit) are true now, whatever came before.",
                0,
                2**63,
            ),
            text=s.text("Wait until this text is printed.", minLength=1, maxLength=10_000),
            regex=s.text("Wait until this regular expression matches a printed line.", minLength=1, maxLength=10_000),
            until={
                "type": "array",
                "description": (
                    "Further conditions. Silence counts as well only if named (`quiet`), if timeout_ms is given, or if "
                    "nothing else is."
                ),
                "items": {"type": "string", "enum": list(_UNTIL)},
                "minItems": 1,
                "maxItems": len(_UNTIL),
            },
        ),
        output_schema=s.result(
            ["generation"],
            ended_by=s.choice("Which condition held.", *_UNTIL, "text", "regex"),
            matched=s.text("The text that matched."),
            command_id={"type": "integer", "description": "The command that ended."},
            **s.STATE_PROPERTIES,
        ),
        spell=_await_quiesce,
        calls=(await_state,),
        schema_version=4,
        timeout_argument="max_wait_ms",
        annotations=Annotations(read_only=True, idempotent=True),
    ),
    OperationTool(
        name="wsh_run_command",
        title="Run a command and read the screen",
        description=(
            "Type a command and Enter, wait for its end, return the screen. The first choice for running anything in a "
            "session. In a shell that wsh started it ends exactly when the command does and returns exit_code and output "
            "(that command's alone); elsewhere it ends when the terminal has been silent for timeout_ms. finished_by says "
            "which: command, quiet, prompt (the program wants input or shows a full screen: answer with wsh_send_input). "
            "It types only onto an empty line: where somebody has typed something without Enter it fails with LINE_IN_USE "
            "(the text, who and when), and nothing is typed; clear_line clears it first. While a person types, it waits a "
            "moment; while a program runs and reads nothing, up to max_wait_ms, then it fails with nothing typed (busy). A non-zero exit_code is a result. Past max_wait_ms it fails with TOOL_TIMEOUT and the command goes on: wait with "
            "wsh_await_quiesce. A session that ends meanwhile fails it with SESSION_EXITED and everything else it would have "
            "returned. Calls on one session run one after the other."
        ),
        input_schema=s.on_session(
            "input",
            input=s.text("The command or text to type; Enter is added unless it ends in one.", maxLength=4_000_000),
            timeout_ms=s.TIMEOUT_MS,
            max_wait_ms=s.MAX_WAIT,
            format=s.FORMAT,
            enter=s.flag("Add Enter.", default=True),
            clear_line=s.flag(
                "Clear what stands on the line first; a person's text is put back afterwards where the shell can.",
                default=False,
            ),
            max_output_bytes=s.number("Most bytes of `output`; its middle is left out beyond.", 0, 2**30, 65_536),
            sandbox=s.choice(
                "Ask a person to run this one command without the sandbox, in a session of its own; with reason.", "off"
            ),
            reason=s.text("Why it must leave the sandbox; the person reads it.", minLength=1, maxLength=2000),
        ),
        output_schema=s.result(
            ["screen", "generation"],
            screen=s.result(s.SCREEN_REQUIRED, **s.SCREEN_PROPERTIES),
            finished_by=s.choice("What ended the wait.", "command", "quiet", "exit", "prompt", "approval"),
            output=s.text("What the command printed, where the shell tells."),
            output_omitted=s.result(
                ["bytes", "lines"],
                bytes={"type": "integer"},
                lines={"type": "integer"},
                read=s.text("Where the whole of it can be read."),
            ),
            duration_ms={"type": "number"},
            pipestatus={"type": "array", "items": {"type": "integer"}},
            command_id={"type": "integer"},
            command_ids={"type": "array", "items": {"type": "integer"}},
            note=s.text("Said once in a session, where a shell inside of its shell does not tell when commands end."),
            sandbox_denied={
                "type": "object",
                "description": "The command failed in a sandbox: the line that looks like a refusal by it, its error, the profile, and how to ask for it.",
            },
            outside={
                "type": "object",
                "description": "With sandbox: whether the person has answered (approval), and what to do while not.",
            },
            cleared_line={
                "type": "object",
                "description": "With clear_line: what stood there, who typed it and when, and put_back (yes, later, no).",
            },
            jobs={"type": "array", "items": {"type": "object"}, "description": "Programs left in the background."},
            **s.STATE_PROPERTIES,
        ),
        spell=_run_command,
        calls=(run_command,),
        schema_version=8,
        timeout_argument="max_wait_ms",
        annotations=Annotations(destructive=True, open_world=True),
    ),
)
