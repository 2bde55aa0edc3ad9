"""The window's end of the bridge: judges by the policy, asks the person, runs what they approved in a terminal of ours.

Lives in the core's thread. What the person is shown is the evidence that the bridge resolved, and what runs is the order that the bridge
checked against it again.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import shlex
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from wsh.approval.always import Proposal, RuleChoice
from wsh.approval.answer import Pending
from wsh.approval.approver import Order, OutputSink
from wsh.approval.card import Card, describe_asker, make_card
from wsh.approval.escape import escape_argument
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement, judge
from wsh.approval.proposal import check_rule, propose_for
from wsh.approval.request import ApprovalRequest, Outcome, Place
from wsh.approved import ApprovedSessions
from wsh.bridge.frame import PolicyFrame
from wsh.desktop.message import HistoryRow
from wsh.policy.audit import Audit, name_trail
from wsh.policy.file.store import PolicyStore
from wsh.sandbox.section import SandboxPolicy
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.wire.setting import Settings

KEPT = 500
"""Requests of the past that are at hand."""


class WindowApprover:
    """Implements `DesktopEnd`."""

    def __init__(
        self,
        registry: SessionRegistry,
        settings: Settings,
        policy: PolicyStore,
        audit: Audit,
        *,
        on_request: Callable[[Card], None],
        on_closed: Callable[[str, str, str, str], None],
        on_history: Callable[[HistoryRow], None],
        on_session: Callable[[Session], None],
        write_rule: Callable[[RuleChoice, str, str], None],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self.place: Place = "window"
        self.place_name = f"the window on {socket.gethostname()}"
        self._running = ApprovedSessions(registry, settings, size=size, sandbox=self._load_sandbox)
        self._policy = policy
        self.audit = audit
        self._trail = name_trail(audit.path)
        self._recorded: set[str] = set()
        """Requests whose decision and end the server records."""
        self._on_request = on_request
        self._on_closed = on_closed
        self._on_history = on_history
        self._on_session = on_session
        self._write_rule = write_rule
        self.pending: dict[str, Pending] = {}
        self.cards: dict[str, Card] = {}
        """What waits, as it is shown."""
        self.history = read_history(audit)
        """What was asked before, oldest first, by the request's id."""
        self._asked_by: dict[str, str] = {}
        """terminal id of the bridge → id of the request that opened it."""
        self.base_environment = self._running.base_environment
        self.default_cwd = self._running.default_cwd
        self.shell = self._running.shell
        self.find_sandbox = self._running.find_sandbox
        self.type_line = self._running.type_line
        self.await_line = self._running.await_line

    async def _load_sandbox(self) -> SandboxPolicy:
        return self._policy.current().sandbox

    # judging

    def judge(self, request: ApprovalRequest, evidence: Evidence) -> Judgement:
        return judge(request, evidence, self._policy.current(), str(Path.home()))

    def policy(self) -> PolicyFrame | None:
        """The policy as it holds here, also where the file is missing or cannot be used."""
        text = self._read_policy()
        return PolicyFrame(digest=hashlib.sha256(text.encode()).hexdigest(), text=text)

    def _read_policy(self) -> str:
        policy, path = self._policy.current(), self._policy.path
        if policy.broken is not None:
            return _refuse_policy(policy.broken)
        try:
            return path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return ""  # read as the shipped defaults
        except (OSError, UnicodeDecodeError) as problem:
            return _refuse_policy(f"{path}: {problem}")

    # rules of an "always"

    def propose_rule(self, pending: Pending) -> Proposal | None:
        past = [row.argv for row in self.history.values() if row.argv]
        return propose_for(pending, past, self._policy.current(), str(Path.home()))

    def policy_file(self) -> str:
        return str(self._policy.path)

    def check_rule(self, pattern: str) -> None:
        check_rule(pattern)

    def write_rule(self, choice: RuleChoice, pending: Pending, by: str) -> None:
        self._write_rule(choice, f"always allowed, when {pending.request.asker.caller} asked", by)

    # asking

    def request_arrived(self, pending: Pending) -> None:
        self.pending[pending.request.id] = pending
        card = make_card(pending, self)
        self.cards[pending.request.id] = card
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
            risk=pending.judgement.risk,
            asker=describe_asker(request),
            trace_id=request.trace_id,
            rule=shlex.join(pending.evidence.argv) if request.kind == "run" else "",
        )
        if request.kind != "send":
            self._asked_by[request.terminal_id] = request.id
        self._remember(row)
        elsewhere = row.by if pending.answered is not None and pending.answered.where != "window" else ""
        self._on_closed(request.id, outcome, reason or "", elsewhere)
        if pending.trail and pending.trail == self._trail:
            self._recorded.add(request.id)  # by the server, in the same log
            return
        self.audit.append(
            {
                "kind": "approval",
                "request": request.id,
                "request_kind": request.kind,
                "trace_id": request.trace_id,
                "actor": describe_asker(request),
                "by": row.by,
                "where": pending.answered.where if pending.answered is not None else None,
                "outcome": outcome,
                "reason": reason or "",
                "argv": [escape_argument(word) for word in pending.evidence.argv],
                "cwd": pending.evidence.cwd,
                "risk": row.risk,
            }
        )

    def count_pending(self) -> Mapping[str, int]:
        """How many requests want to type into each of our sessions, by its name."""
        sessions = (
            self._running.find(pending.request.terminal_id)
            for pending in self.pending.values()
            if pending.request.kind == "send"
        )
        return Counter(session.name for session in sessions if session is not None)

    # running

    async def run(self, order: Order, sink: OutputSink) -> tuple[int, int]:
        started = time.monotonic()

        def ended(session: Session) -> None:
            self._ended(order.terminal_id, session.exit_code, time.monotonic() - started, session.sid)

        session = await self._running.start(order, sink, ended)
        row = self.history.get(self._asked_by.get(order.terminal_id, ""))
        if row is not None:
            self._remember(replace(row, sid=session.sid))
        self._on_session(session)
        return session.rows, session.cols

    def _ended(self, terminal_id: str, exit_code: int | None, duration_s: float, sid: str) -> None:
        row = self.history.get(self._asked_by.pop(terminal_id, ""))
        if row is not None:
            self._remember(replace(row, exit_code=exit_code, duration_s=duration_s, sid=sid))
            if row.id in self._recorded:
                self._recorded.discard(row.id)
                return
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

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        return await self._running.terminate(terminal_id)


