"""The terminal contract."""

from __future__ import annotations

from typing import Annotated

from wsh.contract.request.alias import CANONICAL_TOOL, Tool
from wsh.operation.context import Context
from wsh.operation.forward import Forwarding
from wsh.operation.operation import operation
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import AnyJson, Model


class ContractParams(Model):
    request: AnyJson
    """Whatever it is; the contract judges it."""
    tool: Tool = CANONICAL_TOOL
    """The name under which it was asked: the older ones take the older payloads."""


def _revive(wire: JsonObject) -> object:
    from wsh.contract.dispatch import ContractAnswer

    return ContractAnswer(wire["payload"], wire["code"])


@operation(manner="waits", family="contract", forwarding=Forwarding(names=(), revive=_revive))
async def call_terminal(
    context: Context, params: ContractParams
) -> Annotated[object, "The contract's answer; a failure has its own PM_TERM payload."]:
    """One request of the terminal contract."""
    contract = await context.rooms.contract.get()
    return await contract.handle(params.request.root, context.governed, params.tool)
