"""Running a command in a session and waiting for its end."""

from __future__ import annotations

from typing import Annotated

from wsh.operation.context import OnSession
from wsh.operation.operation import Json, operation
from wsh.wire.command import RunAnswer, RunRequest


@operation(
    manner="waits",
    errors=(
        "session_not_found",
        "session_exited",
        "session_taken",
        "line_in_use",
        "idle_timeout",
        "resource_limit_reached",
    ),
)
async def run_command(on: OnSession, params: RunRequest) -> Annotated[Json, RunAnswer]:
    """Run a command and wait for its end."""
    most = params.max_output_bytes
    outcome = await on.session.run_command(
        params.input,
        on.caller.actor,
        enter=params.enter,
        timeout_ms=params.timeout_ms,
        max_wait_ms=on.rooms.cap_wait(params.max_wait_ms),
        max_output_bytes=on.rooms.settings.get_int("session.max_output_bytes") if most is None else most,
        clear_line=params.clear_line,
    )
    screen = on.rooms.stages.read_screen(on.session, params.format)
    return {"screen": screen, **outcome.to_wire(on.session.name)}
