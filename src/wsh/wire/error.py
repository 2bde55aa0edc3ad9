"""Every failure of wsh, as one tree of exceptions with stable codes.

A class carries a `code` (what programs compare), a message it builds itself (what people read), an optional `hint`
(what to try next) and its facts as attributes. `to_wire` and `from_wire` are inverse, so that a client raises what the
server raised. Which HTTP status or JSON-RPC number a code gets is the doors' business, not ours.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported: a command that is refused would pay for it
    from collections.abc import Iterable, Mapping
    from typing import Any, ClassVar, Literal, TypeAlias

    from wsh.wire.json.object import JsonObject

    Blame: TypeAlias = Literal["caller", "child", "state", "busy", "policy", "system"]
    HiddenOutcome: TypeAlias = Literal["pending", "declined", "expired", "answered", "gone", "refused"]


class WshError(Exception):
    """Root of all our errors. `blame` says whose doing it was."""

    code: ClassVar[str] = "internal_error"
    blame: ClassVar[Blame] = "system"

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def to_wire(self) -> JsonObject:
        wire: JsonObject = {"code": self.code, "message": self.message}
        if self.hint:
            wire["hint"] = self.hint
        if self.facts:
            wire["details"] = dict(self.facts)
        return wire


class InternalError(WshError):
    """Something unexpected; its text is in the log, never on the wire."""

    def __init__(self, message: str = "An internal error occurred.", **facts: object) -> None:
        super().__init__(message, hint="Look into the server's log; the fault is ours.", **facts)


# what the caller asked cannot be meant


class InvalidRequest(WshError):
    code = "invalid_request"
    blame: ClassVar[Blame] = "caller"


class InvalidSessionName(InvalidRequest):
    code = "invalid_session_name"

    def __init__(self, name: object) -> None:
        super().__init__(
            f"{str(name)[:80]!r} is not a session name.",
            hint="Use 1 to 64 letters, digits, '-', '_' or '.', and no '-' in front.",
            name=str(name)[:128],
        )


class InvalidHostName(InvalidRequest):
    code = "invalid_host_name"

    def __init__(self, name: object) -> None:
        super().__init__(
            f"{str(name)[:80]!r} is not the name of a host.",
            hint="Use 1 to 64 letters, digits, '-', '_' or '.', and no '-' in front. A slash ends a host's name: host/session.",
            name=str(name)[:128],
        )


class InvalidSize(InvalidRequest):
    def __init__(self, rows: object, cols: object) -> None:
        super().__init__(
            f"A terminal of {rows} rows and {cols} columns is not possible.",
            hint="Rows and columns are whole numbers from 1 to 1000.",
            rows=rows,
            cols=cols,
        )


class InvalidEnvironment(InvalidRequest):
    code = "invalid_env"

    def __init__(self, key: object) -> None:
        super().__init__(
            f"The environment variable {key!r} is not usable.",
            hint="Names are non-empty without '=' or NUL; values are strings without NUL.",
            key=str(key)[:128],
        )


class InvalidTag(InvalidRequest):
    code = "invalid_tag"

    def __init__(self, tag: object) -> None:
        super().__init__(
            f"{str(tag)[:80]!r} is not a tag.",
            hint="Use 1 to 64 letters, digits, '-', '_', '.', ':' or '/'.",
        )


class InvalidFormat(InvalidRequest):
    code = "invalid_format"

    def __init__(self, given: object, known: str) -> None:
        super().__init__(f"{given!r} is not a format.", hint=f"Use {known}.")


class InvalidKey(InvalidRequest):
    code = "invalid_key"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key[:80]!r} is not a key name.",
            hint="Write keys as 'enter', 'ctrl+c', 'shift+tab', 'alt+left', 'f5' or a single character.",
            key=key[:80],
        )


class InvalidPattern(InvalidRequest):
    code = "invalid_pattern"

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(
            f"The regular expression {pattern[:200]!r} does not compile: {problem}.",
            hint="Correct the expression, or search for literal text instead.",
        )


class ProgramNotFound(InvalidRequest):
    code = "program_not_found"

    def __init__(self, program: str) -> None:
        super().__init__(
            f"There is no program {program!r} that can be run here.",
            hint="Check the spelling, give an absolute path, or look at PATH.",
            program=program,
        )


class CwdNotFound(InvalidRequest):
    code = "cwd_not_found"

    def __init__(self, cwd: str) -> None:
        super().__init__(
            f"The working directory {cwd!r} is not a directory that can be entered.",
            hint="Create it first, or choose another.",
            cwd=cwd,
        )


class InvalidOverlay(InvalidRequest):
    code = "invalid_overlay"


class InvalidPanel(InvalidRequest):
    code = "invalid_panel"


class NotFocusable(InvalidRequest):
    code = "not_focusable"

    def __init__(self, element: str) -> None:
        super().__init__(
            f"Element {element!r} cannot take focus.",
            hint="Create it with focusable: true.",
            id=element,
        )


# what the caller named is not there


class SessionRequired(InvalidRequest):
    code = "session_required"

    def __init__(self) -> None:
        super().__init__("This method needs a session.", hint='Give the name as "session" beside "method".')


class NotFound(WshError):
    code = "not_found"
    blame: ClassVar[Blame] = "caller"


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no session named {name!r}.",
            hint="List the sessions, or create it first.",
            session=name,
        )


class HostNotFound(NotFound):
    code = "host_not_found"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"There is no host named {name!r}.",
            hint=f"Hosts are {', '.join(known)}." if known else "Add it with `wsh host add`.",
            host=name,
        )


class OverlayNotFound(NotFound):
    code = "overlay_not_found"

    def __init__(self, element: str) -> None:
        super().__init__(
            f"There is no overlay {element!r} in this session.",
            hint="List the overlays; it may have been removed.",
            id=element,
        )


class PanelNotFound(NotFound):
    code = "panel_not_found"

    def __init__(self, element: str) -> None:
        super().__init__(
            f"There is no panel {element!r} in this session.",
            hint="List the panels; it may have been removed.",
            id=element,
        )


class ElementNotFound(NotFound):
    def __init__(self, element: str) -> None:
        super().__init__(
            f"There is no overlay or panel {element!r} in this session.",
            hint="List overlays and panels to see their ids.",
            id=element,
        )


class NoSessions(NotFound):
    code = "no_sessions"

    def __init__(self) -> None:
        super().__init__("There are no sessions to wait for.", hint="Create a session first.")


class ApprovalNotFound(NotFound):
    code = "approval_not_found"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"There is no request {id[:80]!r}.", hint="GET /approvals lists those that wait, and the last that ended."
        )


class CommandNotFound(NotFound):
    code = "command_not_found"

    def __init__(self, command: object) -> None:
        super().__init__(
            f"There is no command {command!r} in this session's history.",
            hint="List the commands; old ones leave the bounded history.",
            command=str(command),
        )


# the thing is there, but not in a state for this


class StateConflict(WshError):
    code = "conflict"
    blame: ClassVar[Blame] = "state"


class ApprovalSettled(StateConflict):
    """The answer came too late, or was the second one."""

    code = "approval_settled"

    def __init__(self, id: str, state: str, reason: str | None = None) -> None:
        word = {"claimed": "approved", "started": "approved", "PM_TERM_DISCONNECTED": "lost"}.get(state, state)
        why = f" ({reason.rstrip('.')})" if reason else ""
        super().__init__(
            f"The request was {word}{why} already; this answer changes nothing.",
            hint="An answer is used once. If it is still wanted, the caller asks again.",
            id=id,
            state=word,
        )


class ApprovalChanged(StateConflict):
    """What was answered is not what is shown now, or not what would run."""

    code = "approval_changed"

    def __init__(self, id: str, message: str) -> None:
        super().__init__(message, hint="Nothing ran. Look at the request again, and answer what it shows.", id=id)


class ConfirmationNeeded(StateConflict):
    code = "confirmation_needed"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, id: str, risk: str, reasons: list[str]) -> None:
        why = f": {'; '.join(reasons)}" if reasons else ""
        super().__init__(
            f"This is {risk}{why}. It runs only if that is confirmed on purpose.",
            hint="Answer again with confirm: true, if it is meant.",
            id=id,
            risk=risk,
            reasons=reasons,
        )


class SessionNameTaken(StateConflict):
    code = "session_name_conflict"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"A session named {name!r} exists already.",
            hint="Choose another name, or kill that session first; one that has exited keeps its name until killed.",
            session=name,
        )


class SessionExited(StateConflict):
    code = "session_exited"
    blame: ClassVar[Blame] = "child"

    def __init__(self, name: str, exit_code: int | None) -> None:
        how = "has exited" if exit_code is None else f"has exited with status {exit_code}"
        super().__init__(
            f"The program in session {name!r} {how}.",
            hint="Its screen and scrollback can still be read; create a new session to go on.",
            session=name,
            exit_code=exit_code,
        )


class SessionTaken(StateConflict):
    code = "session_taken"
    blame: ClassVar[Blame] = "busy"

    def __init__(self, name: str, by: str) -> None:
        super().__init__(
            f"A person ({by}) has taken over session {name!r}.",
            hint="Read the screen while you wait; input is possible again when it is handed back.",
            session=name,
            taken_by=by,
        )


class LineInUse(StateConflict):
    """Somebody has typed something and not pressed Enter: what would be typed now would be added to it."""

    code = "line_in_use"
    blame: ClassVar[Blame] = "busy"

    def __init__(self, name: str, *, own: bool, text: str | None, **facts: Any) -> None:
        if "asks" in facts:
            what = "something hidden, such as a password" if facts["hidden"] else "input"
            StateConflict.__init__(
                self,
                f"In session {name!r} `{str(facts['asks'])[:200]}` runs and asks for {what}. Nothing was typed.",
                hint="Answer it by sending input, wait for its end, or give answer: true to type the line there.",
                session=name,
                text=text,
                own=own,
                **facts,
            )
            return
        author = facts.get("typed_by")
        who = "you" if own else f"{author['kind']} {author['id']}" if author else "somebody"
        shown = "something that is not shown" if text is None else f"{text[:200]!r}"
        stands = f"is not empty: {who} typed {shown} without completing it"
        if facts.get("continuation"):
            begun = f"{text.split(chr(10))[0][:200]!r}" if text else "it"
            stands = f"is the middle of a command: the shell asks for the rest of {begun}, such as a closing quote"
        go_on = (
            "It is your own: go on with it by sending input, or "
            if own
            else "Wait until it is completed, use another session, or "
        )
        super().__init__(
            f"The line in session {name!r} {stands}. Nothing was typed.",
            hint=go_on + "give clear_line: true; a person's text is put back afterwards where the shell can.",
            session=name,
            text=text,
            own=own,
            **facts,
        )

    @property
    def typed_by(self) -> Mapping[str, object] | None:
        author = self.facts.get("typed_by")
        return author if isinstance(author, dict) else None


class InputCaptured(StateConflict):
    code = "input_captured"
    blame: ClassVar[Blame] = "busy"

    def __init__(self, owner: str) -> None:
        super().__init__(
            "Input is captured by another already.",
            hint="Try again when it is released; a person can end it with Ctrl+\\.",
            owner=owner,
        )


class AlreadyInAltScreen(StateConflict):
    code = "already_in_alt_screen"

    def __init__(self, name: str) -> None:
        super().__init__(f"Session {name!r} is in alternate screen mode already.", session=name)


class NotInAltScreen(StateConflict):
    code = "not_in_alt_screen"

    def __init__(self, name: str) -> None:
        super().__init__(f"Session {name!r} is not in alternate screen mode.", session=name)


# time and limits


class WaitTimeout(WshError):
    """A wait reached its deadline. Nothing was stopped by it."""

    code = "idle_timeout"
    blame: ClassVar[Blame] = "state"

    def __init__(self, message: str, *, timeout_ms: int, hint: str | None = None, **facts: object) -> None:
        super().__init__(
            message,
            hint=hint or "Wait again with a larger deadline, or read the screen as it is.",
            timeout_ms=timeout_ms,
            **facts,
        )

    @property
    def timeout_ms(self) -> int:
        return int(self.facts["timeout_ms"])


class IdleSuperseded(WshError):
    code = "idle_superseded"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__("A newer wait on this connection replaced this one.")


class LimitReached(WshError):
    code = "resource_limit_reached"
    blame: ClassVar[Blame] = "busy"

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(
            f"The limit of {limit} {what} is reached.",
            hint=f"Remove some, or raise the setting {setting}.",
            limit=limit,
            setting=setting,
        )


class MaxSessionsReached(LimitReached):
    code = "max_sessions_reached"


class TooLarge(WshError):
    code = "too_large"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, what: str, limit_bytes: int, setting: str) -> None:
        super().__init__(
            f"{what} is larger than {limit_bytes} bytes.",
            hint=f"Send less at a time, or raise the setting {setting}.",
            limit_bytes=limit_bytes,
            setting=setting,
        )


_DISK_WORDS = {
    "space": ("is full", "Delete files there"),
    "inodes": ("has no inodes left, so that no file can be made on it", "Delete many small files there"),
    "writing": ("is read-only", "Mount it for writing"),
}


class DiskFull(WshError):
    """A file could not be made or written, because its disk has no room or no inodes left, or is read-only."""

    code = "disk_full"
    blame: ClassVar[Blame] = "system"

    def __init__(self, path: str | None = None, lacking: Literal["space", "inodes", "writing"] = "space") -> None:
        where = f"The disk of {path!r}" if path else "A disk of the server"
        what, remedy = _DISK_WORDS[lacking]
        super().__init__(
            f"{where} {what}.", hint=f"{remedy} and try again; nothing has to be restarted.", lacking=lacking
        )


class DescriptorsExhausted(WshError):
    """The server or its keeper may open no more files; what is left is kept for ending and reading sessions."""

    code = "no_descriptors"
    blame: ClassVar[Blame] = "busy"

    def __init__(self, whose: str = "server") -> None:
        super().__init__(
            f"The {whose} has no file descriptors left for this.",
            hint="Kill sessions that are not needed, or raise the limit of open files (`ulimit -n`, LimitNOFILE=) and "
            "start server and keeper anew.",
            whose=whose,
        )


class ShuttingDown(WshError):
    code = "shutting_down"
    blame: ClassVar[Blame] = "system"

    def __init__(self) -> None:
        super().__init__("The server is shutting down.", hint="Try again in a moment.")


class SessionCreateFailed(WshError):
    code = "session_create_failed"
    blame: ClassVar[Blame] = "system"


class KeeperGone(WshError):
    """The process that holds the terminals cannot be reached."""

    code = "keeper_gone"
    blame: ClassVar[Blame] = "system"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The keeper of the terminals cannot be reached: {problem}.",
            hint="Restart the server; sessions whose keeper died cannot be brought back, their journals can be read.",
        )


class KeeperIncompatible(KeeperGone):
    """A keeper of another version holds the terminals."""

    code = "keeper_incompatible"

    def __init__(self, speaks: object, ours: int) -> None:
        WshError.__init__(
            self,
            f"The running keeper speaks protocol {speaks}, this server speaks {ours}.",
            hint="It outlived an upgrade: use the version it came with, or end its sessions with that `wsh stop`.",
            speaks=speaks,
            ours=ours,
        )


class ServerGone(WshError):
    code = "server_gone"
    blame: ClassVar[Blame] = "system"

    def __init__(self, problem: str, hint: str = "Start it with `wsh server`, or look at `wsh doctor`.") -> None:
        super().__init__(f"The wsh server cannot be reached: {problem}.", hint=hint)


class ServerSilent(WshError):
    """The server of this user runs and does not answer: it is stopped or stuck."""

    code = "server_silent"
    blame: ClassVar[Blame] = "system"

    def __init__(self, pid: int | None, ended: int | None = None) -> None:
        """`ended` is the number of sessions that were ended without the server's help."""
        named = "The server" if pid is None else f"The server (pid {pid})"
        done = "" if ended is None else f" {ended} sessions were ended through their keeper."
        kill = "End its process." if pid is None else f"`kill -9 {pid}` ends it."
        go_on = " The sessions go on, and `wsh attach` or `wsh server` brings them back." if ended is None else ""
        super().__init__(f"{named} does not answer.{done}", hint=f"It is stopped or stuck. {kill}{go_on}", pid=pid)


