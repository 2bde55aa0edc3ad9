"""What a desktop end must be able to do, and what it is handed: the seam that a window, or a script, plugs into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from wsh.bridge.evidence import Evidence
from wsh.bridge.frame import Effect, Outcome, Policy, Request, Risk, Scope


class StartFailed(Exception):
    """An approved command could not be started, or a line not typed; the text is shown to the caller."""

    def __init__(self, message: str, code: str = "start_failed") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class AnswerRefused(Exception):
    """An answer from elsewhere does not count; nothing ran because of it, and the request is as it was."""

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


@dataclass(frozen=True)
class Judgement:
    """What the desktop's own policy says. The stricter of this and the request's own claim counts."""

    effect: Effect
    risk: Risk = "none"
    reasons: Sequence[str] = ()
    rule: str | None = None


@dataclass(frozen=True)
class Order:
    """An approved command, ready to run: exactly what the evidence said."""

    session_id: str
    terminal_id: str
    trace_id: str
    argv: tuple[str, ...]
    executable: str
    cwd: str
    environment: Mapping[str, str]
    title: str | None
    kind: Literal["run", "open"]


@dataclass(frozen=True)
class TypedLine:
    """What came of a line: how the wait for it ended (None: the time was over), and the truth where a shell told it."""

    finished_by: Literal["command", "prompt", "quiet", "exit"] | None = None
    exit_code: int | None = None
    output: str | None = None
    omitted_bytes: int = 0
    duration_ms: float | None = None
    command_id: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.finished_by in ("command", "exit")


class Sink(Protocol):
    """Where a terminal's output goes. Called on the listener's loop."""

    def output(self, data: bytes) -> None: ...

    def exited(self, exit_code: int | None) -> None:
        """The program ended (None: how is not known). No output may follow."""


class Pending:
    """A request in front of the person. Answer it from any thread; the first answer counts.

    `approve` and `decline` return whether this answer counted: a request that was withdrawn or has expired meanwhile
    returns False, and nothing happens.
    """

    def __init__(
        self,
        request: Request,
        evidence: Evidence,
        judgement: Judgement,
        client: str,
        remaining: Callable[[], float],
        answer: Callable[[Pending, Answer], bool],
    ) -> None:
        self.request = request
        self.evidence = evidence
        self.judgement = judgement
        self.client = client
        self.answered_by: str | None = None
        """Whose answer counted."""
        self._remaining = remaining
        self._answer = answer

    @property
    def remaining_s(self) -> float:
        """Time left to answer."""
        return max(0.0, self._remaining())

    def approve(self, *, scope: Scope = "once", by: str = "person", argv: Sequence[str] | None = None) -> bool:
        """Run it; with `argv`, run that instead (it is judged anew, and the caller is told that it was edited)."""
        return self._give(Answer(True, scope, by, None, tuple(argv) if argv is not None else None))

    def decline(self, reason: str | None = None, *, by: str = "person") -> bool:
        return self._give(Answer(False, "once", by, reason, None))

    def _give(self, answer: Answer) -> bool:
        counted = self._answer(self, answer)
        if counted:
            self.answered_by = answer.by
        return counted


@dataclass(frozen=True)
class Answer:
    yes: bool
    scope: Scope
    by: str
    reason: str | None
    argv: tuple[str, ...] | None


class DesktopEnd(Protocol):
    """The program at the desktop. All methods are called on the listener's loop; none may block it."""

    def base_environment(self) -> Mapping[str, str]:
        """The environment that commands start from."""

    def default_cwd(self) -> str: ...

    def shell(self) -> Sequence[str]:
        """What a terminal opened without a command runs."""

    def judge(self, request: Request, evidence: Evidence) -> Judgement:
        """The desktop's own policy. `allow` runs at once and visibly, `ask` shows a card, `refuse` ends it."""

    def policy(self) -> Policy | None:
        """What the server is told, so that headless commands over there obey this window."""

    def request_arrived(self, pending: Pending) -> None:
        """Show it. The answer comes later through `pending`."""

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        """Take the card away: the request was settled, here or elsewhere."""

    def suggest_rule(self, pending: Pending) -> str:
        """The pattern that an "always" would write if nobody narrows it."""

    def policy_file(self) -> str:
        """Where "always" writes, for the person."""

    def check_rule(self, pattern: str) -> None:
        """Raises AnswerRefused if `pattern` cannot be a rule."""

    def write_rule(self, pattern: str, pending: Pending, by: str) -> None:
        """Write the rule of an "always" that counted."""

    async def run(self, order: Order, sink: Sink) -> tuple[int, int] | None:
        """Start it in a visible terminal and return that one's rows and columns; raises StartFailed."""

    async def type_line(self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]) -> TypedLine:
        """Type an approved line, Enter included, into an open terminal, and say what came of it within `wait_s`.

        Calls `typed` when it is in. Raises StartFailed if it was not typed.
        """

    async def await_line(self, terminal_id: str, line: TypedLine) -> TypedLine | None:
        """The end of a line that went on, however late; None if it will never be known."""

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        """Kill the terminal's process tree; the pids that survived."""
