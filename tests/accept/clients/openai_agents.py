"""Every tool as a strict function of openai-agents, and one call by way of it."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStdio, MCPUtil


async def main() -> None:
    program, *words = sys.argv[1:]
    async with MCPServerStdio(params={"command": program, "args": words}, client_session_timeout_seconds=120) as server:
        tools = {tool.name: tool for tool in await server.list_tools()}
        strict = {}
        for name, tool in tools.items():
            made = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
            strict[name] = made.strict_json_schema
            json.dumps(made.params_json_schema)

        session = json.loads((await server.call_tool("wsh_create_session", {"command": "bash --norc"})).content[0].text)
        try:
            said = (
                (
                    await server.call_tool(
                        "wsh_run_command", {"session": session["session"], "input": "echo $((6*7))", "format": "plain"}
                    )
                )
                .content[0]
                .text
            )
            assert json.loads(said)["output"] == "42", said
        finally:
            await server.call_tool("wsh_manage_session", {"session": session["session"], "action": "kill"})
        print(json.dumps({"tools": sorted(tools), "strict": strict}))


asyncio.run(main())
