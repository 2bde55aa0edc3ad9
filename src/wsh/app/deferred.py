"""The rooms that take long to import: they open beside the first requests, and are tried again where they cannot be opened."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from wsh.operation.deferred import Deferred
from wsh.wire.error import InternalError, WshError
from wsh.wire.system.shortage import find_shortage

if TYPE_CHECKING:
    from wsh.app.compose import Composition
    from wsh.contract.dispatch import Contract
    from wsh.contract.execute_command import ExecuteCommand
    from wsh.mcp.call import CallRunner
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject
    from wsh.wire.tool import Progress, ToolOutcome
    from wsh.workspace.service import WorkspaceService
    from wsh.workspace.transcript.feed import SessionTranscripts

log = logging.getLogger("wsh.app")

_RETRY_S, _LONGEST_RETRY_S = 0.5, 5.0
"""Between two tries to open rooms that could not be opened."""
_SWITCH_S = 0.0005
"""How long one thread may keep the interpreter's lock while rooms are imported."""
_MALLOC = {-8: 2, -3: 256 * 1024, -1: 512 * 1024}
"""M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD: see `_bound_memory`."""


class DeferredRooms:
    """The rooms that take long to import: MCP first, then policy, contract and workspace. They open beside the first requests."""

    def __init__(self, server: Composition) -> None:
        self.contract: Deferred[Contract] = Deferred()
        self.workspace: Deferred[WorkspaceService] = Deferred()
        self.execute: Deferred[ExecuteCommand] = Deferred()
        self.mcp = server.door.mcp
        self.calls: CallRunner | None = None
        self._server = server
        self._imports: asyncio.Future[None] | None = None
        self._switch_s = sys.getswitchinterval()
        self._door: asyncio.Task[None] | None = None
        self._rooms: asyncio.Task[None] | None = None
        self._door_tried = asyncio.Event()
        self._stopping = asyncio.Event()
        self._problems: dict[str, WshError] = {}
        self._transcripts: SessionTranscripts | None = None
        self._mcp_clients: Collection[str] = ()

    def start_imports(self) -> None:
        """Begin to import, in a thread: the loop goes on between two of its imports.

        Meanwhile other threads read many small files to bring sessions back. Each read waits until the importing thread gives up the
        interpreter's lock. With the usual 5 ms these waits would add up to half a second.
        """
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._imports = asyncio.ensure_future(asyncio.to_thread(_import_mcp))

    def start(self) -> None:
        self._door = asyncio.ensure_future(self._keep_open("MCP does", self._serve_mcp, (self.mcp,)))
        rooms = (self.contract, self.workspace, self.execute)
        self._rooms = asyncio.ensure_future(
            self._keep_open("The contract and the workspace tools do", self._serve_rooms, rooms)
        )

    async def aclose(self) -> None:
        """End calls and streams under way, then the rooms. Idempotent."""
        self._stopping.set()
        await asyncio.gather(*(task for task in (self._door, self._rooms) if task), return_exceptions=True)
        for room in (self.contract, self.workspace, self.execute, self.mcp):
            room.close()

    async def _keep_open(
        self, what: str, serve: Callable[[str], Awaitable[None]], rooms: Sequence[Deferred[Any]]
    ) -> None:
        """Until we end; what cannot be opened, as without a disk or descriptors, is tried again."""
        pause_s = _RETRY_S
        while not self._stopping.is_set():
            try:
                await serve(what)
            except Exception as problem:
                self._tell_failure(what, problem, rooms)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            pause_s = min(pause_s * 2, _LONGEST_RETRY_S)

    def _tell_failure(self, what: str, problem: Exception, rooms: Sequence[Deferred[Any]]) -> None:
        shortage = find_shortage(problem, self._server.places.state)
        if shortage is None:
            log.error("deferred rooms could not be opened", exc_info=problem)
        elif what not in self._problems:
            log.warning("deferred rooms could not be opened: %s", shortage.message)
        told = self._problems[what] = shortage or InternalError("A part of the server could not be opened.")
        for room in rooms:
            room.fail(told)

    def list_warnings(self) -> list[str]:
        """What cannot be had now, and why; it is tried again all the time."""
        found = [f"{what} not work: {problem.message}" for what, problem in self._problems.items()]
        if self._transcripts is not None and self._transcripts.warning is not None:
            found.append(self._transcripts.warning)
        return found

    async def _serve_mcp(self, what: str) -> None:
        try:
            imports, self._imports = self._imports, None
            await (imports or asyncio.to_thread(_import_mcp))
            from wsh.mcp.transport.endpoint import open_door

            endpoint = open_door(self._server.rooms)
            self.calls = endpoint.door.calls
            self._server.rooms.list_mcp_clients = endpoint.door.list_clients
            endpoint.door.end_listeners.append(self._withdraw_of)
            self._mcp_clients = endpoint.door.clients
            async with endpoint.run():
                self.mcp.set(endpoint)
                self._problems.pop(what, None)
                self._door_tried.set()
                await self._stopping.wait()
        finally:
            self._door_tried.set()

    def _tell_of_requests(self, contract: Contract) -> None:
        """A request came, is shown, or ended."""
        from wsh.notice.watch import AskedOfPerson

        def list_requests() -> list[AskedOfPerson]:
            entries = [entry for entry in contract.interactive.waiting.list_entries() if entry.state == "waiting"]
            shown = [(entry, entry.to_wire()) for entry in entries]
            return [
                AskedOfPerson(wire["id"], entry.since, wire["command"] or "opens a terminal", wire["place"] == "window")
                for entry, wire in shown
            ]

        watch = self._server.rooms.notices.watch
        watch.list_requests, watch.requests_known = list_requests, True
        watch.look_at_requests()
        self._server.lifetime.look()

    async def run_tool(
        self, name: str, arguments: JsonObject, caller: Caller, timeout_ms: int, progress: Progress
    ) -> ToolOutcome:
        """A terminal tool, for another server; waits until the tools are there."""
        endpoint = await self.mcp.get()
        from wsh.mcp.tool.far import run_forwarded

        return await run_forwarded(endpoint.door.registry, name, arguments, caller, timeout_ms, progress)

    def _withdraw_of(self, owner: str) -> None:
        """A connection ended: its requests can no longer be approved."""
        contract = self.contract.peek()
        if contract is not None:
            contract.interactive.caller_gone(owner)

    async def _serve_rooms(self, what: str) -> None:
        await self._door_tried.wait()  # a client that asks for the tools first waits for nothing else
        try:
            await asyncio.to_thread(_import_rooms)
        finally:
            # What is there now stays: a collection would look at all of it for 50 ms, again and again. Imports leave hardly any garbage.
            sys.setswitchinterval(self._switch_s)
            gc.freeze()
            gc.enable()
        from wsh.app.deferred_rooms import open_rooms

        async with open_rooms(self._server, lambda: self.calls.under_way if self.calls is not None else 0) as opened:
            contract = opened.contract
            contract.interactive.is_connected = lambda owner: owner in self._mcp_clients
            contract.interactive.waiting.changed = lambda: self._tell_of_requests(contract)
            self._transcripts = opened.transcripts
            self.contract.set(contract)
            self._tell_of_requests(contract)
            self.workspace.set(opened.workspace)
            self.execute.set(opened.execute)
            self._problems.pop(what, None)
            await self._stopping.wait()
            if self._door is not None:
                await asyncio.wait({self._door})  # its calls end before what they work with


def _import_mcp() -> None:
    _bound_memory()
    from wsh.mcp.sdk import prepare

    prepare()
    import wsh.mcp.transport.endpoint  # noqa: F401  # imported early, since that takes long


def _import_rooms() -> None:
    import wsh.app.deferred_rooms  # noqa: F401  # imported early, since that takes long


def _bound_memory() -> None:
    """Few pools of memory for many threads: what one thread frees is used by the next, and the process stays small.

    Large pieces come from the system and go back to it. By itself the library would take them from the pools once the
    first one was freed, and leave holes there that nothing fits into.
    """
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        for option, value in _MALLOC.items():
            libc.mallopt(option, value)
    except (OSError, AttributeError):
        pass  # not glibc
