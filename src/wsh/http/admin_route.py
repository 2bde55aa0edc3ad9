"""Routes for the owner who looks after the server: what may run, what was decided, who is here.

All of them only show; the policy is changed with `wsh policy`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from wsh.http.rooms import ApiCall
from wsh.http.route import Query, Route

GROUP = "admin"


async def get_policy(call: ApiCall) -> dict[str, Any]:
    from wsh.policy.describe import describe_policy
    from wsh.policy.store import PolicyStore

    return describe_policy(PolicyStore(call.rooms.places.policy_file))


class AuditQuery(Query):
    limit: int = Field(100, ge=1, le=1000)


async def get_audit(call: ApiCall) -> dict[str, Any]:
    from wsh.policy.audit import Audit

    trail = Audit(call.rooms.places.audit_log)
    return {"entries": await asyncio.to_thread(trail.read_tail, call.query.limit)}


async def list_clients(call: ApiCall) -> dict[str, Any]:
    clients = call.rooms.clients
    found = [
        present.to_wire(session.name)
        for session in call.rooms.registry.list_sessions()
        for present in clients.list_present(session)
    ]
    found += [present.to_wire(None) for present in clients.list_present(None)]
    return {"clients": [*found, *call.rooms.list_guests()]}


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/policy",
        get_policy,
        "The policy in force: rules, limits, and a warning if its file cannot be used.",
        GROUP,
        answer="What `wsh policy show --json` prints.",
        owner_only=True,
    ),
    Route(
        "GET",
        "/audit",
        get_audit,
        "The newest entries of the audit, oldest first.",
        GROUP,
        query=AuditQuery,
        answer="`{entries}`",
        owner_only=True,
    ),
    Route(
        "GET",
        "/clients",
        list_clients,
        "Who is connected, to which session, and how: WebSockets, viewers, MCP clients.",
        GROUP,
        answer="`{clients}`",
        owner_only=True,
    ),
)
