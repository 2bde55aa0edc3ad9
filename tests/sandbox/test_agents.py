"""With `sandbox.agents`: what agents get at every door, what they are refused, and what a person's sessions are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.http.talk import talk
from tests.support.mcp.host import HttpHost, failure, structured
from tests.support.mcp.live import set_folders
from tests.support.sandbox.held import BACKENDS, find_missing, make_project
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from wsh.wire.system.place import Places, find_places
from wsh.wire.token_file import TokenFile

USABLE = [backend for backend in BACKENDS if find_missing(backend) is None]
pytestmark = [pytest.mark.accept, pytest.mark.skipif(not USABLE, reason="no backend holds on this machine")]


def write_policy(places: Places, text: str) -> None:
    places.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.policy_file.write_text(text)
    places.policy_file.chmod(0o600)


def policy_text(backend: str) -> str:
    return (
        f'[sandbox]\nagents = "workspace"\naccept_weaker = true\nbackend = "{backend}"\n'
        '[headless]\nallow = ["touch *", "cat *"]\n'
    )


@pytest.fixture(scope="module", params=USABLE)
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    """One server for all tests of a backend."""
    folder = tmp_path_factory.mktemp("agents")
    with pytest.MonkeyPatch.context() as patch:
        set_folders(folder, patch)
        places = find_places()
        write_policy(places, policy_text(request.param))
        with running_server(places, environ={"ALLOWED_COMMANDS": "*"}) as server:
            server.extra["backend"] = request.param
            server.extra["agent"] = TokenFile(server.places.tokens).add_agent("helper")
            yield server


@pytest.fixture
def server(shared: RunningServer) -> Iterator[RunningServer]:
    """With its policy, and without sessions before and after."""
    write_policy(shared.places, policy_text(shared.extra["backend"]))
    yield shared
    for info in shared.get("/sessions"):
        shared.request("DELETE", f"/sessions/{info['name']}")


@pytest.fixture
def agent(server: RunningServer) -> str:
    return str(server.extra["agent"])


def _type(server: RunningServer, token: str | None, name: str, text: str) -> Any:
    return server.request("POST", f"/sessions/{name}/input", text.encode(), token=token or "")


def test_an_agents_session_is_held_and_a_persons_is_open(server: RunningServer, agent: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    asked = {"command": f"sh -c 'touch inside; touch {tmp_path}/outside; exec cat'", "cwd": str(project)}
    made = server.request("POST", "/sessions", asked | {"name": "held"}, token=agent)
    assert made.status == 201, made.body
    assert made.json["sandbox"]["profile"] == "workspace"
    wait_until(lambda: (project / "inside").exists(), what="the file inside")
    mine = server.request("POST", "/sessions", asked | {"name": "mine"})
    assert mine.json["sandbox"] is None
    wait_until(lambda: (tmp_path / "outside").exists(), what="the person's file")
    listed = {info["name"]: info["sandbox"] for info in server.get("/sessions")}
    assert listed["mine"] is None
    assert listed["held"]["profile"] == "workspace"
    narrower = server.request("POST", "/sessions", asked | {"name": "less", "sandbox": "read-only"}, token=agent)
    assert narrower.json["sandbox"]["profile"] == "read-only", narrower.body


@pytest.mark.parametrize("wider", ["off", "workspace+network"])
def test_an_agent_may_not_widen(server: RunningServer, agent: str, tmp_path: Path, wider: str) -> None:
    asked = {"command": "cat", "cwd": str(make_project(tmp_path)), "sandbox": wider}
    refused = server.request("POST", "/sessions", asked, token=agent)
    assert (refused.status, refused.code) == (403, "sandbox_refused"), refused.body
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        told = failure(host.call("wsh_create_session", asked))
    assert (told["code"], told["reason"]) == ("FORBIDDEN", "sandbox_refused")
    assert server.get("/sessions") == []
    assert server.request("POST", "/sessions", asked).status == 201


@pytest.mark.parametrize("folder", ["/", "~", "/etc", "/usr/lib", "/tmp", "/proc", "/dev/shm"])
def test_no_agent_gets_a_folder_that_must_stay_closed(server: RunningServer, agent: str, folder: str) -> None:
    refused = server.request("POST", "/sessions", {"command": "cat", "cwd": folder}, token=agent)
    assert (refused.status, refused.code) == (403, "sandbox_refused"), refused.body


def test_an_agents_input_into_a_weaker_session_is_refused_at_every_door(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    assert server.request("POST", "/sessions", {"name": "open", "command": "cat", "cwd": str(project)}).status == 201
    refused = _type(server, agent, "open", "x")
    assert (refused.status, refused.code) == (403, "sandbox_refused"), refused.body
    keys = server.request("POST", "/sessions/open/keys", {"keys": ["enter"]}, token=agent)
    run = server.request("POST", "/sessions/open/run", {"input": "true"}, token=agent)
    for reply in (keys, run):
        assert (reply.status, reply.code) == (403, "sandbox_refused"), reply.body
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        for tool, more in (("wsh_send_input", {"input": "x"}), ("wsh_run_command", {"input": "true"})):
            assert failure(host.call(tool, {"session": "open"} | more))["reason"] == "sandbox_refused"
    with HttpHost(f"{server.url}/mcp", server.token) as host:
        host.initialize()
        told = failure(host.call("wsh_send_input", {"session": "open", "input": "x"}))
        assert told["reason"] == "sandbox_refused", "a model with the owner's token is an agent too"
    assert _type(server, None, "open", "by hand\r").status == 204
    wait_until(lambda: "by hand" in str(server.get("/sessions/open/screen?format=plain")), what="the person's echo")
    screen = str(server.get("/sessions/open/screen?format=plain"))
    assert "x" not in screen.replace("next", "").replace("max", "").partition("by hand")[0].rpartition("lines")[2]


def test_headless_commands_and_execute_command_are_held(server: RunningServer, agent: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("hidden words")
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        # Inside there may be a /tmp of its own, where the second file is made and lost.
        host.call("execute_command", {"command": f"touch {project}/one {tmp_path}/two", "cwd": str(project)})
        seen = host.call("execute_command", {"command": f"cat {secret}", "cwd": str(project)})
        assert "hidden words" not in str(seen)
        run = {
            "action": "execute",
            "invocation": {"mode": "headless", "intent": "execute_command"},
            "execution": {"command": "touch", "args": [f"{project}/three", f"{tmp_path}/four"]},
            "runtime": {"cwd": str(project)},
        }
        answer = host.call("memory_terminal_interactive", run)
        assert "PM_TERM" not in str(answer), answer
        assert structured(host.call("wsh_list_sessions"))["sessions"] == []
    wait_until((project / "three").exists, what="the contract's file")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file() and path.suffix != ".log") == ["secret"]
    wait_until(lambda: sorted(path.name for path in project.iterdir()) == ["one", "three"], what="a clean project")


def test_a_policy_that_breaks_while_a_server_runs_holds_the_next_session_strictest(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    write_policy(server.places, '[sandbox]\nagents = "workspace"\n[sandbox.profiles.x]\nreadable = ["relative"]\n')
    project = make_project(tmp_path)
    made = server.request("POST", "/sessions", {"command": "cat", "cwd": str(project)}, token=agent)
    assert made.status == 201, made.body
    assert made.json["sandbox"]["profile"] == "read-only"
    assert any("policy.toml:4" in warning for warning in server.get("/server/info")["warnings"])


def test_nothing_is_left_after_the_session_and_after_a_killed_server(places: Places, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write_policy(places, policy_text(USABLE[0]))
    with running_server(places, check_left=False) as server:
        agent = TokenFile(places.tokens).add_agent("helper")
        _leave(server, agent, project)


def _leave(server: RunningServer, agent: str, project: Path) -> None:
    for name in ("one", "two"):
        asked = {"name": name, "command": "cat", "cwd": str(project)}
        assert server.request("POST", "/sessions", asked, token=agent).status == 201
    assert server.request("DELETE", "/sessions/one").status == 204
    server.process.kill()
    server.process.wait()
    with running_server(server.places, check_left=False) as successor:
        info = successor.get("/sessions/two")
        assert info["sandbox"]["profile"] == "workspace"
        assert info["running"]
        told = _type(successor, agent, "two", "still here\r")
        assert told.status == 204, told.body
        wait_until(
            lambda: str(successor.get("/sessions/two/screen?format=plain")).count("still here") == 2, what="its echo"
        )
        assert successor.request("DELETE", "/sessions/two").status == 204
    assert list(project.iterdir()) == []
    assert list((server.places.state / "sandbox").iterdir()) == []


def test_a_refusal_of_the_sandbox_is_told_with_the_line(server: RunningServer, agent: str, tmp_path: Path) -> None:
    asked = {"name": "told", "command": "bash", "cwd": str(make_project(tmp_path)), "sandbox": "read-only"}
    assert server.request("POST", "/sessions", asked, token=agent).status == 201
    run = {"input": "touch here", "max_wait_ms": 60_000}
    done = server.request("POST", "/sessions/told/run", run, token=agent).json
    assert done["exit_code"] == 1, done
    assert done["sandbox_denied"]["profile"] == "read-only"
    assert done["sandbox_denied"]["error"] in ("EROFS", "EACCES")
    assert "here" in done["sandbox_denied"]["line"]
    plain = server.request("POST", "/sessions/told/run", run | {"input": "false"}, token=agent).json
    assert plain["exit_code"] == 1
    assert "sandbox_denied" not in plain
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        told = structured(host.call("wsh_run_command", {"session": "told", "input": "touch here"}))
        assert told["sandbox_denied"]["profile"] == "read-only"


def test_an_agents_input_over_a_websocket_into_a_weaker_session_is_refused(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    asked = {"command": "cat", "cwd": str(project)}
    for name, more in (("open", {}), ("wider", {"sandbox": "workspace+network"})):
        assert server.request("POST", "/sessions", asked | {"name": name} | more).status == 201
    assert server.request("POST", "/sessions", asked | {"name": "held"}, token=agent).status == 201
    with talk(server, "/ws/json", agent) as client:
        for name in ("open", "wider"):
            for method, params in (
                ("send_input", {"data": "xyzzy\r"}),
                ("run_command", {"input": "xyzzy"}),
                ("run_command", {"input": "xyzzy", "clear_line": True}),
            ):
                assert client.fail(method, params, session=name) == "sandbox_refused"
        client.ask("send_input", {"data": "plugh\r"}, session="held")
        assert client.fail("create_session", asked | {"sandbox": "off"}) == "sandbox_refused"
    for name in ("open", "wider"):
        with talk(server, f"/sessions/{name}/ws/json", agent) as client:
            assert client.fail("send_input", {"data": "xyzzy\r"}) == "sandbox_refused"
        raw = connect(
            f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers={"Authorization": f"Bearer {agent}"}
        )
        with raw:
            raw.send(b"xyzzy\r")
            code, said = _read_to_the_end(raw)
        assert code == 1008 and "sandbox" in said, (code, said)
        with talk(server, f"/sessions/{name}/ws/json") as person:
            person.ask("send_input", {"data": "by hand\r"})
        wait_until(
            lambda name=name: str(server.get(f"/sessions/{name}/screen?format=plain")).count("by hand") == 2,  # type: ignore[misc]
            what="the person's echo",
        )
        assert "xyzzy" not in str(server.get(f"/sessions/{name}/scrollback?format=plain"))
    wait_until(
        lambda: str(server.get("/sessions/held/screen?format=plain")).count("plugh") == 2, what="the agent's own echo"
    )


def _read_to_the_end(raw: ClientConnection) -> tuple[int, str]:
    """The code and the words with which the server closed it."""
    with pytest.raises(ConnectionClosed) as closed:
        _drain(raw)
    assert closed.value.rcvd is not None, closed.value
    return closed.value.rcvd.code, closed.value.rcvd.reason


def _drain(raw: ClientConnection) -> None:
    while True:
        raw.recv(timeout=HANG_S)
