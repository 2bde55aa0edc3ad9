"""Every field of every tool's schema does something, and is refused when it is wrong.

Two proofs for each field of the committed definitions. A difference: two calls that differ in that field alone are answered
differently, while the first, made again, is answered the same. A refusal: a value of the wrong type is refused, and the
answer names the field. A field without a case fails, so nothing can be accepted and ignored.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server

Json = dict[str, Any]
TOOLS: dict[str, Json] = json.loads((Path(__file__).parents[1] / "snapshot.json").read_text())["tools"]
# What differs between two calls that mean the same.
PASSING = re.compile(
    r'"(request_id|trace_id|session_id|pid|duration_ms|durationMs|last_activity_ms|builtAt|ageSeconds|generation|id|session|name|score|took'
    r'|cursor|next_cursor|nextCursor|user_message|sizeBytes|modifiedAt|command_id|first_line|last_line|first_line_index|total_lines|epoch)":\s*("[^"]*"|-?[0-9.]+|null)'
)
NAMED = re.compile(r"[Ss]ession '[^']+'")
_numbers = itertools.count()


def _fields(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _fields(entry, (*path, name))
        if isinstance(entry.get("items"), dict):
            yield from _fields(entry["items"], (*path, name, "0"))


FIELDS = [(tool, ".".join(path)) for tool, entry in TOOLS.items() for path in _fields(entry["inputSchema"])]


@dataclass
class World:
    host: StdioHost
    folder: Path
    values: dict[str, str] = field(default_factory=dict)

    def call(self, tool: str, arguments: Json) -> Json:
        return self.host.call(tool, self.fill(arguments), timeout=60)

    def ok(self, tool: str, **arguments: Any) -> Json:
        answer = self.call(tool, arguments)
        assert "result" in answer and not answer["result"].get("isError"), answer
        content: Json = answer["result"]["structuredContent"]
        return content

    def fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.fill(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.fill(entry) for entry in value]
        if value in FRESH:
            return self.open(FRESH[value], shows="fresh")
        if value == "$bare":
            return self.clear()
        return self.values.get(value, value) if isinstance(value, str) and value.startswith("$") else value

    def open(self, command: str, shows: str = "", **more: Any) -> str:
        made = self.ok("wsh_create_session", command=command, **more)
        if shows:
            self.ok("wsh_await_quiesce", session=made["session"], text=shows, generation=0, max_wait_ms=60_000)
        self.ok("wsh_await_quiesce", session=made["session"], timeout_ms=60)
        return str(made["session"])

    def clear(self) -> str:
        """A session without elements; the same one each time, since hundreds of cases want one."""
        if "$cleared" not in self.values:
            self.values["$cleared"] = self.open("printf bare; exec cat")
        for tool in ("wsh_remove_overlay", "wsh_remove_panel"):
            self.ok(tool, session="$cleared")
        return self.values["$cleared"]

    def screen(self, session: str) -> list[str]:
        lines: list[str] = self.ok("wsh_get_screen", session=session, format="plain")["lines"]
        return lines


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("fields")
    tree = folder / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "one.py").write_text("def quokka():\n    return 'smile'\n\n\ndef wombat():\n    return 'quokka'\n")
    (tree / "sub" / "two.md").write_text("# Quokka\n\nA quokka smiles.\n\n\n\n\n\n\n# Far\n\nwombat\n")
    (folder / "other").mkdir()
    (folder / "other" / "note.md").write_text("nothing of the kind\n")
    os.utime(tree / "one.py", (1_600_000_000, 1_600_000_000))
    env = {"ALLOWED_COMMANDS": "echo,sleep,pwd,env,seq", "ALLOWED_CWD_ROOTS": str(folder)}
    with live_server(folder), StdioHost(cwd=str(tree), env=env) as host:
        host.initialize()
        made = World(host, tree, {"$tree": str(tree), "$other": str(folder / "other"), "$pipe": str(folder / "pipe")})
        os.mkfifo(folder / "pipe")
        made.values["$a"] = made.open("seq 40; printf alpha; exec cat", name="alpha", tags=["first"])
        made.values["$b"] = made.open("seq 40; printf '\\033[1;31mbeta\\033[0m'; exec cat", name="beta", rows=10)
        made.values["$shell"] = made.open("bash --norc", name="shell", env={"PS1": "$ "})
        made.ok("wsh_run_command", session="shell", input="echo quokka from a shell; false")
        made.values["$typed"] = made.open("bash --norc", name="typed", env={"PS1": "$ "})
        made.ok("wsh_await_quiesce", session="typed", until=["prompt"], max_wait_ms=60_000)
        made.ok("wsh_send_input", session="typed", input="half a line")
        made.ok("wsh_await_quiesce", session="typed", text="half a line", max_wait_ms=60_000)
        spans = [{"text": "x", "id": "s"}]
        box = {"x": 1, "y": 1, "width": 9, "height": 2, "spans": spans}
        made.values["$overlay"] = made.ok("wsh_overlay", session="$a", **box)["id"]
        made.values["$panel"] = made.ok("wsh_panel", session="$a", position="top", height=1, spans=spans)["id"]
        made.ok("index_build", workspace="$tree")
        run = {"action": "execute", "invocation": {"mode": "headless", "intent": "execute_command"}}
        ended = made.ok("memory_terminal_interactive", **run, execution={"command": "echo", "args": ["kept text"]})
        made.values["$ended"] = ended["identity"]["session_id"]
        runs = {"command": "cat", "args": ["$pipe"]}  # waits until somebody writes
        scope = {"runtime": {"workspace_id": "ours", "timeout_ms": 50}, "compat": {"caller_surface": "extension"}}
        assert made.ok("memory_terminal_interactive", **run, **scope, execution=runs)["status"] == "accepted"
        made.values["$long"] = made.ok("execute_command", command="seq 100000")["output_of"]
        found = made.ok("search", query="wombat", workspace="$tree", mode="code")
        made.values["$hit"] = found["hits"][0]["id"]
        first = made.ok("search", query="quokka", workspace="$tree", top=1)
        made.values["$page"] = first["nextCursor"]
        yield made


def _answer(world: World, tool: str, arguments: Json, read: Callable[[World, Json], Any] | None) -> str:
    filled = world.fill(arguments)
    answer = world.host.call(tool, filled, timeout=60)
    shown: Any = answer.get("result", answer.get("error"))
    if isinstance(shown, dict):
        shown = shown.get("structuredContent", shown)
    told = json.dumps(shown, sort_keys=True) + (json.dumps(read(world, filled)) if read is not None else "")
    return NAMED.sub("session -", PASSING.sub(lambda m: f'"{m.group(1)}": -', told))


FRESH = {
    "$fresh": "printf fresh; exec cat",
    "$sink": "printf fresh; exec cat >/dev/null",
    "$mute": "stty -echo -icanon; printf fresh; exec sleep 1000",
}
"""Sessions that a case has for itself. What is typed into the second is shown once, into the third never, however late."""


@dataclass
class Case:
    """Two calls that differ in the field alone; `read` looks at what they did where the answer does not say it."""

    without: Json
    with_: Json
    read: Callable[[World, Json], Any] | None = None


def _screen_of(world: World, arguments: Json) -> Any:
    world.ok("wsh_await_quiesce", session=arguments["session"], timeout_ms=300 if "input" in arguments else 80)
    return world.screen(arguments["session"])


def _elements(kind: str) -> Callable[[World, Json], Any]:
    def read(world: World, arguments: Json) -> Any:
        return world.ok(f"wsh_{kind}", session=arguments["session"], list=True)

    return read


def _element_cases(kind: str, base: Json, more: dict[str, tuple[Any, Any]]) -> dict[str, Case]:
    tool = f"wsh_{kind}"
    read = _elements(kind)
    at = {"session": "$bare", **base}
    cases = {
        "session": Case({**base, "session": "$bare"}, {**base, "session": "nobody"}),
        "id": Case({"session": "$a", "list": True}, {"session": "$a", "id": "nothing", "spans": []}),
        "list": Case({"session": "$a", "id": f"${kind}", "spans": []}, {"session": "$a", "list": True}),
        "spans": Case({**at, "spans": [{"text": "one"}]}, {**at, "spans": [{"text": "two"}]}, read),
        "background": Case(at, {**at, "background": "blue"}, read),
        "focusable": Case(at, {**at, "focusable": False}, read),
    }
    for name, (one, other) in more.items():
        cases[name] = Case({**at, name: one}, {**at, name: other}, read)
    looks: dict[str, Any] = {"text": "other", "id": "mark", "fg": "red", "bg": "#00ff00"}
    for name in ("text", "id", "fg", "bg", "bold", "faint", "italic", "underline", "strikethrough", "inverse"):
        span = {"text": "word", name: looks.get(name, True)}
        cases[f"spans.0.{name}"] = Case({**at, "spans": [{"text": "word"}]}, {**at, "spans": [span]}, _spans(tool))
    black = {"rgb": {"r": 0, "g": 0, "b": 0}}
    for path, one, other in _colours():
        cases[f"background{path}"] = Case({**at, "background": one}, {**at, "background": other}, read)
        cases[f"background.bg{path}"] = Case({**at, "background": black}, {**at, "background": {"bg": other}}, read)
        for name in ("fg", "bg"):
            spans = [[{"text": "word", name: colour}] for colour in (one, other)]
            cases[f"spans.0.{name}{path}"] = Case({**at, "spans": spans[0]}, {**at, "spans": spans[1]}, _spans(tool))
    cases["background.bg"] = cases["background.bg.indexed"]
    return cases


def _colours() -> Iterator[tuple[str, Json, Json]]:
    """Each field of a colour, and two colours that differ in it."""
    yield ".indexed", {"indexed": 1}, {"indexed": 2}
    yield ".rgb", {"indexed": 1}, {"rgb": {"r": 1, "g": 2, "b": 3}}
    for letter in "rgb":
        yield f".rgb.{letter}", {"rgb": {"r": 0, "g": 0, "b": 0}}, {"rgb": {"r": 0, "g": 0, "b": 0, letter: 9}}


def _spans(tool: str) -> Callable[[World, Json], Any]:
    """The spans as they are kept, with the ids that `PASSING` would leave out."""

    def read(world: World, arguments: Json) -> Any:
        listed = world.ok(tool, session=arguments["session"], list=True)
        (entries,) = (value for value in listed.values() if isinstance(value, list))
        return [sorted(map(str, span.items())) for span in entries[0]["spans"]]

    return read


BOX: Json = {"x": 2, "y": 2, "width": 10, "height": 2, "spans": [{"text": "word"}]}
BAR: Json = {"position": "top", "height": 1, "spans": [{"text": "word"}]}


def _state(world: World, arguments: Json) -> Any:
    return [entry["command"] for entry in world.ok("wsh_list_sessions")["sessions"]].count(arguments.get("command"))


def _last(world: World, arguments: Json) -> Any:
    newest = world.ok("wsh_list_sessions")["sessions"][-1]
    return {key: newest[key] for key in ("command", "rows", "cols", "tags", "cwd") if key in newest} | {
        "screen": _screen_of(world, {"session": newest["name"]})
    }


def _name(prefix: str) -> str:
    return f"{prefix}{next(_numbers)}"


SHOW = "pwd; echo [$WORD]; exec cat"
CASES: dict[str, dict[str, Case]] = {
    "wsh_create_session": {
        "name": Case({"command": "cat"}, {"command": "cat", "name": "alpha"}),
        "command": Case({"command": "cat"}, {"command": "echo other; exec cat"}, _last),
        "rows": Case({"command": "cat"}, {"command": "cat", "rows": 7}),
        "cols": Case({"command": "cat"}, {"command": "cat", "cols": 33}),
        "cwd": Case({"command": SHOW}, {"command": SHOW, "cwd": "/"}, _last),
        "env": Case({"command": SHOW}, {"command": SHOW, "env": {"WORD": "teal"}}, _last),
        "tags": Case({"command": "cat"}, {"command": "cat", "tags": ["x"]}, _last),
        "sandbox": Case({"command": "cat", "sandbox": "off"}, {"command": "cat", "sandbox": "no-such-profile"}),
    },
    "wsh_list_sessions": {
        "session": Case({"session": "$a"}, {"session": "$b"}),
        "tag": Case({"tag": "nothing"}, {"tag": "first"}),
    },
    "wsh_manage_session": {
        "session": Case({"session": "$fresh", "action": "detach"}, {"session": "nobody", "action": "detach"}),
        "action": Case({"session": "$fresh", "action": "detach"}, {"session": "$fresh", "action": "kill"}),
        "new_name": Case(
            {"session": "$fresh", "action": "rename", "new_name": "alpha"},
            {"session": "$fresh", "action": "rename", "new_name": _name("renamed")},
        ),
    },
    "wsh_send_input": {
        "session": Case({"session": "$fresh", "input": "x"}, {"session": "nobody", "input": "x"}),
        "input": Case({"session": "$sink", "input": "one"}, {"session": "$sink", "input": "two"}, _screen_of),
        "encoding": Case(
            {"session": "$fresh", "input": base64.b64encode(b"hello").decode()},
            {"session": "$fresh", "input": base64.b64encode(b"hello").decode(), "encoding": "base64"},
            _screen_of,
        ),
    },
    "wsh_get_screen": {
        "session": Case({"session": "$a"}, {"session": "$b"}),
        "format": Case({"session": "$b"}, {"session": "$b", "format": "plain"}),
    },
    "wsh_get_scrollback": {
        "session": Case({"session": "$a"}, {"session": "$b"}),
        "offset": Case({"session": "$a", "limit": 3}, {"session": "$a", "limit": 3, "offset": 5}),
        "limit": Case({"session": "$a"}, {"session": "$a", "limit": 3}),
        "since_line": Case({"session": "$a", "limit": 3}, {"session": "$a", "limit": 3, "since_line": 2}),
        "format": Case({"session": "$a"}, {"session": "$a", "format": "plain"}),
    },
    "wsh_await_quiesce": {
        "session": Case({"session": "$a", "timeout_ms": 1}, {"session": "nobody", "timeout_ms": 1}),
        "timeout_ms": Case(
            {"session": "$mute", "timeout_ms": 60_000, "max_wait_ms": 80},
            {"session": "$mute", "timeout_ms": 1, "max_wait_ms": 60_000},
        ),
        "max_wait_ms": Case(
            {"session": "$mute", "timeout_ms": 60_000, "max_wait_ms": 50},
            {"session": "$mute", "timeout_ms": 60_000, "max_wait_ms": 90},
        ),
        "generation": Case(
            {"session": "$a", "timeout_ms": 1, "max_wait_ms": 60},
            {"session": "$a", "timeout_ms": 1, "max_wait_ms": 60, "generation": 1_000_000},
        ),
        "text": Case(
            {"session": "$a", "generation": 0, "text": "alpha", "max_wait_ms": 60_000},
            {"session": "$a", "generation": 0, "text": "never", "max_wait_ms": 60},
        ),
        "regex": Case(
            {"session": "$a", "generation": 0, "regex": "alp.a", "max_wait_ms": 60_000},
            {"session": "$a", "generation": 0, "regex": "nev.r", "max_wait_ms": 60},
        ),
        "until": Case(
            {"session": "$a", "timeout_ms": 1, "max_wait_ms": 60},
            {"session": "$a", "until": ["exit"], "max_wait_ms": 60},
        ),
    },
    "wsh_run_command": {
        "session": Case(
            {"session": "$mute", "input": "x", "timeout_ms": 50}, {"session": "nobody", "input": "x", "timeout_ms": 50}
        ),
        "input": Case({"session": "$shell", "input": "clear; true"}, {"session": "$shell", "input": "clear; false"}),
        "timeout_ms": Case(
            {"session": "$mute", "input": "x", "timeout_ms": 60_000, "max_wait_ms": 80},
            {"session": "$mute", "input": "x", "timeout_ms": 10, "max_wait_ms": 60_000},
        ),
        "max_wait_ms": Case(
            {"session": "$mute", "input": "x", "timeout_ms": 60_000, "max_wait_ms": 50},
            {"session": "$mute", "input": "x", "timeout_ms": 60_000, "max_wait_ms": 90},
        ),
        "format": Case(
            {"session": "$shell", "input": "clear"}, {"session": "$shell", "input": "clear", "format": "plain"}
        ),
        "enter": Case(
            {"session": "$sink", "input": "x", "timeout_ms": 300},
            {"session": "$sink", "input": "x", "timeout_ms": 300, "enter": False},
        ),
        "clear_line": Case(
            {"session": "$typed", "input": "echo whole"},
            {"session": "$typed", "input": "echo whole", "clear_line": True},
        ),
        "max_output_bytes": Case(
            {"session": "$shell", "input": "clear; seq 2000"},
            {"session": "$shell", "input": "clear; seq 2000", "max_output_bytes": 100},
        ),
        "sandbox": Case(
            {"session": "$shell", "input": "clear; true"}, {"session": "$shell", "input": "true", "sandbox": "off"}
        ),
        "reason": Case(
            {"session": "$shell", "input": "true", "sandbox": "off"},
            {"session": "$shell", "input": "true", "sandbox": "off", "reason": "why"},
        ),
    },
    "wsh_overlay": _element_cases(
        "overlay", BOX, {"x": (1, 5), "y": (1, 5), "z": (1, 5), "width": (3, 5), "height": (1, 3)}
    ),
    "wsh_panel": _element_cases("panel", BAR, {"position": ("top", "bottom"), "height": (1, 3), "z": (1, 5)}),
    "wsh_remove_overlay": {
        "session": Case({"session": "$fresh"}, {"session": "nobody"}),
        "id": Case({"session": "$fresh"}, {"session": "$fresh", "id": "nothing"}),
    },
    "wsh_remove_panel": {
        "session": Case({"session": "$fresh"}, {"session": "nobody"}),
        "id": Case({"session": "$fresh"}, {"session": "$fresh", "id": "nothing"}),
    },
    "wsh_input_mode": {
        "session": Case({"session": "$fresh"}, {"session": "nobody"}),
        "mode": Case({"session": "$fresh"}, {"session": "$fresh", "mode": "capture"}),
        "focus": Case({"session": "$a", "unfocus": True}, {"session": "$a", "focus": "$overlay"}),
        "unfocus": Case({"session": "$a", "focus": "$overlay"}, {"session": "$a", "unfocus": True}),
        "wait_ms": Case({"session": "$fresh", "wait_ms": 300_000}, {"session": "$fresh", "wait_ms": 300_001}),
    },
    "wsh_screen_mode": {
        "session": Case({"session": "$fresh"}, {"session": "nobody"}),
        "action": Case({"session": "$fresh"}, {"session": "$fresh", "action": "enter_alt"}),
    },
    "execute_command": {
        "command": Case({"command": "echo one"}, {"command": "echo two"}),
        "cwd": Case({"command": "pwd"}, {"command": "pwd", "cwd": "$other"}),
        "timeout_ms": Case({"command": "sleep 0.2"}, {"command": "sleep 0.2", "timeout_ms": 50}),
        "output_of": Case({"output_of": "$long"}, {"output_of": "none"}),
        "stream": Case({"output_of": "$long"}, {"output_of": "$long", "stream": "stderr"}),
        "from_line": Case({"output_of": "$long"}, {"output_of": "$long", "from_line": 3}),
        "search": Case({"output_of": "$long"}, {"output_of": "$long", "search": "99999"}),
        "sandbox": Case({"command": "echo one"}, {"command": "echo one", "sandbox": "off"}),
        "reason": Case(
            {"command": "echo one", "sandbox": "off"}, {"command": "echo one", "sandbox": "off", "reason": "why"}
        ),
    },
    "index_build": {
        "workspace": Case({"workspace": "$tree"}, {"workspace": "/nowhere"}),
        "mode": Case({"workspace": "$tree"}, {"workspace": "$tree", "mode": "transcripts"}),
        "full": Case({"workspace": "$tree"}, {"workspace": "$tree", "full": True}),
        "paths": Case({"workspace": "$tree"}, {"workspace": "$tree", "paths": ["sub"]}),
        "timeoutMs": Case({"workspace": "$tree", "full": True}, {"workspace": "$tree", "full": True, "timeoutMs": 1}),
    },
    "index_status": {
        "workspace": Case({"workspace": "$tree"}, {"workspace": "$other"}),
        "timeoutMs": Case({"workspace": "$tree"}, {"workspace": "$tree", "timeoutMs": 0}),
    },
    "search": {
        "query": Case({"query": "quokka"}, {"query": "wombat"}),
        "workspace": Case({"query": "quokka"}, {"query": "quokka", "workspace": "$other"}),
        "match": Case({"query": "quok.a"}, {"query": "quok.a", "match": "regex"}),
        "mode": Case({"query": "quokka"}, {"query": "quokka", "mode": "prose"}),
        "path": Case({"query": "quokka"}, {"query": "quokka", "path": ["sub/**"]}),
        "lang": Case({"query": "quokka"}, {"query": "quokka", "lang": ["python"]}),
        "kind": Case({"query": "quokka"}, {"query": "quokka", "kind": ["function"]}),
        "name": Case({"query": "quokka"}, {"query": "quokka", "name": "wombat"}),
        "modifiedAfter": Case({"query": "quokka"}, {"query": "quokka", "modifiedAfter": "1d"}),
        "session": Case(
            {"query": "quokka", "mode": "transcripts"}, {"query": "quokka", "mode": "transcripts", "session": ["alpha"]}
        ),
        "exitCode": Case(
            {"query": "quokka", "mode": "transcripts"}, {"query": "quokka", "mode": "transcripts", "exitCode": 77}
        ),
        "since": Case(
            {"query": "quokka", "mode": "transcripts"},
            {"query": "quokka", "mode": "transcripts", "since": "2999-01-01"},
        ),
        "until": Case(
            {"query": "quokka", "mode": "transcripts"},
            {"query": "quokka", "mode": "transcripts", "until": "2000-01-01"},
        ),
        "top": Case({"query": "quokka"}, {"query": "quokka", "top": 1}),
        "cursor": Case({"query": "quokka", "top": 1}, {"query": "quokka", "top": 1, "cursor": "$page"}),
        "contextLines": Case(
            {"query": "wombat", "contextLines": 0, "mode": "prose"},
            {"query": "wombat", "contextLines": 2, "mode": "prose"},
        ),
        "explain": Case({"query": "quokka"}, {"query": "quokka", "explain": True}),
        "timeoutMs": Case({"query": "quokka"}, {"query": "quokka", "timeoutMs": 0}),
    },
    "show_file": {
        "workspace": Case({"path": "one.py"}, {"path": "one.py", "workspace": "$other"}),
        "path": Case({"path": "one.py"}, {"path": "sub/two.md"}),
        "id": Case({"path": "one.py"}, {"id": "$hit"}),
        "startLine": Case({"path": "one.py"}, {"path": "one.py", "startLine": 3}),
        "endLine": Case({"path": "one.py"}, {"path": "one.py", "endLine": 2}),
        "maxBytes": Case({"path": "one.py"}, {"path": "one.py", "maxBytes": 10}),
        "timeoutMs": Case({"path": "one.py"}, {"path": "one.py", "timeoutMs": 0}),
    },
    "check_status": {"timeoutMs": Case({}, {"timeoutMs": 0})},
    "workspace_status": {
        "workspace": Case({"workspace": "$tree"}, {"workspace": "$other"}),
        "timeoutMs": Case({}, {"timeoutMs": 0}),
    },
}

# the contract: the canonical tool, and the two adapters that take its schema

HOW: Json = {"mode": "headless", "intent": "execute_command"}


def _canonical(**more: Any) -> Json:
    return {"action": "execute", "invocation": HOW, "execution": {"command": "pwd"}, **more}


def _pair(one: Json, other: Json) -> Case:
    return Case(one, other)


def _ids(name: str) -> Case:
    """Given back as they are; what is made up instead is left out of the comparison by its name, so the value is shown."""

    def read(world: World, arguments: Json) -> Any:
        shown = world.call("memory_terminal_interactive", arguments)["result"]["structuredContent"]["correlation"]
        return shown.get(name) == "mine"

    return Case(_canonical(), _canonical(correlation={name: "mine"}), read)


INTERACTIVE: Json = {"action": "execute", "invocation": {"mode": "interactive", "intent": "execute_command"}}
NO_WINDOW: Json = {**INTERACTIVE, "execution": {"command": "pwd"}}
CONTRACT: dict[str, Case] = {
    "action": _pair(_canonical(), {"action": "list"}),
    "invocation": _pair(_canonical(), {"action": "execute", "execution": {"command": "pwd"}}),
    "invocation.mode": _pair({"action": "list"}, {"action": "list", "invocation": {"mode": "interactive"}}),
    "invocation.intent": _pair(
        _canonical(), {**_canonical(), "invocation": {"mode": "headless", "intent": "open_only"}}
    ),
    "correlation": _ids("trace_id"),
    "correlation.request_id": _ids("request_id"),
    "correlation.trace_id": _ids("trace_id"),
    "correlation.client_request_id": _ids("client_request_id"),
    "runtime": _pair(_canonical(), _canonical(runtime={"cwd": "/"})),
    "runtime.workspace_id": _pair(
        {"action": "list", "runtime": {"workspace_id": "ours"}},
        {"action": "list", "runtime": {"workspace_id": "another"}},
    ),
    "runtime.cwd": _pair(_canonical(), _canonical(runtime={"cwd": "/"})),
    "runtime.timeout_ms": _pair(
        {**_canonical(), "execution": {"command": "cat", "args": ["$pipe"]}, "runtime": {"timeout_ms": 50}},
        {**_canonical(), "execution": {"command": "cat", "args": ["$pipe"]}, "runtime": {"timeout_ms": 0}},
    ),
    "runtime.adapter_override": _pair(
        {**NO_WINDOW, "runtime": {"adapter_override": "local", "spawn_timeout_ms": 1}},
        {**NO_WINDOW, "runtime": {"adapter_override": "container_bridge", "spawn_timeout_ms": 1}},
    ),
    "runtime.binary_path": _pair(
        {**NO_WINDOW, "runtime": {"adapter_override": "local"}},
        {**NO_WINDOW, "runtime": {"adapter_override": "local", "binary_path": "/bin/true"}},
    ),
    "runtime.keep_pending": _pair(_canonical(), _canonical(runtime={"keep_pending": True})),
    "execution.note": _pair(_canonical(), _canonical(execution={"command": "echo", "args": ["one"], "note": "why"})),
    "runtime.spawn_timeout_ms": _pair(_canonical(), _canonical(runtime={"spawn_timeout_ms": 30_001})),
    "execution.sandbox": _pair(
        _canonical(), _canonical(execution={"command": "echo", "args": ["one"], "sandbox": "off"})
    ),
    "execution": _pair(_canonical(), {"action": "execute", "invocation": HOW}),
    "execution.command": _pair(_canonical(), {**_canonical(), "execution": {"command": "whoami"}}),
    "execution.args": _pair(
        {**_canonical(), "execution": {"command": "echo", "args": ["one"]}},
        {**_canonical(), "execution": {"command": "echo", "args": ["two"]}},
    ),
    "execution.env": _pair(
        {**_canonical(), "execution": {"command": "date", "args": ["+%Z"]}},
        {**_canonical(), "execution": {"command": "date", "args": ["+%Z"], "env": {"TZ": "XXX-3"}}},
    ),
    "target": _pair({"action": "read_output"}, {"action": "read_output", "target": {"session_id": "$ended"}}),
    "target.session_id": _pair(
        {"action": "read_output", "target": {"session_id": "$ended"}},
        {"action": "read_output", "target": {"session_id": "nobody"}},
    ),
    "target.terminal_id": _pair(
        {"action": "read_output", "target": {"session_id": "$ended"}},
        {"action": "read_output", "target": {"terminal_id": "nothing"}},
    ),
    "target.cursor": _pair(
        {"action": "read_output", "target": {"session_id": "$ended"}},
        {"action": "read_output", "target": {"session_id": "$ended", "cursor": 5}},
    ),
    "compat": _pair(_canonical(), _canonical(compat={"legacy_action": "run"})),
    "compat.legacy_action": _pair(_canonical(), _canonical(compat={"legacy_action": "run"})),
    "compat.caller_surface": _pair(
        {"action": "list", "runtime": {"workspace_id": "ours"}, "compat": {"caller_surface": "extension"}},
        {"action": "list", "runtime": {"workspace_id": "ours"}, "compat": {"caller_surface": "dashboard"}},
    ),
    "compat.name": _pair(_canonical(), _canonical(compat={"name": "a title"})),
}
LEGACY = {
    "command": "whoami",
    "args": ["-L"],
    "env": {"TZ": "XXX-3"},
    "cwd": "/",
    "timeout": 0,
    "workspace_id": "another",
    "session_id": "nobody",
    "terminal_id": "nothing",
    "name": "a title",
}
# On the canonical tool with a canonical action every legacy field is refused; the adapters act on them.
CASES["memory_terminal_interactive"] = CONTRACT | {
    name: _pair(_canonical(), _canonical(**{name: value})) for name, value in LEGACY.items()
}
RUN: Json = {"action": "run", "command": "pwd"}
CASES["memory_terminal"] = {
    "action": _pair(RUN, {"action": "list"}),
    "command": _pair(RUN, {"action": "run", "command": "whoami"}),
    "args": _pair({**RUN, "args": []}, {**RUN, "args": ["-L", "--nothing"]}),
    "env": _pair({**RUN, "command": "date +%Z"}, {**RUN, "command": "date +%Z", "env": {"TZ": "XXX-3"}}),
    "cwd": _pair(RUN, {**RUN, "cwd": "/"}),
    "timeout": _pair(RUN, {**RUN, "timeout": 0}),
    "workspace_id": _pair({"action": "list", "workspace_id": "ours"}, {"action": "list", "workspace_id": "another"}),
    "session_id": _pair(
        {"action": "read_output", "session_id": "$ended"}, {"action": "read_output", "session_id": "nobody"}
    ),
    "terminal_id": _pair(
        {"action": "read_output", "session_id": "$ended"}, {"action": "read_output", "terminal_id": "nothing"}
    ),
    "name": _pair(RUN, {**RUN, "name": "x" * 257}),
}
LIST: Json = {"action": "list"}
CASES["memory_terminal_vscode"] = {
    "action": _pair(LIST, {"action": "close", "terminal_id": "nothing"}),
    "command": _pair(
        {"action": "send", "terminal_id": "nothing"}, {"action": "send", "terminal_id": "nothing", "command": "x"}
    ),
    "terminal_id": _pair({"action": "close"}, {"action": "close", "terminal_id": "nothing"}),
    "session_id": _pair({"action": "close"}, {"action": "close", "session_id": "nothing"}),
    "workspace_id": _pair(LIST, {**LIST, "workspace_id": "x" * 257}),
    "name": _pair({"action": "create", "timeout": 0}, {"action": "create", "name": "", "timeout": 0}),
    "timeout": _pair(LIST, {**LIST, "timeout": 0}),
    **{name: _pair(LIST, {**LIST, name: LEGACY[name]}) for name in ("args", "env", "cwd")},
}
for adapter in ("memory_terminal", "memory_terminal_vscode"):
    for path in CONTRACT:
        if path not in CASES[adapter]:
            outer, _, inner = path.partition(".")
            CASES[adapter][path] = _pair(LIST, {**LIST, outer: {inner: 1.5} if inner else 1.5})


for _tool, _cases in CASES.items():
    # Both spellings of a timeout are one argument.
    for _one, _other in (("timeoutMs", "timeout_ms"), ("timeout_ms", "timeoutMs")):
        if _one in _cases and _other not in _cases and not _tool.startswith(("wsh_", "memory_")):
            _case = _cases[_one]
            _again = {_other if key == _one else key: value for key, value in _case.with_.items()}
            _cases[_other] = replace(_case, with_=_again)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tool", "path"), FIELDS, ids=[f"{tool}:{path}" for tool, path in FIELDS])
def test_a_field_changes_what_the_tool_does(world: World, tool: str, path: str) -> None:
    case = CASES.get(tool, {}).get(path)
    assert case is not None, f"{tool} has no case for {path}"
    once = _answer(world, tool, case.without, case.read)
    again = _answer(world, tool, case.without, case.read)
    assert once == again, "the two calls that mean the same are answered differently: this proves nothing"
    assert _answer(world, tool, case.with_, case.read) != once, f"{path} changes nothing: {once[:600]}"


def test_no_case_is_left_of_a_field_that_is_gone() -> None:
    assert {(tool, path) for tool, cases in CASES.items() for path in cases} == set(FIELDS)


def _wrong(entry: Json) -> Any:
    """A value that no form of this field accepts."""
    forms: list[Json] = entry.get("anyOf") or entry.get("oneOf") or []
    own = entry.get("type")
    kinds = {*(own if isinstance(own, list) else [own]), *(form.get("type") for form in forms)}
    return 1.5 if kinds & {"object", "array", "string"} else "wrong"


def _entry(schema: Json, path: list[str]) -> Json:
    for part in path:
        schema = schema["items"] if part == "0" else schema["properties"][part]
    return schema


def _nest(path: list[str], value: Any) -> Any:
    for part in reversed(path):
        value = [value] if part == "0" else {part: value}
    return value


@pytest.mark.parametrize(("tool", "path"), FIELDS, ids=[f"{tool}:{path}" for tool, path in FIELDS])
def test_a_field_of_the_wrong_type_is_refused_by_name(world: World, tool: str, path: str) -> None:
    parts = path.split(".")
    answer = world.call(tool, _nest(parts, _wrong(_entry(TOOLS[tool]["inputSchema"], parts))))
    if tool.startswith("wsh_"):
        assert answer["error"]["code"] == -32602
        assert path in {problem["path"] for problem in answer["error"]["data"]["errors"]}
        return
    result = answer["result"]
    assert result["isError"] is True
    payload = json.loads(result["content"][0]["text"])
    if tool.startswith("memory_"):
        assert payload["error"]["code"].startswith("PM_TERM_INVALID")
    else:
        assert payload["code"] == "INVALID_REQUEST"
        assert path in json.dumps(payload)
