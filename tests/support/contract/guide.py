"""What the guides show is what the contract really answers: payloads and tables, made here and compared by a test.

python -m tests.support.contract.guide     writes them into docs/ anew
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from tests.contract.adapters.test_adapter import REPOSITORY, bridge_environ
from tests.support.bridge.scripted import ScriptedDesktop, decline, ignore, listening
from tests.support.contract.world import INTERACTIVE, World, make_policy, opened
from tests.support.waiting import until
from wsh.bridge.endpoint import write_endpoint
from wsh.contract.interactive import InteractiveOptions
from wsh.contract.reply.taxonomy import TAXONOMY
from wsh.contract.request.alias import ALIASES

DOCS = REPOSITORY / "docs"
PAGES = ("troubleshooting.md", "mcp-usage.md")
BLOCK = re.compile(r"<!-- made: (?P<name>[a-z-]+) -->\n.*?<!-- end -->", re.S)
IDS = {"request_id": "req_01JCA7", "trace_id": "trace_01JCA7"}


def request(command: str, **runtime: Any) -> dict[str, Any]:
    return {
        "action": "execute",
        "invocation": INTERACTIVE,
        "correlation": IDS,
        "runtime": runtime,
        "execution": {"command": command},
    }


async def collect(folder: Path) -> dict[str, dict[str, Any]]:
    """Each situation of the guide, brought about for real."""
    found: dict[str, dict[str, Any]] = {}
    policy = make_policy(["ls", "git status"])
    async with opened(folder, policy=policy, environ={"PM_INTERACTIVE_TERMINAL_BINARY": "/opt/desk/it"}) as world:
        found["gui-missing"] = await world.ask(request("git status"))
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (listener, endpoint):
        short = InteractiveOptions(max_approval_ms=400)
        async with opened(folder, policy=policy, interactive=short) as world:
            write_endpoint(world.info, endpoint)
            found["timeout"] = await world.ask(request("git status"))
        async with opened(folder, policy=policy) as world:
            write_endpoint(world.info, endpoint)
            desktop.script = decline
            found["decline"] = await world.ask(request("git push --force"))
            found["disconnect"] = await _drop(world, desktop, listener)
        async with opened(folder, policy=policy, environ=bridge_environ(endpoint, TOKEN="another")) as world:
            found["wrong-token"] = await world.ask(request("git status"))
    async with opened(folder, policy=policy, environ=bridge_environ(endpoint)) as world:
        found["bridge-unreachable"] = await world.ask(request("make test"))
    async with opened(folder, policy=policy, environ={"PM_RUNNING_IN_CONTAINER": "true"}) as world:
        found["bridge-not-configured"] = await world.ask(request("git status"))
    async with opened(folder, policy=policy) as world:
        blocked = request("rm -r build") | {"invocation": {"mode": "headless", "intent": "execute_command"}}
        found["blocked"] = await world.ask(blocked)
    return {name: _plain(answer, folder, endpoint.port) for name, answer in found.items()}


async def _drop(world: World, desktop: ScriptedDesktop, listener: Any) -> dict[str, Any]:
    desktop.script = ignore
    shown = len(desktop.arrived)
    call = asyncio.create_task(world.ask(request("git status")))
    await until(lambda: len(desktop.arrived) > shown, "the card")
    for peer in list(listener._peers):
        peer.stream.abort()
    return await call


def _plain(answer: dict[str, Any], folder: Path, port: int) -> dict[str, Any]:
    """Without what differs from run to run."""
    text = json.dumps(answer)
    text = text.replace(str(folder), "/home/ann/project").replace("127.0.0.1", "host.containers.internal")
    text = re.sub(rf"\b{port}\b", "45459", text)
    made: dict[str, Any] = json.loads(text)
    return made


def taxonomy_table() -> str:
    lines = ["| code | when | try again? | fallback | recommended mode |", "|---|---|---|---|---|"]
    for entry in TAXONOMY:
        again = "yes" if entry.retriable else "no"
        mode = "headless, where the policy would allow the same there" if entry.may_be_headless else ""
        lines.append(f"| `{entry.code}` | {entry.trigger} | {again} | `{entry.strategy}` | {mode} |")
    return "\n".join(lines)


def alias_table() -> str:
    lines = ["| legacy action | now | |", "|---|---|---|"]
    lines += [f"| `{alias.legacy}` | {alias.replacement} | {alias.note} |" for alias in ALIASES]
    return "\n".join(lines)


def make_blocks() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        payloads = asyncio.run(collect(Path(folder)))
    blocks = {name: f"```json\n{json.dumps(payload, indent=2)}\n```" for name, payload in payloads.items()}
    return blocks | {"taxonomy": taxonomy_table(), "aliases": alias_table()}


def fill(text: str, blocks: dict[str, str]) -> str:
    def block(match: re.Match[str]) -> str:
        return f"<!-- made: {match['name']} -->\n{blocks[match['name']]}\n<!-- end -->"

    return BLOCK.sub(block, text)


def write() -> None:
    blocks = make_blocks()
    for page in PAGES:
        path = DOCS / page
        path.write_text(fill(path.read_text(), blocks))


if __name__ == "__main__":
    write()