class HostUnreachable(WshError):
    """Another machine cannot be reached now. `made` says whether the call was made there: "no", or "unknown"."""

    code = "host_unreachable"
    blame: ClassVar[Blame] = "system"

    def __init__(
        self,
        name: str,
        problem: str,
        *,
        since: float | None = None,
        last_seen: float | None = None,
        made: Literal["no", "unknown"] = "no",
    ) -> None:
        done = "" if made == "no" else " The call was sent, and whether it was made there is not known."
        super().__init__(
            f"The host {name!r} cannot be reached: {problem.rstrip('.')}.{done}",
            hint="wsh reconnects by itself; its sessions go on there. Look at `wsh host list`, or `wsh fleet list`."
            + ("" if made == "no" else " Look at the session before you try again."),
            host=name,
            since=since,
            last_seen=last_seen,
            made=made,
        )


class SnapshotCorrupt(WshError):
    """A stored terminal that cannot be read back. The journal, where there is one, can still be replayed."""

    code = "snapshot_corrupt"
    blame: ClassVar[Blame] = "system"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The snapshot of a terminal cannot be used: {problem}.",
            hint="Restore from an older snapshot, or replay the journal.",
            problem=problem,
        )


class SnapshotNotPossible(WshError):
    """The terminal is in a state that cannot be stored, mostly inside a very long escape sequence. It passes."""

    code = "snapshot_not_possible"
    blame: ClassVar[Blame] = "child"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"The terminal cannot be stored now: an escape sequence of more than {limit_bytes} bytes is unfinished, "
            "or the screen is too narrow for what it holds.",
            hint="Take the snapshot later; until then the last one and the journal hold everything.",
            limit_bytes=limit_bytes,
        )


