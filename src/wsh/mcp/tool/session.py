"""Tools about the life of sessions: create, list, and kill, rename or detach."""

from __future__ import annotations

import os
from typing import Any

from wsh.mcp.registry import to_json
from wsh.mcp.tool import schema as s
from wsh.mcp.tool.rooms import TerminalRooms, find_actor
from wsh.session.spec import SessionSpec
from wsh.wire.error import InvalidRequest
from wsh.wire.tool import Annotations, CallContext, ToolOutcome, ToolSpec

_ENTRY = s.result(
    ["name", "pid", "command", "rows", "cols", "running"],
    name={"type": "string"},
    pid={"type": "integer"},
    command={"type": "string"},
    rows={"type": "integer"},
    cols={"type": "integer"},
    running={"type": "boolean"},
    exit_code={"type": ["integer", "null"]},
    tags={"type": "array", "items": {"type": "string"}},
    clients={"type": "integer", "description": "Connections that watch it."},
    title={"type": "string"},
    cwd={"type": "string"},
    taken_by={"type": "string", "description": "The person who has taken the keyboard; agents' input is refused."},
)


def _resolve(base: str, cwd: str | None) -> str:
    """A folder as the caller means it: relative to theirs, not to the server's."""
    return base if cwd is None else os.path.join(base, os.path.expanduser(cwd))


def make_session_tools(rooms: TerminalRooms) -> list[ToolSpec]:
    async def create(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        cwd = _resolve(ctx.cwd, a.get("cwd"))
        session = await rooms.registry.open_session(
            SessionSpec(
                name=a.get("name"),
                command=a.get("command"),
                rows=a.get("rows"),
                cols=a.get("cols"),
                cwd=cwd,
                env=a.get("env", {}),
                tags=a.get("tags", ()),
                actor=find_actor(ctx),
                agent_defaults=rooms.settings.get_bool("session.agent_defaults"),
            )
        )
        shown = {"session": session.name, "pid": session.pid, "rows": session.rows, "cols": session.cols}
        return ToolOutcome(shown | {"command": session.command, "tags": list(session.tags)} | rooms.read_state(session))

    async def list_(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        if "session" in a:
            if "tag" in a:
                raise InvalidRequest("Give either session or tag.", hint="A session's entry shows its tags.")
            return ToolOutcome(rooms.describe(rooms.get_session(a)))
        tags = [a["tag"]] if "tag" in a else None
        found = [rooms.describe(session) for session in rooms.registry.list_sessions(tags)]
        return ToolOutcome({"sessions": found}, text=to_json(found))

    async def manage(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        session = rooms.get_session(a)
        if a["action"] == "rename":
            if "new_name" not in a:
                raise InvalidRequest("new_name is required to rename.", hint="Give the name that it shall have.")
            rooms.registry.rename(session.name, a["new_name"])
            return ToolOutcome({"success": True, "session": a["new_name"]})
        if "new_name" in a:
            raise InvalidRequest("new_name belongs to the action rename alone.", hint="Leave it out.")
        if a["action"] == "detach":
            return ToolOutcome({"success": True, "detached": rooms.detach(session)})
        report = await rooms.registry.destroy(session)
        shown: dict[str, Any] = {"success": True}
        if report is not None and report.survivors:
            shown["survivors"] = [pid for pid, _ in report.survivors]
        return ToolOutcome(shown)

    return [
        ToolSpec(
            name="wsh_create_session",
            title="Create a terminal session",
            description=(
                "Start a shell or another program on a terminal of its own. It keeps running between calls until you kill "
                "it; use one session per strand of work, and use it again instead of creating another. Returns the name "
                "to give to every other tool."
            ),
            input_schema=s.arguments(
                [],
                name=s.text("Session name: 1 to 64 letters, digits, '-', '_', '.'. Generated if left out."),
                command=s.text(
                    "Command to run, as a shell would read it. Left out: the user's shell. For a single command in an "
                    "existing shell use wsh_run_command instead.",
                    maxLength=131_072,
                ),
                rows=s.number("Terminal rows.", 1, 1000, 24),
                cols=s.number("Terminal columns; more for wide output.", 1, 1000, 80),
                cwd=s.text("Working directory, absolute or relative to yours. Left out: yours.", maxLength=4096),
                env={
                    "type": "object",
                    "description": "Further environment variables.",
                    "additionalProperties": {"type": "string"},
                    "maxProperties": 4096,
                },
                tags={
                    "type": "array",
                    "description": "Tags to find it by: letters, digits, '-', '_', '.', ':', '/'.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 64,
                },
            ),
            output_schema=s.result(
                ["session", "pid", "rows", "cols"],
                session={"type": "string"},
                pid={"type": "integer"},
                rows={"type": "integer"},
                cols={"type": "integer"},
                command={"type": "string"},
                tags={"type": "array", "items": {"type": "string"}},
                **s.STATE_PROPERTIES,
            ),
            family="terminal",
            run=create,
            annotations=Annotations(open_world=True),
        ),
        ToolSpec(
            name="wsh_list_sessions",
            title="List terminal sessions",
            description=(
                "All sessions, those of people and other agents included, or the details of one. Use it to find out what "
                "exists, whether a program still runs and how it ended. Not for reading a screen."
            ),
            input_schema=s.arguments(
                [],
                session=s.text("Give the details of this session alone.", minLength=1, maxLength=64),
                tag=s.text("List only sessions with this tag.", minLength=1, maxLength=64),
            ),
            output_schema={
                "type": "object",
                "properties": {"sessions": {"type": "array", "items": _ENTRY}, **_ENTRY["properties"]},
                "anyOf": [{"required": ["sessions"]}, {"required": _ENTRY["required"]}],
            },
            family="terminal",
            run=list_,
            reads=True,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        ToolSpec(
            name="wsh_manage_session",
            title="Kill, rename or detach a session",
            description=(
                "`kill` ends the session's whole process tree and forgets the session: use it for sessions you made, when "
                "their output is read. `rename` gives it another name. `detach` sends every viewer away and leaves the "
                "program alone. To interrupt a command, send ctrl+c with wsh_send_input instead."
            ),
            input_schema=s.arguments(
                ["session", "action"],
                session=s.SESSION,
                action=s.choice("What to do.", "kill", "rename", "detach"),
                new_name=s.text("The new name; required for rename, refused otherwise.", minLength=1),
            ),
            output_schema=s.result(
                ["success"],
                success=s.SUCCESS,
                session={"type": "string", "description": "The new name, after rename."},
                detached={"type": "integer", "description": "Viewers that were sent away, after detach."},
                survivors={
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "Processes that could not be killed, after kill.",
                },
            ),
            family="terminal",
            run=manage,
            default_timeout_ms=60_000,
            annotations=Annotations(destructive=True),
        ),
    ]
