"""Tools about the life of sessions: create, list, and kill, rename or detach."""

from __future__ import annotations

from wsh.mcp.registry import to_json
from wsh.mcp.tool import schema as s
from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.mcp.tool.show import show_listed, show_session, show_state
from wsh.operation.session import (
    ListParams,
    create_session,
    detach_session,
    get_session,
    kill_session,
    list_sessions,
    show_holding,
    update_session,
)
from wsh.wire.error import InvalidRequest
from wsh.wire.json.object import JsonObject
from wsh.wire.model.session import SessionCreate, SessionPatch
from wsh.wire.tool import Annotations, ToolOutcome

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
    notice={"type": "string", "description": "What its screen lacks, and why; absent if it lacks nothing."},
    sandbox=s.SANDBOX,
    host={"type": "string", "description": "The machine that it is on; absent for this one."},
    unreachable_since={
        "type": "number",
        "description": "Its machine cannot be reached since then; the rest is as it was.",
    },
    taken_by={"type": "string", "description": "The person who has taken the keyboard; agents' input is refused."},
)


_HOSTS: JsonObject = {
    "type": "array",
    "description": "Other machines; their sessions are `name/session`. Absent if there are none.",
    "items": s.result(
        ["name", "online", "since"],
        name={"type": "string"},
        online={"type": "boolean"},
        since={"type": "number", "description": "Since when it is online or offline."},
        last_seen={"type": ["number", "null"]},
        problem={"type": ["string", "null"], "description": "Why it cannot be reached."},
    ),
}


async def _create(call: ToolCall) -> ToolOutcome:
    made = await call.make(create_session, SessionCreate(**call.arguments))
    session = call.rooms.registry.get_session(made["name"])
    shown: JsonObject = {"session": session.name, "pid": session.pid, "rows": session.rows, "cols": session.cols}
    if session.holding is not None:
        shown["sandbox"] = show_holding(session.holding)
    return ToolOutcome(shown | {"command": session.command, "tags": list(session.tags)} | show_state(session))


async def _list(call: ToolCall) -> ToolOutcome:
    a, rooms = call.arguments, call.rooms
    if "session" in a:
        if "tag" in a:
            raise InvalidRequest("Give either session or tag.", hint="A session's entry shows its tags.")
        await call.make(get_session)
        return ToolOutcome(show_session(rooms, call.session))
    listed = [info for info in await call.make(list_sessions, ListParams()) if a.get("tag") in (None, *info["tags"])]
    found = [shown for info in listed if (shown := show_listed(rooms, info)) is not None]
    hosts = [state.to_wire() for state in rooms.hosts.list_hosts()]
    if not hosts:
        return ToolOutcome({"sessions": found}, text=to_json(found))
    return ToolOutcome({"sessions": found, "hosts": hosts}, text=to_json({"sessions": found, "hosts": hosts}))


async def _manage(call: ToolCall) -> ToolOutcome:
    a = call.arguments
    if a["action"] == "rename":
        if "new_name" not in a:
            raise InvalidRequest("new_name is required to rename.", hint="Give the name that it shall have.")
        renamed = await call.make(update_session, SessionPatch(name=a["new_name"]))
        return ToolOutcome({"success": True, "session": renamed["name"]})
    if "new_name" in a:
        raise InvalidRequest("new_name belongs to the action rename alone.", hint="Leave it out.")
    if a["action"] == "detach":
        return ToolOutcome({"success": True, "detached": (await call.make(detach_session)).detached})
    survivors = (await call.make(kill_session)).survivors
    return ToolOutcome({"success": True, "survivors": survivors} if survivors else {"success": True})


TOOLS = (
    OperationTool(
        name="wsh_create_session",
        title="Create a terminal session",
        description=(
            "Start a shell or another program on a terminal of its own. It keeps running between calls until you kill "
            "it; use one session per strand of work, and use it again instead of creating another. Returns the name "
            "to give to every other tool."
        ),
        input_schema=s.arguments(
            [],
            name=s.text(
                "Session name: 1 to 64 letters, digits, '-', '_', '.'. Generated if left out. `host/name`, or `host/`, makes it "
                "on another machine that wsh_list_sessions shows."
            ),
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
            sandbox=s.text(
                "A sandbox profile by name, narrower than the one that agents get; left out, that one. Inside, writes end at "
                "the session's folder and the network may be off.",
                maxLength=64,
            ),
        ),
        output_schema=s.result(
            ["session", "pid", "rows", "cols"],
            session={"type": "string"},
            pid={"type": "integer"},
            rows={"type": "integer"},
            cols={"type": "integer"},
            command={"type": "string"},
            tags={"type": "array", "items": {"type": "string"}},
            sandbox=s.SANDBOX,
            **s.STATE_PROPERTIES,
        ),
        spell=_create,
        calls=(create_session,),
        addresses=("name",),
        schema_version=3,
        annotations=Annotations(open_world=True),
    ),
    OperationTool(
        name="wsh_list_sessions",
        title="List terminal sessions",
        description=(
            "All sessions, those of people and other agents included, or the details of one. Use it to find out what "
            "exists, whether a program still runs and how it ended. Not for reading a screen."
        ),
        input_schema=s.arguments(
            [],
            session=s.text("Give the details of this session alone.", minLength=1, maxLength=129),
            tag=s.text("List only sessions with this tag.", minLength=1, maxLength=64),
        ),
        output_schema={
            "type": "object",
            "properties": {"sessions": {"type": "array", "items": _ENTRY}, "hosts": _HOSTS, **_ENTRY["properties"]},
            "anyOf": [{"required": ["sessions"]}, {"required": _ENTRY["required"]}],
        },
        spell=_list,
        calls=(list_sessions, get_session),
        names=("session", "name"),
        schema_version=4,
        reads=True,
        annotations=Annotations(read_only=True, idempotent=True),
    ),
    OperationTool(
        name="wsh_manage_session",
        title="Kill, rename or detach a session",
        description=(
            "`kill` ends the session's whole process tree and forgets the session: use it for sessions you made, when "
            "their output is read. `rename` gives it another name. `detach` sends every viewer away and leaves the "
            "program alone. To interrupt a command, send ctrl+c with wsh_send_input instead."
        ),
        input_schema=s.on_session(
            "action",
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
        schema_version=2,
        spell=_manage,
        calls=(kill_session, update_session, detach_session),
        addresses=("session", "new_name"),
        default_timeout_ms=60_000,
        annotations=Annotations(destructive=True),
    ),
)
