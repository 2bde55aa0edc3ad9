"""The lean toolset: six tools that say in few tokens what a model needs to work in terminals.

Results are texts. A command comes back as its output and exit code; a screen only where nobody knows the command's end, or where
a full-screen program is in front. Where no session is named, the caller's own is meant, which the first `run` opens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from wsh.mcp.budget import NumberedLine, clip, count_tokens, fit_head, fit_rows, number_lines
from wsh.mcp.tool import schema as s
from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.mcp.tool.lean_text import join, paint, say_where, show_output, show_page, show_rows, show_screen, unpaint
from wsh.mcp.tool.show import reported_output
from wsh.operation.command import CommandParams, OutputParams, get_command, get_command_output
from wsh.operation.contract import ContractParams, call_terminal
from wsh.operation.input import InputParams, send_input
from wsh.operation.run import run_command
from wsh.operation.screen import Formatted, ScrollbackParams, get_screen, get_scrollback
from wsh.operation.session import ListParams, create_session, kill_session, list_sessions, update_session
from wsh.operation.wait import WaitParams, await_state
from wsh.session.record.playback import read_output
from wsh.session.session import Session
from wsh.wire.error import CommandNotFound, InvalidRequest, SessionNotFound, WaitTimeout
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import AnyJson, Format
from wsh.wire.model.command import RunRequest
from wsh.wire.model.session import SessionCreate, SessionPatch
from wsh.wire.tool import Annotations, ToolFailure, ToolOutcome

BUDGET = 4000
_KEPT_BYTES = 1024 * 1024
_WRONG = r"(?i)\b(error|fatal|fail(ed|ure)?|exception|traceback|panic(ked)?)\b"
_SETTLE_MS = 400
_TYPE_WAIT_MS = 5000
_PAGE_LINES = 5000
_SEARCH_LINES = 200_000


def _tell(*parts: str) -> ToolOutcome:
    return ToolOutcome(None, text=join(*parts))


# Which session


def _find_home(call: ToolCall) -> Session | None:
    owner = call.context.caller.id
    return next((one for one in call.rooms.registry.list_sessions() if one.home_of == owner), None)


def _find_session(call: ToolCall) -> Session:
    if "session" in call.arguments:
        return call.session
    found = _find_home(call)
    if found is None:
        raise InvalidRequest("You have no session yet.", hint="run opens one; sessions lists those of others.")
    return found


async def _open(call: ToolCall, **given: Any) -> Session:
    made = await call.make(create_session, SessionCreate(**given))
    session = call.rooms.registry.get_session(made["name"])
    home = _find_home(call)
    if home is None or not home.running:
        if home is not None:
            home.home_of = ""
            home.memory.remember()
        session.home_of = call.context.caller.id
        session.memory.remember()
    return session


def _budget(call: ToolCall, *notes: str) -> int:
    """The most tokens of a result, less those of what stands below it."""
    return int(call.arguments.get("max_tokens", BUDGET)) - (count_tokens(join(*notes)) + 2 if notes else 0)


# run


async def _run(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    session = call.session if "session" in a else _find_home(call)
    note = ""
    if session is None or ("session" not in a and not session.running):
        session = await _open(call)
        note = f", in your new session {session.name}"
    request = RunRequest(
        input=a["command"],
        max_wait_ms=a.get("timeout_ms", 60_000),
        timeout_ms=1000,
        max_output_bytes=_KEPT_BYTES,
        format="plain",
    )
    try:
        with reported_output(call.context, session, "run"):
            told = await call.make(run_command, request, session.name)
    except WaitTimeout as problem:
        if "screen" not in problem.facts:
            raise
        return await _tell_unfinished(call, session, problem)
    except SessionNotFound:
        return _tell(f"[the session {session.name} was closed meanwhile]")
    return await _tell_run(call, session, told, note)


async def _tell_run(call: ToolCall, session: Session, told: Mapping[str, Any], note: str) -> ToolOutcome:
    by, number = told["finished_by"], told.get("command_id")
    if by == "command":
        rows = await _number_output(call, session, told)
        read = _read(call, session, number)
        end = f"[{_say_exit(told.get('exit_code'))}{_say_duration(told.get('duration_ms'))}{note}]"
        jobs = [f"{job['pid']} {' '.join(job['argv'] or [])[:60]}" for job in told.get("background", ())[:5]]
        background = clip(f"[in the background: {', '.join(jobs)}]", _budget(call) // 4) if jobs else ""
        denied = ""
        if "sandbox_denied" in told:
            profile = told["sandbox_denied"]["profile"]
            denied = f'[perhaps refused by the sandbox {profile}: ask(command, sandbox="off", reason) has a person run it without]'
        notes = [note for note in (end, background, denied) if note]
        return _tell(show_output(rows, _budget(call, *notes), read), *notes)
    if by == "exit":
        rows = await _number_output(call, session, told)
        end = f"[the session's program has ended, {_say_exit(session.exit_code)}]"
        return _tell(show_output(rows, _budget(call, end), _read(call, session, number)), end)
    screen = told["screen"]
    if screen["mode"] == "alt":
        return _tell_screen(call, screen, f"[full-screen program{note}, {say_where(screen)}: drive it with type]")
    log = session.commands
    if by == "prompt":
        idle = log is not None and log.current is None
        end = f"[nothing ran{note}]" if idle else f"[waits for input{note}: answer with type]"
    else:
        end = f"[silent now{note}; nobody tells whether the command has ended]"
    if not told.get("output"):
        return _tell_screen(call, screen, end)
    rows = await _number_output(call, session, told)
    return _tell(show_output(rows, _budget(call, end), _read(call, session, number)), end)


async def _tell_unfinished(call: ToolCall, session: Session, problem: WaitTimeout) -> ToolOutcome:
    if problem.facts.get("busy"):
        ways = (
            'wait(until="prompt") and run it again, type(keys="ctrl+c") ends what runs, open gives you another session'
        )
        return _tell_screen(call, problem.facts["screen"], f"[{problem.message.rstrip('.')}: {ways}]")
    number = problem.facts.get("command_id")
    state = (
        f'[still running after {problem.facts["timeout_ms"]} ms: wait(until="command"), or type(keys="ctrl+c") ends it]'
    )
    if number is None or problem.facts["screen"]["mode"] == "alt":
        return _tell_screen(call, problem.facts["screen"], state)
    return await _tell_command(call, session, int(number), state)


async def _number_output(call: ToolCall, session: Session, told: Mapping[str, Any]) -> list[NumberedLine]:
    """A run's output with the numbers of its lines; where its middle is missing, the lines of it that name an error."""
    text, cut = told.get("output") or "", told.get("truncated")
    if cut is None:
        return number_lines(text.split("\n")) if text else []
    gap = f"\n[... {cut['omitted_bytes']} bytes in {cut['omitted_lines']} lines left out ...]\n"
    head, _, tail = text.partition(gap)
    first = number_lines(head.split("\n"))
    ends = tail.split("\n")
    last = number_lines(ends, max(len(first) + 1, cut["total_lines"] - len(ends) + 1))
    wrong: list[NumberedLine] = []
    if told.get("command_id") is not None and told.get("exit_code") != 0:
        params = OutputParams(id=told["command_id"], regex=_WRONG, limit=200)
        page = await call.make(get_command_output, params, session.name)
        found = zip(page["numbers"], page["lines"], strict=True)
        wrong = [NumberedLine(at + 1, str(line)) for at, line in found if len(first) <= at < last[0].number - 1]
    # The whole gap is said to be left out, whatever of it is shown.
    return [*first, *(wrong or [NumberedLine(len(first) + 1, "…", last[0].number - 1)]), *last]


