"""The dispatcher: every request of every door and every shape passes here, and leaves with exactly one answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wsh.contract.headless import HeadlessRoute
from wsh.contract.identity import IdentityRegistry
from wsh.contract.interactive import InteractiveRoute
from wsh.contract.reply.fault import ContractFault, bad_field, short_of
from wsh.contract.reply.response import Envelope, Outcome
from wsh.contract.reply.taxonomy import Code
from wsh.contract.request.alias import CANONICAL_TOOL, Tool, resolve, to_canonical
from wsh.contract.request.correlation import correlate, make_id
from wsh.contract.request.model import MODES, ContractRequest, Mode
from wsh.contract.request.stage import parse_stage
from wsh.contract.request.validate import validate
from wsh.contract.route import ContractRoute, find_route
from wsh.wire.caller import Caller
from wsh.wire.system.shortage import find_shortage

log = logging.getLogger("wsh.contract")


@dataclass(frozen=True)
class ContractAnswer:
    """The payload, and the code of the failure if it is one."""

    payload: dict[str, object]
    code: Code | None

    @property
    def ok(self) -> bool:
        return self.code is None


class Contract:
    """`handle` never raises, except that a cancellation passes through after everything is cleaned up."""

    def __init__(
        self,
        registry: IdentityRegistry,
        headless: HeadlessRoute,
        interactive: InteractiveRoute,
        new_id: Callable[[str], str] = make_id,
    ) -> None:
        self.registry = registry
        self.headless = headless
        self.interactive = interactive
        self.new_id = new_id

    async def handle(self, raw: object, caller: Caller, tool: Tool = CANONICAL_TOOL) -> ContractAnswer:
        document: Mapping[str, object] = raw if isinstance(raw, Mapping) else {}
        correlated = correlate(document, self.new_id)
        resolution, fault = resolve(document, tool, parse_stage(caller.environ))
        envelope = Envelope(correlated, resolution, _given_mode(document))
        try:
            if not isinstance(raw, Mapping):
                fault = bad_field("", "must be an object")
            if fault is not None:
                raise fault
            request = validate(to_canonical(document, resolution), resolution)
            outcome = await self._dispatch(request, caller, envelope)
            return ContractAnswer(envelope.succeed(outcome), None)
        except ContractFault as failed:
            log.info("%s %s, trace %s", tool, failed.code, correlated.trace_id)
            if failed.code == "PM_TERM_INTERNAL":
                log.error("the contract failed: %s, trace %s", failed.message, correlated.trace_id)
            return ContractAnswer(envelope.fail(failed), failed.code)
        except Exception as problem:
            shortage = find_shortage(problem)
            if shortage is not None:
                log.warning("the contract could not serve, trace %s: %s", correlated.trace_id, shortage.message)
                return ContractAnswer(envelope.fail(short_of(shortage)), "PM_TERM_BLOCKED_DESTRUCTIVE")
            log.exception("the contract failed, trace %s, request %s", correlated.trace_id, correlated.request_id)
            return ContractAnswer(envelope.fail_internally(), "PM_TERM_INTERNAL")

    async def _dispatch(self, request: ContractRequest, caller: Caller, envelope: Envelope) -> Outcome:
        envelope.mode = request.invocation.mode  # aliases have theirs settled by now
        ids = envelope.correlated
        if request.action in {"read_output", "terminate"}:
            assert request.target is not None
            identity = self.registry.get(request.target, caller, request)
            envelope.mode = identity.mode
        route = find_route(request.action, envelope.mode)
        log.debug("%s -> %s (gate: %s), trace %s", request.action, route.path, route.gate, ids.trace_id)
        match route:
            case ContractRoute.LIST:
                await self.interactive.refresh(self.registry.list_active(caller, request), request, ids)
                items = [identity.to_item() for identity in self.registry.list_active(caller, request)]
                return Outcome("completed", {"items": items})
            case ContractRoute.HEADLESS_EXECUTE:
                return await self.headless.execute(request, caller, ids)
            case ContractRoute.HEADLESS_READ:
                return await self.headless.read_output(identity, request)
            case ContractRoute.HEADLESS_TERMINATE:
                return await self.headless.terminate(identity, request)
            case ContractRoute.INTERACTIVE_EXECUTE:
                return await self.interactive.execute(request, caller, ids)
            case ContractRoute.INTERACTIVE_READ:
                return await self.interactive.read_output(identity, request, ids)
            case ContractRoute.INTERACTIVE_TERMINATE:
                return await self.interactive.terminate(identity, request, ids)

    async def aclose(self) -> None:
        """End headless commands and let go of desktops; their windows and what runs there go on."""
        await self.headless.aclose()
        await self.interactive.aclose()


def _given_mode(document: Mapping[str, object]) -> Mode | None:
    """The mode that a request names, so that a refusal can say it as well."""
    invocation = document.get("invocation")
    given = invocation.get("mode") if isinstance(invocation, Mapping) else None
    return next((mode for mode in MODES if mode == given), None)
