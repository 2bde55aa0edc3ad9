"""Every tool as one of LangChain's, in sessions that close as soon as they have their answer."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


def read(answer: object) -> dict:
    """The JSON of a tool's answer, which is a text or a list of blocks."""
    blocks = answer if isinstance(answer, list) else [answer]
    text = next(block["text"] if isinstance(block, dict) else block for block in blocks)
    return json.loads(text)


async def main() -> None:
    program, *words = sys.argv[1:]
    client = MultiServerMCPClient({"wsh": {"command": program, "args": words, "transport": "stdio"}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    for tool in tools.values():
        json.dumps(tool.args)
    # Each of these opens a session of its own, calls once, and closes it at once.
    for round in range(6):
        made = read(await tools["wsh_create_session"].ainvoke({"name": f"lang-{round}", "command": "cat"}))
        assert made["session"] == f"lang-{round}", made
        read(await tools["wsh_manage_session"].ainvoke({"session": f"lang-{round}", "action": "kill"}))
    print(json.dumps({"tools": sorted(tools)}))


asyncio.run(main())
