"""The window's end of the bridge: judges by the policy, asks the person, runs what they approved in a terminal of ours.

Lives in the core's thread. What the person is shown is the evidence that the bridge resolved, and what runs is the order that the bridge
checked against it again.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from wsh.bridge import frame
from wsh.bridge.desktop import AnswerRefused, Judgement, Order, Pending, Sink, StartFailed, TypedLine
from wsh.bridge.escape import escape_argument
from wsh.bridge.evidence import Evidence
from wsh.bridge.frame import Outcome, Policy, Request
from wsh.desktop.scene import HistoryRow, RequestRow
from wsh.policy import Effect, Mode, Risk, Verdict, decide
from wsh.policy import Request as Question
from wsh.policy.audit import Audit
from wsh.policy.rule import RuleError, parse_pattern
from wsh.policy.store import PolicyStore
from wsh.session.event import Actor, CommandFinished, Destroyed, Exited, Input, SessionEvent
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec, default_shell
from wsh.wire.error import SessionExited, SessionNotFound, WaitTimeout, WshError
from wsh.wire.setting import Settings

_EFFECTS: dict[Effect, frame.Effect] = {Effect.ALLOW: "allow", Effect.ASK: "ask", Effect.DENY: "refuse"}
_RISKS: dict[Risk, frame.Risk] = {
    Risk.NONE: "none",
    Risk.DESTRUCTIVE: "destructive",
    Risk.IRRECOVERABLE: "irrecoverable",
}

_LINE_BYTES = 256 * 1024
"""Most output that is told with the end of a line."""
KEPT = 500
"""Requests of the past that are at hand."""


class WindowEnd:
    """Implements `DesktopEnd`."""

    def __init__(
        self,
        registry: SessionRegistry,
        settings: Settings,
        policy: PolicyStore,
        audit: Audit,
        *,
        on_request: Callable[[RequestRow], None],
        on_closed: Callable[[str, str, str, str], None],
        on_history: Callable[[HistoryRow], None],
        on_session: Callable[[Session], None],
        write_rule: Callable[[str, str, str], None],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._policy = policy
        self.audit = audit
        self._on_request = on_request
        self._on_closed = on_closed
        self._on_history = on_history
        self._on_session = on_session
        self._write_rule = write_rule
        self._size = size
        self.pending: dict[str, Pending] = {}
        self.cards: dict[str, RequestRow] = {}
        """What waits, as it is shown."""
        self.history = read_history(audit)
        """What was asked before, oldest first, by the request's id."""
        self._asked_by: dict[str, str] = {}
        """terminal id of the bridge → id of the request that opened it."""
        self._by_terminal: dict[str, str] = {}
        """terminal id of the bridge → name of our session."""

    # what commands start from

    def base_environment(self) -> Mapping[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith(("WSH_", "PM_")) and k != "QT_QPA_PLATFORM"}

    def default_cwd(self) -> str:
        return str(Path.home())

    def shell(self) -> Sequence[str]:
        return [default_shell(self._settings, os.environ)]

    # judging

    def judge(self, request: Request, evidence: Evidence) -> Judgement:
        if request.kind == "open":
            return Judgement("ask", reasons=("opens a terminal without a command",))
        question = Question(
            actor=request.asker.client or request.asker.caller,
            argv=evidence.argv if request.kind == "run" else None,
            command=request.command if request.kind == "send" else None,
            cwd=evidence.cwd if request.kind == "run" else None,
            env=dict(request.env),
            workspace=request.asker.workspace_id,
            caller_surface=request.asker.surface,
            mode=Mode.INTERACTIVE,
            home=str(Path.home()),
            now=time.time(),
        )
        verdict = decide(question, self._policy.current())
        return Judgement(_EFFECTS[verdict.effect], _RISKS[verdict.risk], tuple(_reasons(verdict)), verdict.rule)

    def policy(self) -> Policy | None:
        path = self._policy.path
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return Policy(digest=hashlib.sha256(text.encode()).hexdigest(), text=text)

    # rules of an "always"

    def suggest_rule(self, pending: Pending) -> str:
        return suggest_rule(pending.evidence.argv)

    def policy_file(self) -> str:
        return str(self._policy.path)

    def check_rule(self, pattern: str) -> None:
        try:
            parse_pattern(pattern)
        except RuleError as problem:
            raise AnswerRefused("bad_rule", f"That cannot be a rule: {problem}") from None

    def write_rule(self, pattern: str, pending: Pending, by: str) -> None:
        self._write_rule(pattern, f"always allowed for {pending.request.asker.caller}", by)

    # asking

    def request_arrived(self, pending: Pending) -> None:
        request, evidence, judgement = pending.request, pending.evidence, pending.judgement
        self.pending[request.id] = pending
        card = RequestRow(
            rid=request.id,
            kind=request.kind,
            command=" ".join(evidence.shown_argv),
            argv=evidence.shown_argv,
            raw_argv=evidence.argv,
            cwd=evidence.cwd,
            executable=evidence.executable or "",
            sha256=evidence.executable_sha256 or "",
            env=evidence.shown_env,
            risk=_worse(request.risk, judgement.risk),
            reasons=tuple(request.reasons) or tuple(judgement.reasons),
            asker=_asker(request),
            client=pending.client,
            workspace=_workspace(request),
            trace_id=request.trace_id,
            deadline=time.time() + pending.remaining_s,
            rule=suggest_rule(evidence.argv) if request.kind == "run" else "",
        )
        self.cards[request.id] = card
        self._on_request(card)

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        request = pending.request
        self.pending.pop(request.id, None)
        self.cards.pop(request.id, None)
        row = HistoryRow(
            id=request.id,
            at=time.time(),
            command=" ".join(pending.evidence.shown_argv),
            argv=pending.evidence.argv if request.kind == "run" else (),
            cwd=pending.evidence.cwd,
            outcome=outcome,
            by=_decider(pending) if outcome in ("approved", "declined") else "",
            reason=reason or "",
            risk=_worse(request.risk, pending.judgement.risk),
            asker=_asker(request),
            trace_id=request.trace_id,
            rule=suggest_rule(pending.evidence.argv) if request.kind == "run" else "",
        )
        if request.kind != "send":
            self._asked_by[request.terminal_id] = request.id
        self._remember(row)
        elsewhere = row.by if pending.answered_by not in (None, "person") else ""
        self._on_closed(request.id, outcome, reason or "", elsewhere)
        self.audit.append(
            {
                "event": "approval",
                "request": request.id,
                "kind": request.kind,
                "trace_id": request.trace_id,
                "actor": _asker(request),
                "decided_by": row.by,
                "outcome": outcome,
                "reason": reason or "",
                "argv": [escape_argument(word) for word in pending.evidence.argv],
                "cwd": pending.evidence.cwd,
                "risk": row.risk,
            }
        )

    def count_pending(self) -> Mapping[str, int]:
        """How many requests want to type into each of our sessions, by its name."""
        return Counter(
            self._by_terminal[pending.request.terminal_id]
            for pending in self.pending.values()
            if pending.request.kind == "send" and pending.request.terminal_id in self._by_terminal
        )

    # running

    async def run(self, order: Order, sink: Sink) -> tuple[int, int]:
        # Programs begin at the size they are looked at: many draw badly when it changes while they start.
        rows, cols = self._size()
        try:
            session = await self._registry.open_session(
                SessionSpec(
                    argv=order.argv,
                    rows=rows,
                    cols=cols,
                    executable=order.executable,
                    cwd=order.cwd,
                    base_env=dict(order.environment),
                    actor=Actor("agent", order.session_id),
                    keep=True,
                )
            )
        except WshError as error:
            raise StartFailed(error.message) from None
        self._by_terminal[order.terminal_id] = session.name
        self._running(order.terminal_id, session.sid)
        started = time.monotonic()
        # What was printed before this line, then everything as it comes.
        early = session.recent_output(0) if session.generation else b""
        if early:
            sink.output(early)
        session.tap(lambda _offset, data: sink.output(data))

        def hear(event: SessionEvent) -> None:
            if isinstance(event, Exited):
                sink.exited(event.exit_code)
                self._ended(order.terminal_id, event.exit_code, time.monotonic() - started, session.sid)

        if session.running:
            session.listeners.add(hear)
        else:
            sink.exited(session.exit_code)
            self._ended(order.terminal_id, session.exit_code, time.monotonic() - started, session.sid)
        self._on_session(session)
        return session.rows, session.cols

    def _running(self, terminal_id: str, sid: str) -> None:
        row = self.history.get(self._asked_by.get(terminal_id, ""))
        if row is not None:
            self._remember(replace(row, sid=sid))

    def _ended(self, terminal_id: str, exit_code: int | None, duration_s: float, sid: str) -> None:
        row = self.history.get(self._asked_by.pop(terminal_id, ""))
        if row is not None:
            self._remember(replace(row, exit_code=exit_code, duration_s=duration_s, sid=sid))
            self.audit.append(
                {
                    "event": "approval_end",
                    "request": row.id,
                    "trace_id": row.trace_id,
                    "exit_code": exit_code,
                    "duration_s": round(duration_s, 3),
                }
            )

    def _remember(self, row: HistoryRow) -> None:
        self.history[row.id] = row
        while len(self.history) > KEPT:
            del self.history[next(iter(self.history))]
        self._on_history(row)

    async def type_line(self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]) -> TypedLine:
        actor = Actor("agent", "bridge")
        began = False

        def hear(event: SessionEvent) -> None:
            nonlocal began
            if isinstance(event, Input) and event.actor == actor:
                began = True
                typed()

        try:
            session = self._registry.get_session(self._by_terminal.get(terminal_id, ""))
            stop = session.listeners.add(hear)
            try:
                outcome = await session.run_command(
                    text, actor, max_wait_ms=max(1, round(wait_s * 1000)), max_output_bytes=_LINE_BYTES
                )
            finally:
                stop()
        except WaitTimeout as late:
            if not began:
                raise StartFailed(late.message, "session_taken") from None
            return TypedLine(command_id=late.facts.get("command_id"))
        except (SessionExited, SessionNotFound) as gone:
            if not began:
                raise StartFailed(gone.message, "terminal_ended") from None
            return TypedLine("exit", gone.facts.get("exit_code"))
        except WshError as error:
            raise StartFailed(error.message, error.code) from None
        told = outcome.output
        return TypedLine(
            outcome.finished_by,
            outcome.exit_code,
            told.text if told is not None else None,
            told.omitted_bytes if told is not None else 0,
            outcome.duration_ms,
            outcome.command_id,
        )

    async def await_line(self, terminal_id: str, line: TypedLine) -> TypedLine | None:
        """By the shell's own word; a line that no command stands for has no end to wait for."""
        if line.command_id is None:
            return None
        try:
            session = self._registry.get_session(self._by_terminal.get(terminal_id, ""))
        except SessionNotFound:
            return None
        ended = asyncio.Event()

        def hear(event: SessionEvent) -> None:
            if isinstance(event, Exited | Destroyed) or event == CommandFinished(line.command_id or 0):
                ended.set()

        stop = session.listeners.add(hear)
        try:
            command = session.get_command(line.command_id)
            if session.running and command.exit_code is None:
                await ended.wait()
            command = session.get_command(line.command_id)
            if command.exit_code is None:
                return None
            text = await session.read_command_output(command, _LINE_BYTES)
        except WshError:
            return None
        finally:
            stop()
        return TypedLine(
            "command", command.exit_code, text.text, text.omitted_bytes, command.duration_ms, line.command_id
        )

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        name = self._by_terminal.get(terminal_id)
        if name is None:
            return []
        try:
            session = self._registry.get_session(name)
        except SessionNotFound:
            return []
        if session.child is None:
            return []
        report = await self._registry.keeper.kill_tree(session.child, self._settings.get_int("session.kill_grace_ms"))
        return [pid for pid, _ in report.survivors]


