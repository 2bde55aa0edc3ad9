"""Running a command in a session and waiting for its end."""

from __future__ import annotations

from typing import Annotated

from wsh.operation.context import OnSession
from wsh.operation.forward import Forwarding
from wsh.operation.input import INPUT_ERRORS
from wsh.operation.leaving import check_leaving, run_outside
from wsh.operation.operation import Json, operation
from wsh.operation.sandbox import admit, is_agent
from wsh.sandbox.denied import find_denied
from wsh.wire.error import WaitTimeout
from wsh.wire.model.command import RunAnswer, RunRequest


@operation(
    manner="waits",
    errors=(*INPUT_ERRORS, "capability_missing"),
    family="terminal",
    forwarding=Forwarding(held=True),
)
async def run_command(on: OnSession, params: RunRequest) -> Annotated[Json, RunAnswer]:
    """Run a command and wait for its end."""
    rooms, session, most = on.rooms, on.session, params.max_output_bytes
    if check_leaving(params.sandbox, params.reason):
        return await _run_outside(on, params)
    if is_agent(on.caller):
        admit(session, await rooms.sandbox.load())
    wait_ms = rooms.cap_wait(params.max_wait_ms)
    try:
        outcome = await rooms.hidden.type(
            on,
            "run",
            params.input.encode("utf-8", "surrogateescape"),
            wait_ms,
            lambda: session.run_command(
                params.input,
                on.caller.actor,
                enter=params.enter,
                timeout_ms=params.timeout_ms,
                max_wait_ms=wait_ms,
                max_output_bytes=rooms.settings.get_int("session.max_output_bytes") if most is None else most,
                clear_line=params.clear_line,
                answer=params.answer,
            ),
        )
    except WaitTimeout as problem:
        if "screen" in problem.facts:
            problem.facts["screen"] = rooms.stages.read_screen(session, params.format)
        typed_at = problem.facts.pop("input_generation", None)
        if typed_at is not None:
            rooms.marks.note_input(on.caller, session.sid, typed_at)
        raise
    rooms.marks.note_input(on.caller, session.sid, outcome.input_generation)
    told: Json = {"screen": rooms.stages.read_screen(session, params.format), **outcome.to_wire(session.name)}
    if session.holding is not None and outcome.exit_code and outcome.output is not None:
        denied = find_denied(session.holding.profile.name, outcome.output.text)
        if denied is not None:
            told["sandbox_denied"] = denied
    return told


async def _run_outside(on: OnSession, params: RunRequest) -> Json:
    """Ask a person to run it in a session of its own, in the folder that this one is in; nothing is typed here."""
    session, policy = on.session, await on.rooms.sandbox.load()
    profile = session.holding.profile if session.holding is not None else policy.agents
    assert params.reason is not None
    told = await run_outside(
        on,
        params.input.rstrip("\r\n"),
        session.cwd,
        None if profile is None else profile.name,
        params.reason,
        on.rooms.cap_wait(params.max_wait_ms),
    )
    ended = told.pop("ended")
    screen = on.rooms.stages.read_screen(session, params.format)
    return {
        "screen": screen,
        "generation": session.generation,
        "finished_by": "command" if ended else "approval",
    } | told
