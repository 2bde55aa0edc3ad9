"""A scripted agent that has nothing but MCP does a day's work; `python -m tests.support.mcp.transcript` writes
docs/mcp-transcript.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.mcp.host import StdioHost, structured
from tests.support.mcp.live import live_server

PAGE = Path(__file__).parents[3] / "docs" / "mcp-transcript.md"
HEAD = """# A day's work over MCP

What a scripted agent did with `wsh mcp` and nothing else, made by `python -m tests.support.mcp.transcript`: every call and, shortened, every answer.
"""


class Agent:
    """Calls tools and writes down what it did."""

    def __init__(self, host: StdioHost) -> None:
        self._host = host
        self.lines: list[str] = [HEAD]

    def say(self, title: str) -> None:
        self.lines.append(f"\n## {title}\n")

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = structured(self._host.call(tool, arguments))
        shown = dict(answer)
        if isinstance(shown.get("screen"), dict):
            shown["screen"] = {"lines": [line for line in shown["screen"]["lines"] if line][-6:], "…": "…"}
        if "lines" in shown:
            shown["lines"] = [line for line in shown["lines"] if line][-8:]
        keep = (
            "session",
            "screen",
            "lines",
            "output",
            "exit_code",
            "finished_by",
            "ended_by",
            "matched",
            "id",
            "visible",
            "mode",
            "success",
        )
        short = {key: shown[key] for key in keep if key in shown}
        self.lines.append(f"```\n{tool} {json.dumps(arguments)}\n→ {json.dumps(short, ensure_ascii=False)}\n```")
        return answer


def work(agent: Agent, folder: str) -> dict[str, Any]:
    """The five jobs; what came of each, for whoever checks."""
    done: dict[str, Any] = {}
    call = agent.call
    agent.say("A file edited in vim")
    call("wsh_create_session", name="edit", command="bash --norc", cwd=folder)
    call("wsh_run_command", session="edit", input="printf 'teh cat\\nteh dog\\n' > notes.txt", format="plain")
    call("wsh_run_command", session="edit", input="vim -u NONE -n notes.txt", format="plain", timeout_ms=500)
    call("wsh_send_input", session="edit", input=":%s/teh/the/g\r")
    call("wsh_await_quiesce", session="edit", timeout_ms=400)
    call("wsh_get_screen", session="edit", format="plain")
    call("wsh_send_input", session="edit", input=":wq\r")
    call("wsh_await_quiesce", session="edit", until=["command"])
    done["file"] = call("wsh_run_command", session="edit", input="cat notes.txt", format="plain")["output"]
    agent.say("An interactive prompt answered")
    call(
        "wsh_run_command",
        session="edit",
        input="read -p 'Deploy to staging? [y/N] ' a; echo chosen: $a",
        format="plain",
        timeout_ms=500,
    )
    call("wsh_send_input", session="edit", input="y\r")
    done["prompt"] = call("wsh_await_quiesce", session="edit", regex="chosen: ([yn])")["matched"]
    agent.say("A long build watched")
    call("wsh_create_session", name="build", command="bash --norc", cwd=folder)
    call(
        "wsh_send_input",
        session="build",
        input="for i in 1 2 3 4 5; do echo compiling part $i; sleep 0.3; done; echo BUILD-DONE-$?\r",
    )
    done["build"] = call("wsh_await_quiesce", session="build", regex="BUILD-DONE-[0-9]+")["matched"]
    call("wsh_get_scrollback", session="build", limit=6, format="plain")
    agent.say("Three sessions in parallel")
    for number in (1, 2, 3):
        call("wsh_create_session", name=f"shard-{number}", command="bash --norc", tags=["shards"])
    for number in (1, 2, 3):
        call(
            "wsh_send_input",
            session=f"shard-{number}",
            input=f"sleep 0.{number}; echo shard {number} has $((number * {number}0 + {number})); echo END-$?\r",
        )
    done["shards"] = [call("wsh_await_quiesce", session=f"shard-{n}", regex="END-[0-9]+")["matched"] for n in (1, 2, 3)]
    for number in (1, 2, 3):
        call("wsh_manage_session", session=f"shard-{number}", action="kill")
    agent.say("An overlay and a panel for the person")
    spans = [{"text": " built: 5 parts ", "bold": True}]
    panel = call("wsh_panel", session="build", position="bottom", height=1, background="blue", spans=spans)
    note = [{"text": "no warnings", "fg": "green"}]
    overlay = call("wsh_overlay", session="build", x=60, y=0, spans=note)
    done["visible"] = [panel["visible"], overlay["visible"]]
    call("wsh_remove_overlay", session="build", id=overlay["id"])
    call("wsh_remove_panel", session="build", id=panel["id"])
    for name in ("edit", "build"):
        call("wsh_manage_session", session=name, action="kill")
    return done


def main() -> int:
    with (
        live_server(Path(tempfile.mkdtemp())),
        StdioHost() as host,
        tempfile.TemporaryDirectory(prefix="project-") as folder,
    ):
        host.initialize()
        agent = Agent(host)
        work(agent, folder)
    text = "\n".join(agent.lines).replace(folder, "/home/me/project")
    PAGE.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
