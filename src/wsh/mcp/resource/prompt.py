"""The nine guides as MCP prompts. Their texts are in `wsh/skills/`, one Markdown file each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import mcp_types as types

from wsh import skills
from wsh.mcp.error import RpcFailure
from wsh.wire import tool
from wsh.wire.json import rpc


class PromptIndex:
    def list_prompts(self) -> list[types.Prompt]:
        return [
            types.Prompt(name=guide.name, title=guide.title, description=guide.description) for guide in skills.GUIDES
        ]

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None) -> types.GetPromptResult:
        guide = next((guide for guide in skills.GUIDES if guide.name == name), None)
        if guide is None:
            known = ", ".join(guide.name for guide in skills.GUIDES)
            raise RpcFailure(
                rpc.INVALID_PARAMS,
                f"Unknown prompt: {name[:128]!r}.",
                {"code": tool.INVALID_REQUEST, "hint": f"There are {known}."},
            )
        if arguments:
            raise RpcFailure(
                rpc.INVALID_PARAMS,
                f"The prompt {name!r} takes no arguments.",
                {"code": tool.INVALID_REQUEST, "arguments": sorted(arguments)[:16]},
            )
        text = types.TextContent(type="text", text=_read(guide))
        return types.GetPromptResult(
            description=guide.description, messages=[types.PromptMessage(role="user", content=text)]
        )


@cache
def _read(guide: skills.Guide) -> str:
    return skills.read_guide(guide)
