"""Routes into the rooms that open late: the terminal contract for callers without MCP, and the workspace tools."""

from __future__ import annotations

import os
from typing import Any

from pydantic import RootModel

from wsh.http.route import Answer, Call, Route, dump_json

GOVERNING = ("ALLOWED_", "PM_", "WSH_")


class AnyJson(RootModel[Any]):
    """Whatever it is; the room that gets it checks it."""


async def terminal(call: Call) -> Answer:
    """One contract request. Over plain HTTP the server's own folder and variables govern it."""
    from wsh.contract.caller import Caller
    from wsh.contract.endpoint import handle_terminal

    environ = {key: value for key, value in os.environ.items() if key.startswith(GOVERNING)}
    caller = Caller(call.caller.id, call.caller.role, "http", os.getcwd(), environ)
    status, payload = await handle_terminal(await call.rooms.contract.get(), call.body.root, caller)
    return Answer(dump_json(payload), status)


async def workspace(call: Call) -> Answer:
    from wsh.workspace.surroundings import ToolContext
    from wsh.workspace.tool import call_tool

    service = await call.rooms.workspace.get()
    return Answer(dump_json(await call_tool(service, call.path["tool"], call.body.root, ToolContext(os.getcwd()))))


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/terminal",
        terminal,
        "One request of the terminal contract.",
        "contract",
        body=AnyJson,
        answer="The contract's answer; a failure has its own PM_TERM payload.",
        own_statuses=(202, 400, 403, 404, 408, 500, 502, 503),
        waits=True,
    ),
    Route(
        "POST",
        "/workspace/{tool}",
        workspace,
        "One of the workspace tools: search, show_file, index_build, index_status, check_status, workspace_status.",
        "workspace",
        body=AnyJson,
        answer="What the tool found.",
        errors=(
            "not_found",
            "conflict",
            "capability_missing",
            "request_timeout",
            "forbidden",
            "resource_limit_reached",
        ),
        waits=True,
    ),
)
