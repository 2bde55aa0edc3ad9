"""A sandbox's plan on its way to the keeper: made in a thread, and put on what is to be started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from wsh.process import ConfinementSpec, SpawnSpec
from wsh.sandbox.hold import Sandboxes, SandboxPlan


async def hold(sandboxes: Sandboxes, plan: Callable[[], SandboxPlan]) -> SandboxPlan:
    """Call `plan`, a call of `Sandboxes.plan`, beside the event loop. If we are cancelled meanwhile, nothing of the plan is left."""
    task = asyncio.ensure_future(asyncio.to_thread(plan))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: _undo(done, sandboxes))
        raise


def _undo(done: asyncio.Task[SandboxPlan], sandboxes: Sandboxes) -> None:
    if not done.cancelled() and done.exception() is None:
        done.result().close()
        sandboxes.release(done.result().id)


def confine(start: SpawnSpec, plan: SandboxPlan) -> SpawnSpec:
    """`start` as its sandbox wants it."""
    confinement = ConfinementSpec(
        plan.ruleset_fd, plan.terminal_access, plan.filter, plan.held, plan.ignored, plan.limits, plan.wrapped
    )
    return replace(
        start,
        argv=plan.argv,
        path=plan.path,
        env=plan.env,
        cwd=plan.cwd,
        cwd_fd=plan.cwd_fd,
        identity=None if plan.wrapped else start.identity,
        confinement=confinement,
    )