def read_history(audit: Audit) -> dict[str, HistoryRow]:
    """What the audit log still knows of earlier requests; a log that cannot be read knows nothing."""
    rows: dict[str, HistoryRow] = {}
    try:
        entries = audit.read(KEPT * 4)
    except (OSError, ValueError):
        return rows
    for entry in entries:
        id = str(entry.get("request", ""))
        if entry.get("event") == "approval" and id:
            rows[id] = _old_row(id, entry)
        elif entry.get("event") == "approval_end" and id in rows:
            rows[id] = replace(rows[id], exit_code=entry.get("exit_code"), duration_s=entry.get("duration_s"))
    return dict(list(rows.items())[-KEPT:])


def _old_row(id: str, entry: Mapping[str, Any]) -> HistoryRow:
    argv = tuple(str(word) for word in entry.get("argv", ()))
    # Escaped words are not always the words themselves; only plain ones make a rule.
    plain = argv if entry.get("kind") == "run" and all(escape_argument(word) == word for word in argv) else ()
    return HistoryRow(
        id=id,
        at=_moment(entry),
        command=" ".join(argv),
        argv=plain,
        cwd=str(entry.get("cwd", "")),
        outcome=str(entry.get("outcome", "")),
        by=str(entry.get("decided_by", "")),
        reason=str(entry.get("reason", "")),
        risk=str(entry.get("risk", "none")),
        asker=str(entry.get("actor", "")),
        trace_id=str(entry.get("trace_id", "")),
        rule=suggest_rule(plain) if plain else "",
    )


def _moment(entry: Mapping[str, object]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("ts", ""))).timestamp()
    except ValueError:
        return 0.0


def suggest_rule(argv: Sequence[str]) -> str:
    """The pattern that "always" would write: the program, and its subcommand where that is what it looks like."""
    words = [os.path.basename(argv[0])]
    if len(argv) > 1 and argv[1].isidentifier():
        words.append(argv[1])
    return " ".join(words)


def _reasons(verdict: Verdict) -> list[str]:
    return [reason.what for reason in verdict.risk_reasons] or [verdict.message]


def _worse(one: str, other: str) -> str:
    order = ("none", "destructive", "irrecoverable")
    return max(one, other, key=order.index)


def _asker(request: Request) -> str:
    """Who asks. What a program calls itself may be a lie, so it is quoted."""
    asker = request.asker
    return f"{escape_argument(asker.client)} ({asker.caller})" if asker.client else asker.caller


def _decider(pending: Pending) -> str:
    """Name of the person at the window, or of the one who answered elsewhere."""
    by = pending.answered_by
    return getpass.getuser() if by in (None, "person") else by


def _workspace(request: Request) -> str:
    return request.asker.workspace_id or ""