class CapabilityMissing(WshError):
    """Something this machine cannot do now: an extra, a font or a setting is missing."""

    code = "capability_missing"
    blame: ClassVar[Blame] = "system"


class Refused(WshError):
    """Refused by policy or by the caller's role."""

    code = "forbidden"
    blame: ClassVar[Blame] = "policy"


class OwnerOnly(Refused):
    """`fault` says why a process of the owner's user counts as an agent."""

    def __init__(self, fault: str | None = None) -> None:
        if fault is None:
            super().__init__(
                "Only the owner may do this.", hint="Use the owner's token; an agent's token is not enough."
            )
        else:
            super().__init__(
                f"Only the owner may do this, and the process that asks {fault}.",
                hint="Do it in a terminal outside wsh, started like the server, or with the owner's token.",
            )


class ToolsetRefused(Refused):
    """The server was started without the tools that this belongs to, so that all that agents do is mediated."""

    def __init__(self, family: str, offered: Iterable[str]) -> None:
        super().__init__(
            f"This server offers agents {', '.join(offered)} and not {family}, which this belongs to.",
            hint="Use what is offered (GET /server/info, tools/list), or ask the owner for a server with more toolsets.",
        )


_HIDDEN_WORDS: dict[HiddenOutcome, tuple[str, str]] = {
    "pending": (
        "A person is asked whether your text may be typed there, and has not answered yet.",
        "Send the same input again to go on waiting; nobody is asked twice and nothing is typed twice.",
    ),
    "declined": ("The person declined.", "Do not try it another way; ask what they want instead."),
    "expired": ("Nobody answered in time.", "Ask the person before you try again."),
    "answered": ("A person typed there meanwhile.", "Go on: wait, or look at the screen."),
    "gone": ("The prompt is no longer there.", "Look at the screen before you send anything else."),
    "refused": (
        "Agents do not type there.",
        "Send it by send_input or run, which ask a person, or let the person type it.",
    ),
}


