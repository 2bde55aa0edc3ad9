"""Every tool in a toolset of pydantic-ai, and one call by way of it."""

import asyncio
import json
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    program, *words = sys.argv[1:]
    transport = StdioTransport(program, words, env=dict(os.environ))
    toolset = MCPToolset(transport, init_timeout=120, read_timeout=300)
    async with toolset:
        tools = {tool.name: tool for tool in await toolset.list_tools()}
        made = await toolset.direct_call_tool("wsh_create_session", {"command": "bash --norc"})
        said = await toolset.direct_call_tool(
            "wsh_run_command", {"session": made["session"], "input": "echo $((6*7))", "format": "plain"}
        )
        assert said["output"] == "42", said
        await toolset.direct_call_tool("wsh_manage_session", {"session": made["session"], "action": "kill"})
        print(json.dumps({"tools": sorted(tools)}))


asyncio.run(main())
