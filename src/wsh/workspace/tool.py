"""The six workspace tools by name: `perform` runs one whose arguments a door has checked.

`call_tool` does all that is asked of a door as well: check the arguments, keep the deadline, one failure with a public code.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from functools import lru_cache
from typing import Any

from wsh.wire.error import WshError
from wsh.wire.json.fit import Check, make_check
from wsh.wire.json.object import JsonObject
from wsh.wire.surrogate import find_unsound
from wsh.wire.system.shortage import find_shortage
from wsh.wire.tool import ToolFailure
from wsh.workspace import schema
from wsh.workspace.error import InvalidArguments, ToolError, ToolTimeout
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import ToolContext

log = logging.getLogger(__name__)

Arguments = JsonObject


async def perform(service: WorkspaceService, name: str, a: Arguments, context: ToolContext) -> Arguments:
    """Run a tool with arguments that fit its schema. A full disk is raised as such."""
    try:
        return await _perform(service, name, a, context)
    except (OSError, sqlite3.Error) as problem:
        raise find_shortage(problem, service.folder) or problem from None


async def _perform(service: WorkspaceService, name: str, a: Arguments, context: ToolContext) -> Arguments:
    match name:
        case "index_build":
            mode, paths = a.get("mode", "all"), a.get("paths")
            if mode == "transcripts" and paths is not None:
                raise InvalidArguments("paths cannot be used with mode transcripts.", hint="Leave paths out.")
            return await service.build(context, a.get("workspace"), mode, a.get("full", False), paths)
        case "index_status":
            return await service.index_status(context, a.get("workspace"))
        case "search":
            return await service.search(context, a)
        case "show_file":
            if ("path" in a) == ("id" in a):
                raise InvalidArguments("Give either path or id.", hint="path names a file, id a hit of a search.")
            if a.get("endLine") is not None and a["endLine"] < a.get("startLine", 1):
                raise InvalidArguments("endLine lies before startLine.", hint="Lines count from 1.")
            return await service.show_file(
                context,
                a.get("workspace"),
                a.get("path"),
                a.get("id"),
                a.get("startLine"),
                a.get("endLine"),
                a.get("maxBytes", schema.DEFAULT_MAX_BYTES),
            )
        case "check_status":
            return await service.check_status(context)
        case "workspace_status":
            return await service.workspace_status(context, a.get("workspace"))
    raise InvalidArguments(f"There is no tool {name[:80]!r}.", hint=f"There are {', '.join(schema.TOOLS)}.")


async def call_tool(service: WorkspaceService, name: str, arguments: object, context: ToolContext) -> Arguments:
    """Check, run, and keep the deadline. Raises ToolError; cancellation passes through, after the work has stopped."""
    if name not in schema.TOOLS:
        raise InvalidArguments(f"There is no tool {name[:80]!r}.", hint=f"There are {', '.join(schema.TOOLS)}.")
    checked = check(name, arguments)
    if "timeoutMs" in checked and "timeout_ms" in checked:
        raise InvalidArguments("timeoutMs and timeout_ms are one argument.", hint="Give one of them.")
    timeout_ms = int(
        checked.pop("timeout_ms", None) or checked.get("timeoutMs", schema.find_timeout_ms(service.settings, name))
    )
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await perform(service, name, checked, context)
    except TimeoutError:
        raise ToolTimeout(name, timeout_ms) from None
    except (ToolFailure, WshError):
        raise
    except Exception:
        log.exception("%s failed", name)
        raise ToolError("An internal error occurred.", hint="Look into the server's log; the fault is ours.") from None


@lru_cache(maxsize=16)
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema.TOOLS[name].input_schema(1))


@lru_cache(maxsize=16)
def _quick_check(name: str) -> Check:
    return make_check(schema.TOOLS[name].input_schema(1))


def check(name: str, arguments: object) -> Arguments:
    """The arguments, if they fit the schema; InvalidArguments says which does not and why."""
    if not isinstance(arguments, dict):
        raise InvalidArguments("Arguments must be a JSON object.")
    if _quick_check(name)(arguments):
        return arguments  # without the validator, which takes longer to import than most calls to make
    unsound = find_unsound(arguments)
    if unsound is not None:
        raise InvalidArguments(
            f"{name}: {unsound + ' ' if unsound else ''}holds half of a surrogate pair, which is no character.",
            hint="Send whole text.",
        )
    problems = sorted(_validator(name).iter_errors(arguments), key=lambda e: [str(part) for part in e.absolute_path])
    for problem in problems:
        where = ".".join(str(part) for part in problem.absolute_path)
        if problem.validator == "additionalProperties":
            known = schema.TOOLS[name].input_schema(1)["properties"]
            extra = sorted(str(key) for key in arguments if key not in known)
            raise InvalidArguments(
                f"{name} has no argument {', '.join(extra)[:200]}.",
                hint=f"Its arguments are: {', '.join(known)}.",
                unknown=extra[:20],
            )
        message = problem.message if len(problem.message) < 300 else f"{problem.message[:300]}…"
        raise InvalidArguments(
            f"{name}: {where + ': ' if where else ''}{message}.",
            hint="Look at the tool's input schema.",
            **({"argument": where} if where else {}),
        )
    return arguments
