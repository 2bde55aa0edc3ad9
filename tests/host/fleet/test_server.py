"""Two servers in a fleet, used as a person uses them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.host.fleet.connection import open_connection
from wsh.host.fleet.credential import NodeCredential, read_credential
from wsh.host.fleet.deploy import read_deployment
from wsh.wire.system.place import find_places

pytestmark = pytest.mark.accept


@dataclass
class Machine:
    """One machine's folders, and what runs there."""

    folder: Path
    environ: dict[str, str]
    server: RunningServer | None = None

    @property
    def running(self) -> RunningServer:
        assert self.server is not None
        return self.server

    def wsh(self, *words: str, status: int = 0) -> str:
        done = run_warm([sys.executable, "-m", "wsh.cli.main", *words], env=self.environ, cwd=self.folder, text=True)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return str(done.stdout + done.stderr)

    def ask(self, *words: str) -> Any:
        return json.loads(self.wsh(*words, "--json"))

    def get_node(self, name: str) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = self.running.get("/fleet")["nodes"]
        return next((one for one in nodes if one["name"] == name), {"online": None})


async def claim(credential: NodeCredential, key: str) -> None:
    async with open_connection(credential, credential.url, 1 << 20) as connection:
        await connection.create("approvals", key, {"by": "ann"})


def make_machine(folder: Path, **settings: str) -> Machine:
    environ = {**os.environ, "HOME": str(folder), **settings}
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700, parents=True)
        environ[variable] = str(folder / name)
    return Machine(folder, environ)


@contextmanager
def serving(machine: Machine, *words: str, killed: bool = False) -> Iterator[Machine]:
    places = find_places(machine.environ)
    with running_server(places, *words, environ=machine.environ, check_left=not killed) as machine.server:
        yield machine


@dataclass
class Fleet:
    laptop: Machine
    gpu: Machine
    join: tuple[str, ...]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    laptop = make_machine(folder / "a", WSH_APPROVALS_SERVER="true")
    gpu = make_machine(folder / "b", WSH_APPROVALS_SERVER="true")
    with ExitStack() as closing:
        closing.enter_context(serving(laptop))
        told = laptop.ask("fleet", "up", "--bind", "127.0.0.1:0", "--node", "laptop")
        closing.callback(laptop.wsh, "fleet", "down")
        made = laptop.ask("fleet", "invite", "gpu1", "--tag", "gpu")
        yield Fleet(laptop, gpu, ("--join", told["url"], "--credentials", made["file"]))


def test_a_fleet_of_two_is_one_list_with_one_address_and_the_rules_of_each_node(fleet: Fleet) -> None:
    laptop, gpu = fleet.laptop, fleet.gpu
    with serving(gpu, *fleet.join):
        wait_until(lambda: laptop.get_node("gpu1")["online"], "gpu1 to join", seen=lambda: laptop.running.get("/fleet"))
        assert laptop.get_node("gpu1")["tags"] == ["gpu"] and laptop.get_node("laptop")["here"]
        assert "gpu1\tonline\tgpu" in laptop.wsh("fleet", "list")
        assert "is a node of the fleet" in laptop.wsh("host", "remove", "gpu1", status=1)
        assert (
            laptop.wsh("new", "--on", "tag:gpu", "--name", "train", "--", "bash", "--norc", "--noprofile")
            == "gpu1/train\n"
        )
        assert laptop.wsh("run", "gpu1/train", "echo $((6*7))") == "42\n"
        assert laptop.wsh("new", "gpu1/short", "--", "sleep", "1000") == "gpu1/short\n"
        laptop.wsh("kill", "gpu1/short")
        wait_until(lambda: [one["name"] for one in laptop.running.get("/sessions")] == ["gpu1/train"])
        assert [one["name"] for one in gpu.running.get("/sessions")] == ["train"]

        done = json.loads(laptop.wsh("fleet", "run", "--json", "all", "--", "uptime"))
        assert [(one["node"], one["exit_code"]) for one in done] == [("gpu1", 0), ("laptop", 0)]
        refused = laptop.wsh("fleet", "run", "tag:gpu", "--", "rm", "-rf", "/", status=1)
        assert "refused" in refused
        entries = gpu.running.get("/audit?limit=20")["entries"]
        assert [one for one in entries if one.get("argv") == ["rm", "-rf", "/"] and "laptop" in json.dumps(one)], (
            entries
        )
        assert "No node is meant" in laptop.wsh("fleet", "run", "tag:none", "--", "true", status=1)

        # A request of an agent there is answered here, once.
        asked = {
            "action": "execute",
            "invocation": {"mode": "interactive", "intent": "execute_command"},
            "execution": {"command": "echo approved-in-the-fleet"},
            "runtime": {"timeout_ms": 100},
        }
        gpu.running.request("POST", "/terminal", asked)
        listed = wait_until(lambda: [r for r in laptop.running.get("/approvals")["requests"] if r["answerable"]])
        assert listed[0]["host"] == "gpu1" and listed[0]["id"].startswith("gpu1/")
        # A claim is left of an answer that did not count: its server was killed, or NATS was away.
        credential = read_credential(Path(fleet.join[3]))
        asyncio.run(claim(credential, f"gpu1.{listed[0]['id'].partition('/')[2]}"))
        laptop.wsh("approvals", "approve", listed[0]["id"])
        assert "already" in laptop.wsh("approvals", "approve", listed[0]["id"], status=1)
        # What was decided there is in the fleet's audit, and its copy goes on after a restart.
        note = find_places(gpu.environ).fleet_audit
        wait_until(note.exists, "the audit to reach the fleet")