def _read(call: ToolCall, session: Session, number: int | None) -> str:
    here = not call.context.caller.via and _find_home(call) is session
    where = "" if here else f'session="{session.name}", '
    return f"look({where}scrollback=true" if number is None else f"look({where}command={number}"


def _say_exit(code: int | None) -> str:
    return "exit unknown" if code is None else f"exit {code}"


def _say_duration(ms: float | None) -> str:
    return f", {ms / 1000:.1f} s" if ms is not None and ms >= 1000 else ""


def _tell_screen(call: ToolCall, screen: Mapping[str, Any], end: str) -> ToolOutcome:
    return _tell(show_screen([paint(line) for line in screen["lines"]], _budget(call, end)), end)


async def _tell_command(call: ToolCall, session: Session, number: int, end: str) -> ToolOutcome:
    """What a command has printed, head and tail."""
    text = await read_output(session, session.history.get_command(number), _KEPT_BYTES)
    cut = {"omitted_bytes": text.omitted_bytes, "omitted_lines": text.omitted_lines, "total_lines": text.total_lines}
    told = {"output": text.text, "command_id": number, **({"truncated": cut} if text.truncated else {})}
    rows = await _number_output(call, session, told)
    return _tell(show_output(rows, _budget(call, end), _read(call, session, number)), end)


