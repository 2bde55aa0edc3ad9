"""What an operation may ask: the rooms, and who calls."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wsh.host.receive import Receiver
from wsh.host.registry import HostRegistry
from wsh.inbox.mark import InboxMarks
from wsh.inbox.wake import Wakes
from wsh.notice.notices import Notices
from wsh.operation.deferred import Deferred
from wsh.operation.far_lease import FarLeases
from wsh.operation.forward import make_forwarded
from wsh.operation.hidden import HiddenInputs
from wsh.operation.mark import Marks
from wsh.operation.sandbox import SandboxPolicies, make_gate
from wsh.operation.tally import LimitTally
from wsh.session.presence import Clients
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.visual.feed import Feeds
from wsh.visual.stage import Stage
from wsh.visual.stage_registry import StageRegistry
from wsh.wire.caller import GOVERNING, Actor, Caller
from wsh.wire.error import CapabilityMissing, ToolsetRefused
from wsh.wire.json.handshake import FAMILIES
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places
from wsh.wire.tool import Progress, Stream

if TYPE_CHECKING:
    from wsh.contract.dispatch import Contract
    from wsh.contract.execute_command import ExecuteCommand
    from wsh.wire.json.object import JsonObject
    from wsh.wire.tool import ToolOutcome
    from wsh.workspace.service import WorkspaceService


_OTHER_SERVER = Caller("owner", "owner", "unix", account="host")
"""The caller that brings forwarded calls over the owner's own connection, such as an ssh login."""


Json: TypeAlias = dict[str, object]
"""What is JSON already."""


def ignore_progress(message: str, *, stream: Stream = "info", phase: str = "progress") -> None:
    pass


class ServerLifetime(Protocol):
    """What decides how long the server lives."""

    persistent: bool

    def set_persistent(self, persistent: bool) -> None: ...

    def stop(self, *, keep_sessions: bool) -> None: ...


class ServerState(Protocol):
    """The server as a whole. `list_damage` is what the sessions' room has to warn of."""

    @property
    def hostname(self) -> str: ...

    @property
    def server_id(self) -> str: ...

    @property
    def lifetime(self) -> ServerLifetime: ...

    @property
    def list_damage(self) -> Callable[[], list[str]]: ...


RunTool: TypeAlias = "Callable[[str, JsonObject, Caller, int, Progress], Awaitable[ToolOutcome]]"


class HostBook(Protocol):
    """What keeps the list of ssh hosts, and opens carriers to them."""

    async def add(self, name: str, target: str, command: str | None) -> None: ...

    async def remove(self, name: str) -> None: ...


class ClosedBook:
    """No hosts can be added."""

    async def add(self, name: str, target: str, command: str | None) -> None:
        raise CapabilityMissing("This server keeps no list of hosts.")

    async def remove(self, name: str) -> None:
        raise CapabilityMissing("This server keeps no list of hosts.")


class FleetRoom(Protocol):
    """This server as a node of a fleet."""

    async def describe(self) -> Json:
        """FleetInfo."""

    async def join(self, url: str, credentials: str | None) -> None: ...

    async def leave(self) -> None: ...

    def claim_answer(self, id: str, by: str) -> AbstractAsyncContextManager[None]:
        """Around the judgement of an answer to a request: in the whole fleet, one at a time."""


class NoFleet:
    """A server that cannot be a node."""

    async def describe(self) -> Json:
        nothing = dict.fromkeys(("fleet", "name", "url", "problem", "since"))
        return {**nothing, "joined": False, "nodes": []}

    async def join(self, url: str, credentials: str | None) -> None:
        raise CapabilityMissing("This server cannot join a fleet.")

    async def leave(self) -> None:
        pass

    def claim_answer(self, id: str, by: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


@dataclass
class Rooms:
    """The rooms that operations work with. Deferred ones open beside the first requests."""

    settings: Settings
    places: Places
    server: ServerState
    clients: Clients
    stages: StageRegistry
    feeds: Feeds
    registry: SessionRegistry
    contract: Deferred[Contract]
    workspace: Deferred[WorkspaceService]
    execute: Deferred[ExecuteCommand]
    waits: LimitTally
    notices: Notices
    marks: Marks = field(default_factory=Marks)
    hosts: HostRegistry = field(default_factory=HostRegistry)
    host_book: HostBook = field(default_factory=ClosedBook)
    run_tool: RunTool | None = None
    """Runs a terminal tool for a caller of another server; None where there are no tools."""
    fleet: FleetRoom = field(default_factory=NoFleet)
    list_mcp_clients: Callable[[], list[dict[str, object]]] = list
    """Clients that other doors know of."""
    sandbox: SandboxPolicies = field(init=False)
    inbox_marks: InboxMarks = field(init=False)
    wakes: Wakes = field(init=False)
    hidden: HiddenInputs = field(init=False)
    far_leases: FarLeases = field(init=False)
    receiver: Receiver = field(init=False)
    """Makes the calls of the owner's other servers."""

    def __post_init__(self) -> None:
        self.sandbox = SandboxPolicies(self.places.policy_file)
        self.inbox_marks = InboxMarks(self.places.inbox, self.settings.get_int("inbox.keep_s"))
        self.wakes = Wakes(
            self.places.wakes,
            self.registry,
            self.settings.get_int("inbox.max_wakes"),
            self.settings.get_int("inbox.keep_s"),
        )
        self.far_leases = FarLeases(self)
        self.receiver = Receiver(
            lambda call, on_progress: make_forwarded(self, call, _OTHER_SERVER, on_progress),
            keep_s=self.settings.get_float("hosts.resume_s"),
            most=self.settings.get_int("hosts.max_calls"),
        )
        self.hidden = HiddenInputs(self.settings.get_str("approvals.hidden_input") == "ask", self.contract.get)
        admit = make_gate(self.sandbox)

        def gate(session: Session, actor: Actor, data: bytes) -> None:
            admit(session, actor, data)
            self.hidden.check(session, actor, data)

        self.registry.set_gate(gate)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The toolsets that agents are offered; `lean` is a terminal in few words."""
        offered = [name.strip() for name in self.settings.get_list("mcp.toolsets") if name.strip()] or FAMILIES
        return (*offered, "terminal") if "lean" in offered and "terminal" not in offered else tuple(offered)

    def check_offered(self, family: str | None, caller: Caller) -> None:
        """Raises ToolsetRefused where the server was started without what agents need for this."""
        if family is not None and not caller.is_owner and family not in self.families:
            raise ToolsetRefused(family, self.families)

    def cap_wait(self, max_wait_ms: int) -> int:
        return min(max_wait_ms, self.settings.get_int("server.max_wait_ms"))


@dataclass(frozen=True)
class Context:
    rooms: Rooms
    caller: Caller
    progress: Progress

    @property
    def governed(self) -> Caller:
        """The caller, where its connection has surroundings; else with the server's own folder and variables."""
        if self.caller.cwd:
            return self.caller
        environ = {key: value for key, value in os.environ.items() if key.startswith(GOVERNING)}
        return replace(self.caller, client="http", cwd=os.getcwd(), environ=environ)


@dataclass(frozen=True)
class OnSession(Context):
    """For an operation on one session."""

    session: Session

    @property
    def stage(self) -> Stage:
        return self.rooms.stages.of(self.session)
