"""A server that is told to stop while requests wait in it: what is kept of each says what really became of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.contract.world import INTERACTIVE, NothingRuns, Trail
from tests.support.waiting import HANG_S, until
from wsh.approval.answer import Answer
from wsh.approved import ApprovedSessions
from wsh.contract.adapters.server import ServerAdapter
from wsh.contract.ask.kept import KeptRequest, RequestFolder
from wsh.contract.ask.pending import PendingRequest
from wsh.contract.assemble import make_contract
from wsh.contract.dispatch import Contract
from wsh.contract.request.alias import CANONICAL_TOOL
from wsh.policy.file.store import PolicyStore
from wsh.session.command.output import render_printed
from wsh.session.registry import SessionRegistry
from wsh.wire.caller import Caller
from wsh.wire.setting import load
from wsh.wire.system.place import Places, ensure_private


@asynccontextmanager
async def serving(places: Places) -> AsyncIterator[tuple[Contract, ServerAdapter, SessionRegistry]]:
    """The contract of a server that asks in its own queue and runs what is approved in its own sessions."""
    for folder in (places.runtime, places.state):
        ensure_private(folder)
    settings = load(None, {"WSH_SESSION_SHELL": "sh", "WSH_APPROVALS_SERVER": "true"})
    registry = await SessionRegistry.open(places, settings)
    contract = make_contract(
        settings,
        places,
        runner=NothingRuns(),
        policy=PolicyStore(places.policy_file),
        trail=Trail(),
        environ=os.environ,
        render=render_printed,
        approved=ApprovedSessions(registry, settings),
    )
    server = contract.interactive.server
    assert server is not None
    try:
        yield contract, server, registry
    finally:
        await contract.aclose()
        await registry.stop()


async def ask(contract: Contract, folder: Path, command: str) -> PendingRequest:
    """A call that gives up waiting before anybody answers."""
    request: dict[str, Any] = {
        "action": "execute",
        "invocation": INTERACTIVE,
        "execution": {"command": command},
        "runtime": {"timeout_ms": 50, "keep_pending": True},
    }
    caller = Caller("agent", "caller-1", "token", connection="stdio:caller-1", cwd=str(folder), environ={})
    told: Any = (await contract.handle(request, caller, CANONICAL_TOOL)).payload
    assert told["result"]["approval"] == "pending", told
    entry = contract.interactive.waiting.find(told["result"]["approval_id"])
    assert entry is not None
    return entry


async def approve(server: ServerAdapter, entry: PendingRequest) -> None:
    await until(lambda: server.queue.find_card(entry.request.id), "the card")
    card = server.queue.find_card(entry.request.id)
    assert card is not None
    await server.answer(entry.request, Answer(card.evidence.binding, True, "ann", where="page"))


def read_kept(places: Places, entry: PendingRequest) -> KeptRequest:
    (kept,) = [one for one in RequestFolder(places.requests).load() if one.request.id == entry.request.id]
    return kept


async def test_a_command_that_is_started_while_the_server_stops_is_kept_as_approved(
    tmp_path: Path, places: Places
) -> None:
    async with serving(places) as (contract, server, registry):
        reached, gate, begin = asyncio.Event(), asyncio.Event(), server.end.before_run

        async def begin_late(terminal_id: str, sid: str) -> None:
            reached.set()
            await gate.wait()
            await begin(terminal_id, sid)

        server.end.before_run = begin_late
        entry = await ask(contract, tmp_path, "sleep 60")
        await approve(server, entry)
        await reached.wait()
        closing = asyncio.create_task(contract.aclose())
        await until(lambda: server.state == "closed", "the stop")
        gate.set()
        async with asyncio.timeout(HANG_S):
            await closing
        (session,) = registry.list_sessions()
        kept = read_kept(places, entry)
        assert (kept.state, kept.outcome) == ("settled", "approved")
        assert kept.decision is not None and kept.decision.by == "ann"
        assert kept.sid == session.sid


async def test_a_request_that_nobody_answered_ends_with_the_server(tmp_path: Path, places: Places) -> None:
    async with serving(places) as (contract, _, registry):
        entry = await ask(contract, tmp_path, "sleep 60")
        async with asyncio.timeout(HANG_S):
            await contract.aclose()
        kept = read_kept(places, entry)
        assert (kept.state, kept.decision) == ("settled", None) and registry.list_sessions() == []


async def test_a_request_that_comes_while_the_server_stops_is_told_so(tmp_path: Path, places: Places) -> None:
    async with serving(places) as (contract, server, _):
        await server.close()
        request = {"action": "execute", "invocation": INTERACTIVE, "execution": {"command": "true"}}
        caller = Caller("agent", "caller-1", "token", connection="stdio:caller-1", cwd=str(tmp_path), environ={})
        async with asyncio.timeout(HANG_S):
            told: Any = (await contract.handle(request, caller, CANONICAL_TOOL)).payload
        assert told["error"]["code"] == "PM_TERM_DISCONNECTED", told
