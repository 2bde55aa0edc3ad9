"""The recorded day, measured: what a model reads and writes for the same work with each set of tools."""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.mcp.host import StdioHost
from tests.support.mcp.transcript import Agent, work
from tests.support.waiting import HANG_S

OUTCOME = {"file": "the cat\nthe dog", "prompt": "chosen: y", "build": "BUILD-DONE-0", "shards": ["END-0"] * 3}


@dataclass
class Day:
    """`texts` are what passed through the model: the tools, what it asked, what it was told."""

    name: str
    texts: list[str] = field(default_factory=list)
    calls: int = 0
    outcome: dict[str, Any] = field(default_factory=dict)

    def note(self, asked: object, told: str) -> None:
        self.calls += 1
        self.texts += [json.dumps(asked), told]


class _Metered(Agent):
    """The recorded agent, counted up to the work that only overlays and panels can do."""

    def __init__(self, host: StdioHost, day: Day) -> None:
        super().__init__(host)
        self._day = day
        self._counts = True

    def say(self, title: str) -> None:
        super().say(title)
        self._counts = "overlay" not in title

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = super().call(tool, **arguments)
        if self._counts:
            # What most hosts hand on: the text, which is the structured content once more.
            self._day.note({"name": tool, "arguments": arguments}, json.dumps(answer, ensure_ascii=False))
        return answer


def spend_published_day(host: StdioHost, folder: str) -> Day:
    day = Day("published", [json.dumps(host.request("tools/list")["result"])])
    done = work(_Metered(host, day), folder)
    day.outcome = {key: done[key] for key in OUTCOME}
    return day


def spend_lean_day(host: StdioHost, folder: str) -> Day:
    day = Day("lean", [json.dumps(host.request("tools/list")["result"])])

    def call(tool: str, /, **arguments: Any) -> str:
        text = str(host.call(tool, arguments)["result"]["content"][0]["text"])
        day.note({"name": tool, "arguments": arguments}, text)
        return text

    call("sessions", action="open", session="lean-edit", command="bash --norc", cwd=folder)
    call("run", command="printf 'teh cat\\nteh dog\\n' > notes.txt")
    call("run", command="vim -u NONE -n notes.txt")
    call("type", text=":%s/teh/the/g\r")
    call("type", text=":wq\r")
    day.outcome["file"] = call("run", command="cat notes.txt").removesuffix("\n[exit 0]")
    call("run", command="read -p 'Deploy to staging? [y/N] ' a; echo chosen: $a")
    day.outcome["prompt"] = _find(r"chosen: [yn]$", call("type", text="y\r"))
    loop = "for i in 1 2 3 4 5; do echo compiling part $i; sleep 0.3; done; echo BUILD-DONE-$?"
    day.outcome["build"] = _find(r"BUILD-DONE-\d+", call("run", command=loop))
    shards = (1, 2, 3)
    for number in shards:
        call("sessions", action="open", session=f"lean-{number}", command="bash --norc")
    for number in shards:
        line = f"sleep 0.{number}; echo shard {number} has $((number * {number}0 + {number})); echo END-$?\r"
        call("type", session=f"lean-{number}", text=line)
    day.outcome["shards"] = [
        _find(r"END-\d+$", call("wait", session=f"lean-{number}", match="END-[0-9]+").rstrip("]")) for number in shards
    ]
    for number in shards:
        call("sessions", action="close", session=f"lean-{number}")
    return day


def _find(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    assert found, f"{pattern} is not in {text!r}"
    return str(found[-1])


def spend_tmux_day(folder: str, socket: str) -> Day:
    """With send-keys and capture-pane, as agents use tmux: type, wait a moment, read the whole pane, again if it is not there yet."""
    day = Day("tmux send-keys, capture-pane")

    def tmux(*words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", socket, *words], capture_output=True, text=True, timeout=HANG_S, check=True
        )
        day.note(["tmux", *words], done.stdout)
        return done.stdout

    def until(target: str, pattern: str) -> str:
        deadline = time.monotonic() + HANG_S
        while True:
            time.sleep(0.2)
            shown = tmux("capture-pane", "-p", "-t", target)
            if found := re.findall(pattern, shown, re.MULTILINE):
                return str(found[-1])
            assert time.monotonic() < deadline, f"{pattern} did not come: {shown!r}"

    def type_line(target: str, text: str) -> None:
        tmux("send-keys", "-t", target, text, "Enter")

    tmux("-f", "/dev/null", "new-session", "-d", "-s", "edit", "-c", folder, "bash --norc")
    try:
        type_line("edit", "printf 'teh cat\\nteh dog\\n' > notes.txt")
        type_line("edit", "vim -u NONE -n notes.txt")
        until("edit", "teh dog")
        type_line("edit", ":%s/teh/the/g")
        until("edit", "the dog")
        type_line("edit", ":wq")
        type_line("edit", "clear; cat notes.txt")
        day.outcome["file"] = until("edit", "^the cat\nthe dog$")
        type_line("edit", "read -p 'Deploy to staging? [y/N] ' a; echo chosen: $a")
        until("edit", r"\[y/N\] $|\[y/N\]$")
        type_line("edit", "y")
        day.outcome["prompt"] = until("edit", "^chosen: [yn]$")
        type_line("edit", "for i in 1 2 3 4 5; do echo compiling part $i; sleep 0.3; done; echo BUILD-DONE-$?")
        day.outcome["build"] = until("edit", r"^BUILD-DONE-\d+")
        for number in (1, 2, 3):
            tmux("new-session", "-d", "-s", f"s{number}", "-c", folder, "bash --norc")
        for number in (1, 2, 3):
            type_line(f"s{number}", f"sleep 0.{number}; echo shard {number} has $((number * {number}0)); echo END-$?")
        day.outcome["shards"] = [until(f"s{number}", r"^END-\d+") for number in (1, 2, 3)]
    finally:
        tmux("kill-server")
    return day


def spend_bash_day(folder: str) -> Day:
    """With a tool that runs one command line and returns everything: no terminal, so vim and the prompt become other programs."""
    day = Day("a plain bash tool")

    def bash(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=True
        )
        day.note({"command": line}, done.stdout)
        return done.stdout.rstrip("\n")

    bash("printf 'teh cat\\nteh dog\\n' > notes.txt")
    bash("sed -i s/teh/the/g notes.txt")
    day.outcome["file"] = bash("cat notes.txt")
    day.outcome["prompt"] = bash("echo y | { read a; echo chosen: $a; }")
    loop = "for i in 1 2 3 4 5; do echo compiling part $i; sleep 0.3; done; echo BUILD-DONE-$?"
    day.outcome["build"] = _find(r"BUILD-DONE-\d+", bash(loop))
    day.outcome["shards"] = [_find(r"END-\d+", bash(f"echo shard {n} has 0; echo END-$?")) for n in (1, 2, 3)]
    return day
