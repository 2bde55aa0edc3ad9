"""Every tool as one of smolagents', which insists on a type for each input; two calls by way of them."""

import json
import sys

from smolagents import ToolCollection

from mcp import StdioServerParameters


def read(answer: object) -> dict:
    return json.loads(answer) if isinstance(answer, str) else dict(answer)


program, *words = sys.argv[1:]
with ToolCollection.from_mcp(
    StdioServerParameters(command=program, args=words), trust_remote_code=True, structured_output=False
) as collection:
    tools = {tool.name: tool for tool in collection.tools}
    for tool in tools.values():
        for name, entry in tool.inputs.items():
            assert entry.get("type"), (tool.name, name, entry)
    made = read(tools["wsh_create_session"](command="bash --norc"))
    said = read(tools["wsh_run_command"](session=made["session"], input="echo $((6*7))", format="plain"))
    assert said["output"] == "42", said
    tools["wsh_manage_session"](session=made["session"], action="kill")
    print(json.dumps({"tools": sorted(tools)}))