class HiddenInputRefused(Refused):
    """The program hides what is typed, such as a password: an agent's text goes there only if a person allows it."""

    code = "hidden_prompt"

    def __init__(self, name: str, outcome: HiddenOutcome, **facts: Any) -> None:
        said, hint = _HIDDEN_WORDS[outcome]
        reason = f" They say: {facts['reason']}" if facts.get("reason") else ""
        super().__init__(
            f"The program in session {name!r} hides what is typed, so nothing was typed. {said}{reason}",
            hint=hint,
            session=name,
            outcome=outcome,
            **facts,
        )


class SandboxUnavailable(Refused):
    """A sandbox was asked for, and nothing here holds what its profile promises: the session is not started."""

    code = "sandbox_unavailable"

    def __init__(self, missing: str = "nothing here can hold it", hint: str = "", **facts: Any) -> None:
        super().__init__(f"No session without its sandbox: {missing}.", hint=hint or "Look at `wsh doctor`.", **facts)


class SandboxRefused(Refused):
    """What was asked for lies outside the caller's sandbox, or cannot be a sandbox: a wider profile, a folder that must stay closed."""

    code = "sandbox_refused"


def _tree(root: type[WshError]) -> list[type[WshError]]:
    found = [root]
    for child in root.__subclasses__():
        found += _tree(child)
    return found


def list_error_classes() -> list[type[WshError]]:
    """All classes of the tree, the root first; for documentation and tests."""
    return _tree(WshError)


def from_wire(wire: Mapping[str, object]) -> WshError:
    """The exception that another process put on the wire; an unknown code becomes a plain `WshError`."""
    code = str(wire.get("code", "internal_error"))
    chosen: type[WshError] = WshError
    for cls in list_error_classes():
        if cls.code == code:
            chosen = cls
            break
    error = chosen.__new__(chosen)
    details = wire.get("details")
    facts = dict(details) if isinstance(details, dict) else {}
    hint = wire.get("hint") or facts.get("hint")
    facts.pop("hint", None)  # the contract has it among the details
    WshError.__init__(error, str(wire.get("message", code)), hint=str(hint) if hint else None, **facts)
    if chosen is WshError:
        error.code = code  # type: ignore[misc]  # an instance speaks a code of a newer server
    return error
