"""The terminal contract, for callers without MCP."""

from __future__ import annotations

from typing import Annotated

from wsh.operation.context import Context
from wsh.operation.operation import operation
from wsh.wire.model import AnyJson, Model


class ContractParams(Model):
    request: AnyJson
    """Whatever it is; the contract judges it."""


@operation(manner="waits")
async def call_terminal(
    context: Context, params: ContractParams
) -> Annotated[object, "The contract's answer; a failure has its own PM_TERM payload."]:
    """One request of the terminal contract."""
    contract = await context.rooms.contract.get()
    return await contract.handle(params.request.root, context.governed)
