"""Who owns which session and terminal, and which of them a caller may see.

An identity belongs to the caller that made it; for everybody else it does not exist. It stays readable after its end
until retention takes it; `list` shows what is active.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wsh.contract.output.log import OutputLog
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import make_id
from wsh.contract.request.model import ContractRequest, Mode, RequestTarget
from wsh.wire.caller import Caller
from wsh.wire.json.object import JsonObject

Approval: TypeAlias = Literal["pending", "approved", "declined", "expired", "withdrawn", "refused"]


@dataclass(eq=False)
class Identity:
    """A session, and for interactive ones the terminal that shows it. `handle` is its route's own business."""

    session_id: str
    terminal_id: str | None
    mode: Mode
    owner: str
    workspace_id: str | None
    caller_surface: str | None
    command: str | None
    argv: tuple[str, ...]
    cwd: str | None
    trace_id: str
    started: float
    log: OutputLog
    began: float = field(default_factory=time.monotonic)
    """The same by a clock that does not jump."""
    handle: Any = None
    running: bool = True
    exit_code: int | None = None
    terminated: bool = False
    authorization: str = "allowed"
    warning: str | None = None
    ended: float | None = None
    """By a clock that does not jump."""
    reachable: bool = True
    """False if the desktop that runs it could not be asked when somebody last wanted to know."""
    rows: int = 24
    cols: int = 80
    facts: JsonObject = field(default_factory=dict)
    approval: Approval | None = None
    """What a person said, or that nobody has yet; None if nobody was asked."""
    fault: ContractFault | None = None
    """Why it never ran."""

    @property
    def is_pending(self) -> bool:
        return self.approval == "pending"

    def end(self, exit_code: int | None) -> None:
        if self.running:
            self.running = False
            self.exit_code = exit_code
            self.ended = time.monotonic()
            self.log.finish()

    def to_wire(self) -> dict[str, str]:
        wire = {"session_id": self.session_id}
        return wire | {"terminal_id": self.terminal_id} if self.terminal_id is not None else wire

    def to_item(self) -> JsonObject:
        return {
            **self.to_wire(),
            "mode": self.mode,
            "command": self.command,
            "cwd": self.cwd,
            "workspace_id": self.workspace_id,
            "caller_surface": self.caller_surface,
            "running": self.running and not self.is_pending,
            "approval": self.approval,
            "reachable": self.reachable,
            "started_at": self.started,
            "trace_id": self.trace_id,
        }


def describe_leaving(request: ContractRequest, leaves: str) -> list[object]:
    """What makes two requests to leave a sandbox the same."""
    assert request.execution is not None
    return [request.execution.command, request.execution.args or [], request.runtime.cwd, leaves]


def make_question_identity(
    caller: Caller, trace_id: str, command: str | None = None, cwd: str | None = None
) -> Identity:
    """For what a person is asked, of which nothing runs."""
    return Identity(
        session_id=make_id("sess"),
        terminal_id=make_id("term"),
        mode="interactive",
        owner=caller.id,
        workspace_id=None,
        caller_surface=None,
        command=command,
        argv=(),
        cwd=cwd,
        trace_id=trace_id,
        started=time.time(),
        log=OutputLog(1),
        running=False,
    )


class IdentityRegistry:
    """All identities of one server. `retention_s`, `max_ended` and `max_kept_bytes` bound what is kept of those that
    ended; the oldest go first."""

    def __init__(
        self,
        *,
        retention_s: float = 86_400,
        max_ended: int = 256,
        max_kept_bytes: int = 256 * 1024 * 1024,
        max_active: int = 256,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.retention_s = retention_s
        self.max_ended = max_ended
        self.max_kept_bytes = max_kept_bytes
        self.max_active = max_active
        self._clock = clock
        self._all: OrderedDict[str, Identity] = OrderedDict()

    def find_leaving(self, caller: Caller, request: ContractRequest, leaves: str) -> Identity | None:
        """What the same caller asked to run without the same sandbox, if its end was not told yet."""
        wanted = describe_leaving(request, leaves)
        for known in reversed(self._all.values()):
            if known.owner == caller.id and known.facts.get("leaving") == wanted and not known.facts.get("told"):
                return known
        return None

    def add(self, identity: Identity) -> None:
        self._sweep()
        active = sum(known.running for known in self._all.values())
        if active >= self.max_active:
            raise ContractFault(
                "PM_TERM_BLOCKED_DESTRUCTIVE",
                f"{active} commands of the contract are running already.",
                reason="too_many_active",
                limit=self.max_active,
            )
        self._all[identity.session_id] = identity

    def remove(self, identity: Identity) -> None:
        self._all.pop(identity.session_id, None)

    def get(self, target: RequestTarget, caller: Caller, request: ContractRequest) -> Identity:
        """The caller's own identity that `target` names. Raises PM_TERM_NOT_FOUND, whatever the reason."""
        self._sweep()
        for identity in self._all.values():
            if _matches(identity, target) and identity.owner == caller.id:
                scope = request.runtime.workspace_id
                mode = request.invocation.mode
                if scope is not None and identity.workspace_id != scope:
                    break
                if mode is not None and identity.mode != mode:
                    break
                return identity
        raise not_found(target)

    def list_active(self, caller: Caller, request: ContractRequest) -> list[Identity]:
        """The caller's own that are running, narrowed by mode, workspace and surface where those are given."""
        self._sweep()
        mode, scope, surface = (
            request.invocation.mode,
            request.runtime.workspace_id,
            request.compat.caller_surface,
        )
        return [
            identity
            for identity in self._all.values()
            if identity.running
            and identity.owner == caller.id
            and (mode is None or identity.mode == mode)
            and (scope is None or identity.workspace_id == scope)
            and (surface is None or identity.caller_surface == surface)
        ]

    def list_all(self) -> list[Identity]:
        return list(self._all.values())

    def _sweep(self) -> None:
        """Forget what ended too long ago, and the oldest of what is too much."""
        limit = self._clock() - self.retention_s
        ended = [known for known in self._all.values() if not known.running]
        count, kept = len(ended), sum(known.log.raw.kept_bytes for known in ended)
        for identity in sorted(ended, key=lambda known: known.ended or 0.0):
            if count <= self.max_ended and kept <= self.max_kept_bytes and (identity.ended or 0.0) >= limit:
                return
            del self._all[identity.session_id]
            count -= 1
            kept -= identity.log.raw.kept_bytes


def _matches(identity: Identity, target: RequestTarget) -> bool:
    by_session = target.session_id is None or identity.session_id == target.session_id
    by_terminal = target.terminal_id is None or identity.terminal_id == target.terminal_id
    return by_session and by_terminal


def not_found(target: RequestTarget, **details: object) -> ContractFault:
    named = {key: value for key, value in target.model_dump(exclude={"cursor"}).items() if value is not None}
    words = " and ".join(f"{key} {value!r}" for key, value in named.items())
    return ContractFault("PM_TERM_NOT_FOUND", f"There is nothing of yours with {words}.", target=named, **details)
