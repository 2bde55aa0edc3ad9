"""The seam to whatever shows cards and runs what was approved: a window, the server itself, or a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement
from wsh.approval.request import ApprovalRequest, Outcome, Place

if TYPE_CHECKING:
    from wsh.approval.always import Proposal, RuleChoice
    from wsh.approval.answer import Pending


class StartFailed(Exception):
    """An approved command could not be started, or a line not typed; the text is shown to the caller."""

    def __init__(self, message: str, code: str = "start_failed") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


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
    sandbox: str | None = None
    """The profile that must hold it."""
    leaves: bool = False
    """Whether the person let it run without its sandbox."""


@dataclass(frozen=True)
class TypedLineOutcome:
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


class OutputSink(Protocol):
    """Where a terminal's output goes. Called on the queue's loop."""

    def output(self, data: bytes) -> None: ...

    def exited(self, exit_code: int | None) -> None:
        """The program ended (None: how is not known). No output may follow."""


class Approver(Protocol):
    """Shows and runs. All methods are called on the queue's loop; none may block it."""

    @property
    def place(self) -> Place:
        """Where commands run."""

    @property
    def place_name(self) -> str:
        """The same for people, with the machine."""

    def base_environment(self) -> Mapping[str, str]:
        """The environment that commands start from."""

    def default_cwd(self) -> str: ...

    def shell(self) -> Sequence[str]:
        """What a terminal opened without a command runs."""

    async def find_sandbox(self) -> str | None:
        """The profile that holds what agents run here; None if there is none."""

    def judge(self, request: ApprovalRequest, evidence: Evidence) -> Judgement:
        """The policy of this place."""

    def request_arrived(self, pending: Pending) -> None:
        """Show it. The answer comes later through `pending`."""

    def request_closed(self, pending: Pending, outcome: Outcome, reason: str | None) -> None:
        """Take the card away: the request was settled, here or elsewhere."""

    def propose_rule(self, pending: Pending) -> Proposal | None:
        """What an "always" would write, exact words first; None if no rule could stand for it."""

    def policy_file(self) -> str:
        """Where "always" writes, for the person."""

    def check_rule(self, pattern: str) -> None:
        """Raises AnswerRefused if `pattern` cannot be a rule."""

    def write_rule(self, choice: RuleChoice, pending: Pending, by: str) -> None:
        """Persists the rule of an accepted "always" answer."""

    async def run(self, order: Order, sink: OutputSink) -> tuple[int, int] | None:
        """Start it in a visible terminal and return that one's rows and columns; raises StartFailed."""

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome:
        """Type an approved line, Enter included, into an open terminal, and say what came of it within `wait_s`.

        Calls `typed` when it is in. Raises StartFailed if it was not typed.
        """

    async def await_line(self, terminal_id: str, line: TypedLineOutcome) -> TypedLineOutcome | None:
        """The end of a line that went on, however late; None if it will never be known."""

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        """Kill the terminal's process tree; the pids that survived."""
