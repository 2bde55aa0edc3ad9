"""All tools of a server."""

from __future__ import annotations

from collections.abc import Mapping

from wsh.contract.request.stage import parse_stage
from wsh.mcp.tool import control, lean, session, terminal, visual
from wsh.mcp.tool.contract import list_contract_tools
from wsh.mcp.tool.declare import OperationTool
from wsh.mcp.tool.execute import declare_execute
from wsh.mcp.tool.workspace import list_workspace_tools
from wsh.wire.setting import Settings

TOOLS = (*lean.TOOLS, *session.TOOLS, *terminal.TOOLS, *visual.TOOLS, *control.TOOLS)
"""The terminal tools, which are the same on every server."""


def list_tools(settings: Settings, environ: Mapping[str, str]) -> list[OperationTool]:
    """Every tool that a server with these settings and governing variables may offer."""
    execute = declare_execute(settings.get_int("exec.timeout_ms"))
    return [*TOOLS, *list_contract_tools(parse_stage(environ)), execute, *list_workspace_tools(settings)]
