"""The window holds what agents run, and lets one command out after a yes that was given for that."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.support.contract.windowed import Desk, desk
from tests.support.contract.world import INTERACTIVE
from tests.support.sandbox.held import BACKENDS, find_missing, make_project
from wsh.bridge import client
from wsh.sandbox.profile import WORKSPACE
from wsh.sandbox.section import SandboxPolicy
from wsh.wire.system.place import Places

USABLE = [backend for backend in BACKENDS if find_missing(backend) is None]
pytestmark = pytest.mark.skipif(not USABLE, reason="no backend holds on this machine")


def turn_on(places: Places, table: Desk) -> None:
    places.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.policy_file.write_text(f'[sandbox]\nagents = "workspace"\naccept_weaker = true\nbackend = "{USABLE[0]}"\n')
    held = SandboxPolicy(agents=WORKSPACE, accept_weaker=True, backend=USABLE[0])
    table.world.policy.policy = dataclasses.replace(table.world.policy.policy, sandbox=held)
    assert table.end._policy.check()


def is_held(table: Desk) -> bool:
    return table.sessions[-1].holding is not None


async def run(table: Desk, project: Path, line: str, **more: str) -> dict[str, Any]:
    return await table.world.ask(
        {
            "action": "execute",
            "invocation": INTERACTIVE,
            "execution": {"command": line} | more,
            "runtime": {"timeout_ms": 60_000, "cwd": str(project)},
        }
    )


async def test_what_is_approved_stays_in_the_sandbox_unless_that_was_asked(tmp_path: Path, places: Places) -> None:
    project, outside = make_project(tmp_path), tmp_path / "outside"
    async with desk(tmp_path, places) as table:
        turn_on(places, table)
        held = await run(table, project, f"touch {project}/inside {outside}")
        assert held["result"]["approval"] == "approved", held
        assert is_held(table)
        assert (project / "inside").exists() and not outside.exists()
        let = await run(table, project, f"touch {outside}", sandbox="off", note="it belongs there")
        assert let["result"]["exit_code"] == 0, let
        assert not is_held(table)
        assert outside.exists()
        for wrong in ({"sandbox": "off"}, {"sandbox": "on", "note": "why"}):
            refused = await run(table, project, "true", **wrong)
            assert refused["error"]["code"] == "PM_TERM_INVALID_PAYLOAD", refused


async def test_an_older_window_is_not_asked_to_let_anything_out(
    tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.BridgeClient, "knows", lambda self, capability: capability != "sandbox")
    project = make_project(tmp_path)
    async with desk(tmp_path, places) as table:
        turn_on(places, table)
        told = await run(table, project, f"touch {tmp_path}/outside", sandbox="off", note="why")
        assert told["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE" and "older" in told["error"]["message"], told
        assert not (tmp_path / "outside").exists()


async def test_there_is_nothing_to_leave_where_agents_get_no_sandbox(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        told = await run(table, make_project(tmp_path), "true", sandbox="off", note="why")
        assert told["error"]["details"]["reason"] == "no_sandbox", told
        assert table.sessions == []
