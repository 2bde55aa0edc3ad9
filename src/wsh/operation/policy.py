"""What may run and what was decided. The policy is only shown; it is changed with `wsh policy`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.wire.model.base import Model


class AuditParams(Model):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


@operation(who="owner", manner="reads")
async def get_policy(context: Context) -> Annotated[Json, "What `wsh policy show --json` prints."]:
    """The policy in force: rules, limits, and a warning if its file cannot be used."""
    from wsh.policy.describe import describe_policy
    from wsh.policy.file.store import PolicyStore

    return describe_policy(PolicyStore(context.rooms.places.policy_file))


@operation(who="owner", manner="reads", forwarding=Forwarding(joined="entries"))
async def get_audit(context: Context, params: AuditParams) -> Annotated[Json, "`{entries}`"]:
    """The newest entries of the audit, oldest first."""
    from wsh.policy.audit import Audit

    trail = Audit(context.rooms.places.audit_log)
    return {"entries": await asyncio.to_thread(trail.read, params.limit)}