def test_a_killed_node_is_out_of_reach_and_not_ended_and_comes_back_whole(fleet: Fleet) -> None:
    laptop, gpu = fleet.laptop, fleet.gpu
    with serving(gpu, *fleet.join, killed=True):
        wait_until(lambda: laptop.get_node("gpu1")["online"], "gpu1 to join")
        laptop.wsh("new", "--on", "gpu1", "--name", "long", "--", "sleep", "1000")
        wait_until(lambda: [one["name"] for one in laptop.running.get("/sessions")] == ["gpu1/long"])
        os.kill(gpu.running.process.pid, signal.SIGKILL)
        gpu.running.process.wait()
        wait_until(lambda: laptop.get_node("gpu1")["online"] is False, "gpu1 to be seen as gone")
        (gone,) = laptop.running.get("/sessions")
        assert gone["running"] and gone["unreachable_since"]
        assert "cannot be reached" in laptop.wsh("screen", "gpu1/long", status=1)
        with serving(gpu, *fleet.join):
            wait_until(lambda: laptop.get_node("gpu1")["online"], "gpu1 to come back")
            wait_until(
                lambda: (
                    [(one["name"], one["unreachable_since"]) for one in laptop.running.get("/sessions")]
                    == [("gpu1/long", None)]
                )
            )


def test_a_key_that_was_taken_back_opens_nothing(fleet: Fleet, tmp_path: Path) -> None:
    laptop = fleet.laptop
    made = laptop.ask("fleet", "invite", "guest", "--role", "serve")
    assert laptop.ask("fleet", "remove", "guest") == {"removed": "guest"}
    guest = make_machine(tmp_path / "guest")
    with serving(guest):
        assert guest.ask("fleet", "join", fleet.join[1], "--credentials", made["file"])["url"] == fleet.join[1]
        wait_until(lambda: "does not know these credentials" in str(guest.running.get("/fleet")["problem"]))
        assert "works alone" in json.dumps(guest.running.get("/server/info")["warnings"])
        guest.wsh("fleet", "leave")
        assert guest.running.get("/fleet")["problem"] is None


def test_inside_a_session_nobody_changes_the_fleet(fleet: Fleet) -> None:
    laptop = fleet.laptop
    laptop.wsh("new", "--name", "inside", "--", "bash", "--norc", "--noprofile")
    for words in ("invite mallory", "remove gpu1", "down", "leave"):
        command = f"{sys.executable} -m wsh.cli.main fleet {words}"
        assert "may not change a fleet" in laptop.wsh("run", "inside", command, status=5)
    assert laptop.running.get("/fleet")["fleet"] == "home"
    laptop.wsh("kill", "inside")


def test_a_join_that_is_refused_leaves_the_server_in_its_fleet(fleet: Fleet, tmp_path: Path) -> None:
    laptop = fleet.laptop
    wait_until(lambda: laptop.running.get("/fleet")["joined"])
    assert "is no address" in laptop.wsh("fleet", "join", "10.0.0.1:4222", status=2)
    missing = str(tmp_path / "missing.json")
    assert "no credentials" in laptop.wsh("fleet", "join", fleet.join[1], "--credentials", missing, status=2)
    assert laptop.running.get("/fleet")["joined"]