def _refuse_policy(why: str) -> str:
    """A text that no server can use as a policy, so that the strictest holds there. Its error names `why`."""
    return f"[{json.dumps(why)}]\n"


def read_history(audit: Audit) -> dict[str, HistoryRow]:
    """What the audit log still knows of earlier requests; a log that cannot be read knows nothing."""
    rows: dict[str, HistoryRow] = {}
    try:
        entries = audit.read(KEPT * 4)
    except (OSError, ValueError):
        return rows
    by_session: dict[str, str] = {}
    for entry in entries:
        id = str(entry.get("request", ""))
        if "approval" in (entry.get("event"), entry.get("kind")) and id:
            rows[id] = _old_row(id, entry)
            by_session[str(entry.get("session_id", ""))] = id
        elif entry.get("kind") == "result" and (ran := by_session.get(str(entry.get("session_id", "")))) in rows:
            seconds = round(int(entry.get("duration_ms") or 0) / 1000, 3)
            rows[ran] = replace(rows[ran], exit_code=entry.get("exit_code"), duration_s=seconds)
        elif entry.get("event") == "approval_end" and id in rows:
            rows[id] = replace(rows[id], exit_code=entry.get("exit_code"), duration_s=entry.get("duration_s"))
    return dict(list(rows.items())[-KEPT:])


def _old_row(id: str, entry: Mapping[str, Any]) -> HistoryRow:
    argv = tuple(str(word) for word in entry.get("argv", ()))
    # Escaped words are not always the words themselves; only plain ones make a rule.
    runs = "run" in (entry.get("request_kind"), entry.get("kind"))
    plain = argv if runs and all(escape_argument(word) == word for word in argv) else ()
    return HistoryRow(
        id=id,
        at=_moment(entry),
        command=" ".join(argv),
        argv=plain,
        cwd=str(entry.get("cwd", "")),
        outcome=str(entry.get("outcome", "")),
        by=str(entry.get("by") or entry.get("decided_by") or ""),
        reason=str(entry.get("reason") or ""),
        risk=str(entry.get("risk", "none")),
        asker=str(entry.get("actor", "")),
        trace_id=str(entry.get("trace_id", "")),
        rule=shlex.join(plain) if plain else "",
    )


def _moment(entry: Mapping[str, object]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("ts", ""))).timestamp()
    except ValueError:
        return 0.0


def _decider(pending: Pending) -> str:
    """Name of the person at the window, or of the one who answered elsewhere."""
    given = pending.answered
    return getpass.getuser() if given is None or given.where == "window" else given.by
