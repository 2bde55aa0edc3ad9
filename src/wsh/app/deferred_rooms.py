"""The rooms that take longest to import, made and wired: policy, contract, workspace and transcripts. Plain imports: `deferred` imports this in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.app.headless import HeadlessRunner
from wsh.approved import ApprovedSessions
from wsh.contract.ask.restore import restore_requests
from wsh.contract.assemble import make_contract
from wsh.contract.dispatch import Contract
from wsh.contract.execute_command import ExecuteCommand
from wsh.contract.request.stage import find_bad_stage
from wsh.policy.audit import Audit
from wsh.policy.file.store import PolicyStore
from wsh.session.command.output import render_printed
from wsh.workspace.service import WorkspaceService
from wsh.workspace.transcript.feed import SessionTranscripts

if TYPE_CHECKING:
    from wsh.app.compose import Composition


@dataclass(frozen=True)
class OpenedRooms:
    contract: Contract
    workspace: WorkspaceService
    execute: ExecuteCommand
    transcripts: SessionTranscripts


@contextlib.asynccontextmanager
async def open_rooms(server: Composition, count_calls: Callable[[], int]) -> AsyncIterator[OpenedRooms]:
    """The rooms, closed at the end. `count_calls` says how many MCP calls are under way."""
    settings, places = server.settings, server.places
    async with contextlib.AsyncExitStack() as closing:
        own = (places.config, places.runtime, places.state)
        runner = HeadlessRunner(
            server.registry.keeper,
            os.environ,
            own_folders=own,
            sandboxes=server.registry.sandboxes,
            sandbox=server.rooms.sandbox.load,
        )
        trail = Audit(places.audit_log, settings.get_int("audit.max_bytes"), settings.get_int("audit.keep"))
        policy = PolicyStore(places.policy_file)
        contract = make_contract(
            settings,
            places,
            runner=runner,
            policy=policy,
            trail=trail,
            environ=dict(os.environ),
            render=render_printed,
            approved=ApprovedSessions(server.registry, settings, keep_shells=False, sandbox=server.rooms.sandbox.load),
        )
        execute = ExecuteCommand(
            runner,
            trail,
            timeout_ms=settings.get_int("exec.timeout_ms"),
            max_output_bytes=settings.get_int("exec.max_output_bytes"),
            result_bytes=settings.get_int("exec.result_bytes"),
            kept_bytes=settings.get_int("exec.kept_bytes"),
            home=os.environ.get("HOME"),
        )
        workspace = WorkspaceService(places, settings, ServerSurroundings(server, policy, count_calls))
        transcripts = SessionTranscripts(
            server.registry,
            workspace.transcripts,
            enabled=settings.get_bool("journal.enabled"),
            close_s=settings.get_int("index.close_ms") / 1000,
        )
        for room in (workspace, transcripts, contract):
            closing.push_async_callback(room.aclose)
        workspace.upkeep.use(transcripts)
        workspace.start_watching()
        await transcripts.start()
        folder = contract.interactive.folder
        assert folder is not None
        found = await asyncio.to_thread(folder.load)
        restore_requests(contract.interactive, found, settings.get_int("approvals.reconnect_ms") / 1000)
        yield OpenedRooms(contract, workspace, execute, transcripts)


class ServerSurroundings:
    """What the workspace room shows of the rest of the server."""

    def __init__(self, server: Composition, policy: PolicyStore, count_calls: Callable[[], int]) -> None:
        self._server = server
        self._policy = policy
        self._count_calls = count_calls

    def describe_queue(self) -> dict[str, object]:
        return {"active": self._count_calls(), "limit": self._server.settings.get_int("mcp.queue_size")}

    async def describe_policy(self) -> dict[str, object]:
        warning = self._policy.warning
        state: dict[str, object] = {"state": "ok"} if warning is None else {"state": "strict", "warning": warning}
        sandbox = self._policy.current().sandbox
        return state | {"sandbox": await asyncio.to_thread(self._server.registry.sandboxes.describe, sandbox)}

    def list_warnings(self, environ: Mapping[str, str]) -> list[dict[str, str]]:
        problem = find_bad_stage(environ)
        return [] if problem is None else [{"code": "ALIAS_STAGE", "message": f"{problem}; strict is used."}]

    def list_sessions(self) -> list[dict[str, object]]:
        sessions = self._server.registry.list_sessions()
        return [{"name": s.name, "cwd": s.cwd, "running": s.running} for s in sessions]