# type


async def _type(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    if ("text" in a) == ("keys" in a):
        raise InvalidRequest("Give either text or keys.", hint='Such as text="yes\\r", or keys="ctrl+c".')
    session = _find_session(call)
    before = await call.make(get_screen, Formatted(format="plain"), session.name)
    params = InputParams(data=a["text"]) if "text" in a else InputParams(data=a["keys"], encoding="keys")
    sent = await call.make(send_input, params, session.name)
    wait = WaitParams(timeout_ms=_SETTLE_MS, max_wait_ms=_TYPE_WAIT_MS, last_generation=sent.generation, command=True)
    try:
        ended = await call.make(await_state, wait, session.name)
    except WaitTimeout:
        ended = {"ended_by": "nothing"}
    if session.closed or not session.running:
        return _tell(f"[the session's program has ended, {_say_exit(session.exit_code)}]")
    end = ""
    if ended["ended_by"] == "command":
        command = session.history.get_command(ended["command_id"])
        end = f"[command {command.id} ended, {_say_exit(command.exit_code)}]"
    shown = await _show_change(call, session, before, end)
    return _tell(shown or ("" if end else "[nothing changed on the screen]"), end)


async def _show_change(call: ToolCall, session: Session, before: Mapping[str, Any], end: str) -> str:
    """What is new since that screen: printed lines, or the rows that a full-screen program has painted."""
    after = await call.make(get_screen, Formatted(format="plain"), session.name)
    if after["mode"] == "alt":
        where = say_where(after)
        if before["mode"] != "alt":
            note = f"[full-screen program, {where}]"
            return join(show_screen(after["lines"], _budget(call, end, note)), note)
        old, note = before["lines"], f"[rows that changed; {where}]"
        rows = [
            NumberedLine(at, f"{at}: {line}")
            for at, line in enumerate(after["lines"], 1)
            if at > len(old) or line != old[at - 1]
        ]
        return join(show_rows(rows, _budget(call, end, note)), note) if rows else ""
    if before["mode"] == "alt" or before["epoch"] != after["epoch"]:
        return show_screen([line for line in after["lines"] if line][-3:], _budget(call, end))
    start = _find_first_change(before, after)
    page = await call.make(
        get_scrollback, ScrollbackParams(since_line=start, limit=_PAGE_LINES, format="plain"), session.name
    )
    rows = number_lines(page["lines"], start + 1)
    while rows and not rows[-1].text:
        rows.pop()
    return show_output(rows, _budget(call, end), _read(call, session, None))


def _find_first_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """The line that the cursor was in, or one above it that is another now, as in a menu that is drawn in place."""
    first, start = before["first_line_index"], before["first_line_index"] + before["cursor"]["row"]
    for at in range(max(first, after["first_line_index"]), start):
        if after["lines"][at - after["first_line_index"]] != before["lines"][at - first]:
            return int(at)
    return int(start)


# look


async def _look(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    session = _find_session(call)
    color = bool(a.get("color"))
    if "command" in a:
        return await _look_at_command(call, session, color)
    if a.get("scrollback") or "search" in a or "from_line" in a:
        return await _look_back(call, session, color)
    screen = await call.make(get_screen, Formatted(format="styled" if color else "plain"), session.name)
    title = f", title {clip(session.title, 20)!r}" if session.title else ""
    state = "" if session.running else f", its program has ended ({_say_exit(session.exit_code)})"
    kind = "full-screen program, " if screen["mode"] == "alt" else ""
    return _tell_screen(call, screen, f"[{kind}{say_where(screen)}{title}{state}]")


async def _look_at_command(call: ToolCall, session: Session, color: bool) -> ToolOutcome:
    a = call.arguments
    number, first = a["command"], a.get("from_line", 1)
    if number == 0:
        known = session.history.list_commands()
        if not known:
            raise CommandNotFound(0)
        number = known[-1].id
    info = await call.make(get_command, CommandParams(id=number), session.name)
    state = "" if info["exit_code"] is None else f", exit {info['exit_code']}"
    form: Format = "styled" if color else "plain"
    if "search" in a:
        return await _search_command(call, session, number, form, state)
    params = OutputParams(id=number, offset=first - 1, limit=_PAGE_LINES, format=form)
    page = await call.make(get_command_output, params, session.name)
    rows = number_lines([paint(line) for line in page["lines"]], first)
    shown = show_page(rows, _budget(call), more=first - 1 + len(rows) < page["total"])
    return _tell(shown, f"[{page['total']} lines{state}]")


async def _search_command(call: ToolCall, session: Session, number: int, form: Format, state: str) -> ToolOutcome:
    a = call.arguments
    first, offset = a.get("from_line", 1), 0
    limit = _PAGE_LINES if first == 1 else _SEARCH_LINES
    while True:  # the matches before `from_line` are passed over
        params = OutputParams(id=number, offset=offset, limit=limit, search=a["search"], format=form)
        page = await call.make(get_command_output, params, session.name)
        offset += len(page["lines"])
        found = zip(page["numbers"], page["lines"], strict=True)
        rows = [NumberedLine(at + 1, paint(line)) for at, line in found if at + 1 >= first]
        more = offset < page["matches"]
        if rows or not more:
            break
    shown = show_page(rows, _budget(call), more=more, found=a["search"])
    return _tell(shown, f"[{page['matches']} of {page['total']} lines{state}]")


async def _look_back(call: ToolCall, session: Session, color: bool) -> ToolOutcome:
    """By the lasting numbers of lines; without one, the newest."""
    a = call.arguments
    first = a.get("from_line")
    form: Format = "styled" if color else "plain"
    if "search" in a:
        return await _search_back(call, session, form)
    params = ScrollbackParams(
        limit=_PAGE_LINES if first is not None else 200,
        since_line=first - 1 if first is not None else None,
        format=form,
    )
    page = await call.make(get_scrollback, params, session.name)
    rows = number_lines([paint(line) for line in page["lines"]], page["first_line"] + 1)
    if first is not None and page["first_line"] + len(rows) < page["total_lines"]:
        return _tell(show_page(rows, _budget(call), more=True))
    while rows and not rows[-1].text:
        rows.pop()
    if first is not None:
        return _tell(show_page(rows, _budget(call), more=False))
    end = f"[lines {rows[0].number}-{rows[-1].number}]" if rows else "[nothing was printed]"
    return _tell(show_output(rows, _budget(call, end), _read(call, session, None)), end)


async def _search_back(call: ToolCall, session: Session, form: Format) -> ToolOutcome:
    a = call.arguments
    wanted = a["search"].casefold()
    rows: list[NumberedLine] = []
    since = a.get("from_line", 1) - 1
    while True:
        params = ScrollbackParams(limit=_SEARCH_LINES, since_line=since, format=form)
        page = await call.make(get_scrollback, params, session.name)
        numbered = enumerate(page["lines"], page["first_line"] + 1)
        rows += [NumberedLine(at, paint(line).rstrip()) for at, line in numbered if wanted in unpaint(line).casefold()]
        since = page["first_line"] + len(page["lines"])
        if not page["lines"] or since >= page["total_lines"]:
            break
    return _tell(show_page(rows, _budget(call), more=False, found=a["search"]), f"[{len(rows)} lines match]")


# wait


async def _wait(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    session = _find_session(call)
    until = a.get("until")
    if until is None and "match" not in a:
        until = "command"
    params = WaitParams(
        timeout_ms=2000 if until == "quiet" else None,
        max_wait_ms=a.get("timeout_ms", 60_000),
        regex=a.get("match"),
        command=until == "command",
        prompt=until == "command" and "match" not in a,
        input_wanted=until == "input",
        exit=until == "exit",
    )
    try:
        with reported_output(call.context, session, "wait"):
            ended = await call.make(await_state, params, session.name)
    except WaitTimeout:
        screen = await call.make(get_screen, Formatted(format="plain"), session.name)
        return _tell_screen(call, screen, "[it did not come within timeout_ms; nothing was stopped]")
    by = ended["ended_by"]
    if by == "regex":
        return _tell(f"[matched: {clip(str(ended.get('matched', '')), _budget(call) - 10)}]")
    if by == "exit":
        return _tell(f"[the session's program has ended, {_say_exit(session.exit_code)}]")
    log = session.history.list_commands()
    number = ended.get("command_id") or (log[-1].id if by == "prompt" and log else None)
    if number is not None:
        command = session.history.get_command(number)
        end = f"[{_say_exit(command.exit_code)}{_say_duration(command.duration_ms)}]"
        return await _tell_command(call, session, number, end)
    screen = await call.make(get_screen, Formatted(format="plain"), session.name)
    return _tell_screen(call, screen, f"[{'waits for input' if by == 'input_wanted' else by}]")


# sessions


async def _sessions(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    action = a.get("action", "list")
    if action == "list":
        return _tell_sessions(call, await call.make(list_sessions, ListParams()))
    if action == "open":
        session = await _open(call, **call.pick("command", "cwd"), name=a.get("session"))
        here = not call.context.caller.via and _find_home(call) is session
        yours = ", and yours where you name none" if here else ""
        return _tell(f"[{session.name} is open{yours}]")
    session = _find_session(call)
    if action == "rename":
        if "new_name" not in a:
            raise InvalidRequest("new_name is missing.", hint="Give the name that it shall have.")
        await call.make(update_session, SessionPatch(name=a["new_name"]), session.name)
        return _tell(f"[{session.name}]")
    name = session.name
    survivors = (await call.make(kill_session, session=name)).survivors
    return _tell(f"[{name}: the processes {survivors} could not be killed]" if survivors else f"[{name} is closed]")


def _tell_sessions(call: ToolCall, infos: Sequence[Mapping[str, Any]]) -> ToolOutcome:
    lines = [line for info in infos if (line := _describe(call, info))]
    shown = fit_head(number_lines(lines), _budget(call) - 20)
    left = len(lines) - len(shown)
    rest = f"[{left} more; max_tokens gives more of them]" if left else ""
    return _tell(*(row.text for row in shown), rest if lines else "[none]")


def _describe(call: ToolCall, info: Mapping[str, Any]) -> str:
    """One line; none of a session that ended while the list was made."""
    info = {**info, "command": clip(" ".join(info["command"].split()), 60), "cwd": clip(info["cwd"], 60)}
    if info.get("host") is not None:
        away = ", its machine is out of reach" if info.get("unreachable_since") is not None else ""
        return f"{info['name']}: {info['command']} in {info['cwd']}{'' if info['running'] else ', ended'}{away}"
    session = call.rooms.registry.find_session(info["name"])
    if session is None:
        return ""
    yours = " (yours)" if _find_home(call) is session else ""
    state = "" if info["running"] else f", ended, {_say_exit(info['exit_code'])}"
    taken = f", taken by {session.input.taken_by}" if session.input.taken_by else ""
    return f"{info['name']}{yours}: {info['command']} in {info['cwd']}{state}{taken}"


# ask


async def _ask(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    request: JsonObject = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": a["command"]}
        | ({"note": a["reason"]} if "reason" in a else {})
        | ({"sandbox": a["sandbox"]} if "sandbox" in a else {}),
        "runtime": {"timeout_ms": a.get("timeout_ms", 300_000)} | ({"cwd": a["cwd"]} if "cwd" in a else {}),
    }
    answer = await call.make(call_terminal, ContractParams(request=AnyJson(request)))
    told = answer.payload
    if answer.code is not None:
        raise _explain_refusal(told, answer.code)
    result = told["result"]
    if result.get("approval") == "pending":
        # No tool here could tell what became of it later, so it does not stay.
        withdraw: JsonObject = {"action": "terminate", "target": told["identity"]}
        await call.make(call_terminal, ContractParams(request=AnyJson(withdraw)))
        raise ToolFailure("PM_TERM_TIMEOUT", "Nobody answered in time; the request is withdrawn and nothing ran.")
    text = "\n".join(
        str(result.get(stream) or "").rstrip("\n") for stream in ("stdout", "stderr") if result.get(stream)
    )
    rows = number_lines(text.split("\n")) if text else []
    edited = clip(f", as {result['edited_argv']}", _budget(call) // 2) if result.get("edited_argv") else ""
    by = f"approved by {result.get('approved_by') or 'the policy'}{edited}"
    state = "it still runs in the person's window" if result.get("running") else _say_exit(result.get("exit_code"))
    end = f"[{by}; {state}]"
    shown = fit_rows(rows, _budget(call, end), lambda first, last, _: f"[lines {first}-{last} left out]")
    return _tell("\n".join(shown), end)


def _explain_refusal(told: Mapping[str, Any], code: str) -> ToolFailure:
    said = str(told["error"]["message"])
    hints = {
        "PM_TERM_DECLINED": "A person said no: do not try it another way; ask what they want instead.",
        "PM_TERM_GUI_UNAVAILABLE": "Nobody can be asked here: no desktop program is there. Tell the person in your answer.",
        "PM_TERM_TIMEOUT": "Nobody answered in time. Nothing ran.",
        "PM_TERM_BLOCKED_DESTRUCTIVE": "The policy refuses it, and nobody can approve it. Change the command.",
    }
    return ToolFailure(code, said, hint=hints.get(code))


_SESSION = s.text("Session; left out: your own.", maxLength=129)
_SESSION_NAME = {"type": "string", "maxLength": 129}
_TOKENS = s.number("Most tokens to return.", 100, 50_000, BUDGET)
_TIMEOUT = {"type": "integer", "minimum": 1, "maximum": s.MAX_WAIT_MS, "default": 60_000}

_lean = partial(OperationTool, output_schema=None, family="lean")

TOOLS = (
    _lean(
        name="run",
        title="Run a command",
        description=(
            "Run a shell command in a terminal that keeps its folder and variables between calls; the first choice for "
            "everything. Returns the output and `[exit N]`. Long output keeps its beginning, its end and every line that "
            "names an error, and says how `look` reads the rest. If the command asks something or is a full-screen program, "
            "you get what it shows: answer with `type`. Past timeout_ms it goes on: use `wait`. "
            'Example: {"command": "git status --short"}'
        ),
        input_schema=s.arguments(
            ["command"],
            command={"type": "string", "maxLength": 4_000_000},
            session=_SESSION,
            timeout_ms=_TIMEOUT,
            max_tokens=_TOKENS,
        ),
        spell=_run,
        calls=(run_command, create_session, get_command_output),
        default_timeout_ms=60_000,
        schema_version=2,
        timeout_argument="timeout_ms",
        annotations=Annotations(destructive=True, open_world=True),
    ),
    _lean(
        name="type",
        title="Type",
        description=(
            "Type into the program that runs: an answer to a question, keys in vim or a menu, ctrl+c. Give `text` (\\r is "
            "Enter) or `keys` (names separated by blanks: enter, escape, ctrl+c, up, f5). Returns what changed on the screen. "
            'Not for shell commands: use `run`. Example: {"text": "y\\r"}'
        ),
        input_schema=s.arguments(
            [],
            text={"type": "string", "minLength": 1},
            keys={"type": "string", "minLength": 1},
            session=_SESSION,
            max_tokens=_TOKENS,
        ),
        spell=_type,
        calls=(send_input, await_state, get_screen, get_scrollback),
        default_timeout_ms=60_000,
        annotations=Annotations(destructive=True, open_world=True),
    ),
    _lean(
        name="look",
        title="Look",
        description=(
            "Read without touching anything: the screen; with `command`, the output of that command (0: the newest) from "
            "line `from_line` on; with `scrollback`, past lines of the terminal. `search` gives only lines with that text, "
            'with their numbers. Example: {"command": 7, "search": "error"}'
        ),
        input_schema=s.arguments(
            [],
            session=_SESSION,
            command={"type": "integer", "minimum": 0, "maximum": 2**53},
            scrollback={"type": "boolean"},
            from_line={"type": "integer", "minimum": 1, "maximum": 2**53},
            search={"type": "string", "minLength": 1, "maxLength": 4096},
            color={"type": "boolean", "description": "Show colours as <fg=red>…</>."},
            max_tokens=_TOKENS,
        ),
        spell=_look,
        calls=(get_screen, get_scrollback, get_command, get_command_output),
        schema_version=2,
        reads=True,
        annotations=Annotations(read_only=True, idempotent=True),
    ),
    _lean(
        name="wait",
        title="Wait",
        description=(
            "Wait for what was started: until the command ends (then its output and `[exit N]` come back), the program wants "
            "input, the terminal is quiet, the session's program exits, or a printed line matches the regular expression "
            '`match`. Nothing is stopped when timeout_ms is over. Example: {"match": "listening on .*"}'
        ),
        input_schema=s.arguments(
            [],
            session=_SESSION,
            until={"type": "string", "enum": ["command", "input", "quiet", "exit"]},
            match={"type": "string", "minLength": 1, "maxLength": 10_000},
            timeout_ms=_TIMEOUT,
            max_tokens=_TOKENS,
        ),
        spell=_wait,
        calls=(await_state, get_screen, get_command_output),
        default_timeout_ms=60_000,
        timeout_argument="timeout_ms",
        annotations=Annotations(read_only=True),
    ),
    _lean(
        name="sessions",
        title="Sessions",
        description=(
            "List the terminals (people's and other agents' too), open one, close it with all it runs, or rename it. `run` opens "
            "yours by itself; open more to do things at the same time. "
            'Example: {"action": "open", "session": "server", "cwd": "web"}'
        ),
        input_schema=s.arguments(
            [],
            action={"type": "string", "enum": ["list", "open", "close", "rename"], "default": "list"},
            session=_SESSION_NAME,
            command=s.text("open: the program; left out, the user's shell.", maxLength=131_072),
            cwd={"type": "string", "maxLength": 4096},
            new_name=_SESSION_NAME,
            max_tokens=_TOKENS,
        ),
        schema_version=2,
        spell=_sessions,
        addresses=("session", "new_name"),
        calls=(list_sessions, create_session, kill_session, update_session),
        default_timeout_ms=60_000,
        annotations=Annotations(destructive=True),
    ),
    _lean(
        name="ask",
        title="Ask a person",
        description=(
            "Have a person approve a command before it runs, in their window: for what is risky or not yours to decide. Returns "
            "its output and who approved, or that it was declined; says so if nobody can be asked. "
            'Example: {"command": "git push --force", "cwd": "/srv/app"}'
        ),
        input_schema=s.arguments(
            ["command"],
            command={"type": "string", "minLength": 1},
            cwd={"type": "string", "minLength": 1},
            reason={"type": "string", "minLength": 1, "maxLength": 2000},
            sandbox=s.choice("Run it without the sandbox; say the reason.", "off"),
            timeout_ms={"type": "integer", "minimum": 1, "maximum": 3_600_000, "default": 300_000},
            max_tokens=_TOKENS,
        ),
        spell=_ask,
        calls=(call_terminal,),
        default_timeout_ms=300_000,
        timeout_argument="timeout_ms",
        annotations=Annotations(destructive=True, open_world=True),
    ),
)
