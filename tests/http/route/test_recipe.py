"""docs/http-recipes.md: a recipe for every route and every WebSocket method, each run as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.http.route.test_openapi import ROUTES
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S
from wsh.http.route.page_route import load_page
from wsh.http.ws.methods import METHODS
from wsh.wire.system.place import Places

PAGE = Path(__file__).parents[3] / "docs" / "http-recipes.md"
TEXT = PAGE.read_text(encoding="utf-8")
SPLIT = "=====8<====="
SHELL = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines() if line]
TALKS = [(path, body.splitlines()) for path, body in re.findall(r"```ws (\S+)\n(.*?)```", TEXT, re.DOTALL)]


def _find_call(line: str) -> tuple[str, str] | None:
    """Method and path that a line of shell asks for."""
    target = re.search(r"(?:\$URL|http://localhost)(/[^\s\"?]*)", line)
    if target is None:
        return None
    method = re.search(r"-X ([A-Z]+)", line)
    return method.group(1) if method else "GET", target.group(1)


def _matches(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path) is not None


def test_every_operation_of_the_document_has_a_recipe_that_is_checked(server: RunningServer) -> None:
    document = server.get("/openapi.json")
    operations = [(m.upper(), path) for path, methods in document["paths"].items() for m in methods]
    checked = [
        call
        for line, after in zip(SHELL, [*SHELL[1:], ""], strict=True)
        if after.startswith("#>") and (call := _find_call(line))
    ]
    missing = [(m, p) for m, p in operations if not any(m == method and _matches(p, path) for method, path in checked)]
    assert missing == []


def test_every_websocket_and_every_method_has_a_recipe_that_is_checked() -> None:
    asked = {
        json.loads(line[2:])["method"]: json.loads(line[2:])["id"]
        for _, talk in TALKS
        for line in talk
        if line[0] == ">"
    }
    assert set(METHODS) - set(asked) == set()
    for _, talk in TALKS:
        answered = {json.loads(line[2:]).get("id") for line in talk if line[0] == "<"}
        assert {json.loads(line[2:])["id"] for line in talk if line[0] == ">"} <= answered
    for route in ROUTES:
        if route.method == "WEBSOCKET":
            tail = route.path.rpartition("{name}")[2]
            assert f'"{tail}' in TEXT or any(_matches(route.path, path) for path, _ in TALKS), route.path


@pytest.mark.timeout(180)
def test_the_curl_recipes_do_what_they_say(places: Places) -> None:
    assert load_page(), "the page is not built: make page"
    script = ["set -eu"]
    expected: list[tuple[str, str]] = []
    for line in SHELL:
        if line.startswith("#>"):
            expected[-1] = (expected[-1][0], line.removeprefix("#>").strip())
        else:
            script += [line, f"echo; echo '{SPLIT}'"]
            expected.append((line, ""))
    with running_server(places) as server:
        env = {**os.environ, "URL": server.url, "TOKEN": server.token, "SOCKET": str(server.socket)}
        done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, timeout=150, env=env)
        said = done.stdout.decode(errors="replace")
        assert done.returncode == 0, said[-2000:] + done.stderr.decode()
        server.process.wait(60)
    for (line, wanted), answer in zip(expected, said.split(SPLIT), strict=False):
        assert wanted in answer, f"{line}\nwas answered\n{answer[:2000]}\nwithout\n{wanted}"
    assert said.count(SPLIT) == len(expected)


def _fits(wanted: Any, found: Any, known: dict[str, Any]) -> bool:
    """Whether `found` has everything that `wanted` has; a `$name` stands for a value, learnt where it first appears."""
    if isinstance(wanted, str) and wanted.startswith("$"):
        return bool(known.setdefault(wanted, found) == found)
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(k in found and _fits(v, found[k], known) for k, v in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(_fits(w, f, known) for w, f in zip(wanted, found, strict=True))
        )
    return bool(wanted == found)


def _fill(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {k: _fill(v, known) for k, v in value.items()}
    return known.get(value, value) if isinstance(value, str) else value


def _talk(server: RunningServer, path: str, talk: list[str]) -> None:
    known: dict[str, Any] = {}
    with connect(server.ws_url + path, additional_headers=server.auth) as ws:
        waiting: list[Any] = []
        for line in talk:
            body = json.loads(line[2:])
            if line[0] == ">":
                ws.send(json.dumps(_fill(body, known)))
                continue
            deadline = time.monotonic() + HANG_S
            while not any(_fits(body, message, known) for message in waiting):
                left = deadline - time.monotonic()
                assert left > 0, f"{path}: {line} did not come, but {waiting[-3:]}"
                try:
                    waiting.append(json.loads(ws.recv(timeout=left)))
                except TimeoutError:
                    continue
            waiting = [message for message in waiting if not _fits(body, message, known)]


def test_the_websocket_recipes_are_answered_as_they_say(server: RunningServer) -> None:
    for path, talk in TALKS:
        if path.startswith("/sessions/"):
            made = {"name": path.split("/")[2], "command": "bash --norc", "env": {"PS1": "$ "}}
            assert server.request("POST", "/sessions", made).status == 201
        _talk(server, path, talk)
        if path.startswith("/sessions/"):
            server.request("DELETE", f"/sessions/{path.split('/')[2]}")


def test_the_python_recipe_reads_and_types_bytes(server: RunningServer) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    server.request("POST", "/sessions", {"name": "demo", "command": "bash --norc"})
    env = {**os.environ, "URL": server.url, "TOKEN": server.token}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env)
    server.request("DELETE", "/sessions/demo")
    assert done.stdout == "/ws/raw True\n/ws/view?rows=10&cols=40 True\nTrue\n", done.stdout + done.stderr
