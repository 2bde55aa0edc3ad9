"""The server as the place where approved commands run: its policy, its policy file, its sessions. It has no look of its own.

Cards are shown at the page and by `wsh approvals`, which ask for what waits; so nothing is drawn here.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from wsh.approval.always import Proposal, RuleChoice
from wsh.approval.answer import Pending
from wsh.approval.approver import Order, OutputSink, StartFailed, TypedLineOutcome
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement, judge
from wsh.approval.proposal import check_rule, propose_for
from wsh.approval.request import ApprovalRequest, Outcome, Place
from wsh.contract.gate import Trail
from wsh.policy import Policy, RuleEffect
from wsh.policy.file.edit import NewRule, add_rule, locked, write_policy

_PAST = 200


class ApprovedRuns(Protocol):
    """Runs what was approved in sessions. The composition root plugs it in."""

    def base_environment(self) -> Mapping[str, str]: ...

    def default_cwd(self) -> str: ...

    def shell(self) -> Sequence[str]: ...

    async def find_sandbox(self) -> str | None: ...

    async def run(self, order: Order, sink: OutputSink, sid: str | None = None) -> tuple[int, int] | None: ...

    def adopt(self, terminal_id: str, sid: str, sink: OutputSink) -> bool: ...

    def make_sid(self) -> str: ...

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome: ...

    async def await_line(self, terminal_id: str, line: TypedLineOutcome) -> TypedLineOutcome | None: ...

    async def terminate(self, terminal_id: str) -> Sequence[int]: ...

    def find_name(self, terminal_id: str) -> str | None:
        """The name of the session, to watch it by."""


class RuleFile(Protocol):
    """The policy file of this machine."""

    @property
    def path(self) -> Path: ...

    def current(self) -> Policy: ...

    def check(self) -> bool: ...


async def _nothing(terminal_id: str, sid: str) -> None:
    pass


class ServerApprover:
    """Implements `ApprovalEnd`."""

    def __init__(self, runs: ApprovedRuns, policy: RuleFile, trail: Trail, home: str) -> None:
        self.place: Place = "server"
        self.place_name = f"a session of the server on {socket.gethostname()}"
        self.runs = runs
        self._policy = policy
        self._trail = trail
        self._home = home
        self._past: deque[tuple[str, ...]] = deque(maxlen=_PAST)
        self.base_environment = runs.base_environment
        self.default_cwd = runs.default_cwd
        self.shell = runs.shell
        self.find_sandbox = runs.find_sandbox
        self.type_line = runs.type_line
        self.await_line = runs.await_line
        self.terminate = runs.terminate

        self.before_run: Callable[[str, str], Awaitable[None]] = _nothing
        """Told the terminal and the session right before a program runs. Raises OSError, and then it does not run."""

    async def run(self, order: Order, sink: OutputSink) -> tuple[int, int] | None:
        sid = self.runs.make_sid()
        try:
            await self.before_run(order.terminal_id, sid)
        except OSError as problem:
            raise StartFailed(f"That it starts could not be written down, so it did not: {problem.strerror}.") from None
        return await self.runs.run(order, sink, sid)

    def judge(self, request: ApprovalRequest, evidence: Evidence) -> Judgement:
        return judge(request, evidence, self._policy.current(), self._home)

    def request_arrived(self, pending: Pending) -> None:
        if pending.request.kind == "run":
            self._past.append(pending.evidence.argv)

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        pass

    def propose_rule(self, pending: Pending) -> Proposal | None:
        return propose_for(pending, self._past, self._policy.current(), self._home)

    def policy_file(self) -> str:
        return str(self._policy.path)

    def check_rule(self, pattern: str) -> None:
        check_rule(pattern)

    def write_rule(self, choice: RuleChoice, pending: Pending, by: str) -> None:
        comment = f"always allowed, when {pending.request.asker.caller} asked"
        rule = NewRule(choice.pattern, RuleEffect.ALLOW, choice.modes, choice.cwd, comment=comment, exact=choice.exact)
        with locked(self._policy.path) as text:
            changed = add_rule(text, rule, str(self._policy.path))
            # First the trail: a change that cannot be recorded is not made.
            self._trail.append(
                {"kind": "policy_allow", "actor": by, "trace_id": pending.request.trace_id, "change": rule.to_toml()}
            )
            write_policy(self._policy.path, changed)
        self._policy.check()
