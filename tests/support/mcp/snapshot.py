"""The committed surface: definitions, codes and deadlines, as a client sees them. `python -m tests.support.mcp.snapshot`
rewrites it.

Rewriting refuses a tool whose contract (everything but its descriptions) changed while its schemaVersion did not
rise.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.mcp.host import HttpHost
from tests.support.mcp.live import live_server
from wsh.wire.tool import PUBLIC_CODES

FILE = Path(__file__).parents[2] / "mcp" / "snapshot.json"
PAGE = Path(__file__).parents[3] / "docs" / "mcp-tools.md"
Json = dict[str, Any]


def take(host: HttpHost) -> Json:
    """What a server offers now."""
    tools = host.request("tools/list")["result"]["tools"]
    for tool in tools:
        tool.pop("toolingVersion")
        for copy in ("toolingVersion", "wsh/toolingVersion", "schemaVersion"):
            tool["_meta"].pop(copy)
    return {
        "tools": {tool["name"]: tool for tool in tools},
        "resources": [
            entry for entry in host.request("resources/list")["result"]["resources"] if entry["uri"] == "wsh://sessions"
        ],
        "templates": host.request("resources/templates/list")["result"]["resourceTemplates"],
        "prompts": host.request("prompts/list")["result"]["prompts"],
        "codes": list(PUBLIC_CODES),
    }


def strip(value: Any) -> Any:
    """A definition without its texts: what clients depend on."""
    if isinstance(value, dict):
        return {key: strip(entry) for key, entry in value.items() if not _is_text(key, entry)}
    return [strip(entry) for entry in value] if isinstance(value, list) else value


def _is_text(key: str, entry: Any) -> bool:
    return key in {"description", "title"} and isinstance(entry, str)


def list_unraised(before: Json, after: Json) -> list[str]:
    """Tools whose contract changed without a rise of their version."""
    found = []
    for name, tool in before["tools"].items():
        now = after["tools"].get(name)
        changed = now is None or strip(now) != strip(tool)
        if changed and (now is None or now["schemaVersion"] <= tool["schemaVersion"]):
            found.append(name)
    return found


def render(surface: Json) -> str:
    """The reference page."""
    lines = ["# Tool reference", "", "Made from the registrations by `python -m tests.support.mcp.snapshot`.", ""]
    for tool in surface["tools"].values():
        hints = [k.removesuffix("Hint") for k, v in tool["annotations"].items() if v is True]
        lines += [f"## `{tool['name']}`", "", tool["description"], ""]
        deadline = tool["_meta"]["wsh/defaultTimeoutMs"]
        facts = f"Family {tool['_meta']['wsh/family']} · schemaVersion {tool['schemaVersion']} · deadline {deadline} ms"
        lines += [facts + (f" · {', '.join(hints)}" if hints else ""), "", "| argument | | |", "|---|---|---|"]
        required = tool["inputSchema"].get("required", [])
        for name, entry in tool["inputSchema"].get("properties", {}).items():
            kind = entry.get("type", "") if isinstance(entry.get("type", ""), str) else "/".join(entry["type"])
            if "enum" in entry:
                kind = " \\| ".join(f"`{choice}`" for choice in entry["enum"])
            more = f" Default: `{json.dumps(entry['default'])}`." if "default" in entry else ""
            star = " (required)" if name in required else ""
            about = entry.get("description", "").replace("|", "\\|").replace("\n", " ")
            lines.append(f"| `{name}`{star} | {kind} | {about}{more} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    with live_server(Path(tempfile.mkdtemp())) as server, HttpHost(f"{server.url}/mcp", server.token) as host:
        host.initialize()
        surface = take(host)
    if FILE.exists():
        unraised = list_unraised(json.loads(FILE.read_text()), surface)
        if unraised:
            print(f"schemaVersion must rise first: {', '.join(unraised)}", file=sys.stderr)
            return 1
    FILE.write_text(json.dumps(surface, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(render(surface))
    return 0


if __name__ == "__main__":
    sys.exit(main())