def test_of_many_joins_at_once_one_node_is_left(fleet: Fleet) -> None:
    laptop = fleet.laptop
    with ThreadPoolExecutor(6) as pool:
        body = {"url": fleet.join[1]}
        replies = list(pool.map(lambda _: laptop.running.request("PUT", "/fleet", body).status, range(6)))
    assert replies == [200] * 6
    wait_until(lambda: laptop.running.get("/fleet")["joined"])
    laptop.wsh("fleet", "leave")
    assert laptop.running.get("/fleet")["nodes"] == []
    laptop.wsh("fleet", "up")
    wait_until(lambda: laptop.running.get("/fleet")["joined"], seen=lambda: laptop.running.get("/fleet"))


def test_a_node_that_is_removed_is_in_no_list_any_more(fleet: Fleet, tmp_path: Path) -> None:
    laptop = fleet.laptop
    made = laptop.ask("fleet", "invite", "web.1")
    guest = make_machine(tmp_path / "guest")
    with serving(guest, "--join", fleet.join[1], "--credentials", made["file"]):
        wait_until(lambda: laptop.get_node("web.1")["online"], "web.1 to join")
        laptop.wsh("new", "web.1/stays", "--", "sleep", "1000")
        wait_until(lambda: "web.1/stays" in laptop.wsh("list"))
        laptop.wsh("fleet", "remove", "web.1")
        wait_until(lambda: laptop.get_node("web.1") == {"online": None}, seen=lambda: laptop.running.get("/fleet"))
        assert "web.1" not in laptop.wsh("list") + laptop.wsh("host", "list")
        wait_until(lambda: "does not know these credentials" in str(guest.running.get("/fleet")["problem"]))
        guest.wsh("kill", "stays")


def test_a_fleet_whose_port_is_taken_can_be_moved_and_keeps_what_was_said(tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "m")
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        busy, port = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        words = ("fleet", "up", "--node", "laptop", "--bind")
        assert "--bind HOST:PORT" in machine.wsh(*words, f"127.0.0.1:{busy}", status=2)
        assert machine.ask(*words, f"127.0.0.1:{port}")["url"] == f"tls://127.0.0.1:{port}"
    try:
        assert "fleet down" in machine.wsh("fleet", "up", "--bind", "127.0.0.1:1", status=1)
        assert "'home'" in machine.wsh("fleet", "up", "--fleet", "work", status=1)
        assert "'laptop'" in machine.wsh("fleet", "up", "--node", "other", status=1)
        with serving(machine):
            wait_until(lambda: machine.running.get("/fleet")["joined"], seen=lambda: machine.running.get("/fleet"))
    finally:
        machine.wsh("fleet", "down")


def test_setting_up_a_fleet_keeps_the_credentials_of_another_one(fleet: Fleet, tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "m")
    file = find_places(machine.environ).fleet_credentials
    file.parent.mkdir(mode=0o700, exist_ok=True)
    made = fleet.laptop.ask("fleet", "invite", "other", "--output", str(file))
    before = file.read_bytes()
    assert made["file"] == str(file)
    assert "another fleet" in machine.wsh("fleet", "up", "--bind", "127.0.0.1:0", status=1)
    assert file.read_bytes() == before


def test_what_the_settings_say_of_another_fleet_does_not_hold_for_the_one_that_is_set_up_here(
    fleet: Fleet, tmp_path: Path
) -> None:
    machine = make_machine(tmp_path / "m")
    made = fleet.laptop.ask("fleet", "invite", "both")
    with serving(machine):
        machine.wsh("fleet", "join", fleet.join[1], "--credentials", made["file"])
        wait_until(lambda: machine.running.get("/fleet")["joined"])
        machine.wsh("fleet", "leave")
        machine.wsh("fleet", "up", "--bind", "127.0.0.1:0", "--node", "laptop")
        machine.wsh("fleet", "down")
    machine.wsh("fleet", "up")
    try:
        with serving(machine):
            wait_until(lambda: machine.running.get("/fleet")["joined"], seen=lambda: machine.running.get("/fleet"))
            assert machine.running.get("/fleet")["name"] == "laptop"
    finally:
        machine.wsh("fleet", "down")


def test_nodes_that_are_invited_at_the_same_time_are_all_in_the_fleet(fleet: Fleet) -> None:
    names = [f"n{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: fleet.laptop.wsh("fleet", "invite", name), names))
    deployment = read_deployment(find_places(fleet.laptop.environ).fleet)
    assert deployment is not None and set(names) <= deployment.nodes.keys()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"fleet": 1}', "null"])
def test_a_broken_description_of_the_fleet_is_said(tmp_path: Path, content: str) -> None:
    machine = make_machine(tmp_path / "m")
    folder = find_places(machine.environ).fleet
    folder.mkdir(mode=0o700, parents=True)
    (folder / "fleet.json").write_text(content)
    assert "cannot be used" in machine.wsh("fleet", "invite", "x", status=2)
