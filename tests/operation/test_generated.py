"""What is made from the operations: nothing of it is stale, and the client's methods take what the operations take."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from wsh.client.client import RemoteSession
from wsh.operation.catalog import list_operations

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["generate_reference.py", "generate_rooms.py"])
def test_nothing_that_is_generated_is_stale(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_the_clients_methods_take_every_parameter_of_their_operation() -> None:
    operations = list_operations()
    spelled = {"timeout_ms": "quiet_ms", "last_generation": "generation"}
    for method, name, same in (
        (RemoteSession.run, "run_command", {"input": "command"}),
        (RemoteSession.wait, "await_idle", spelled),
        (RemoteSession.screen, "get_screen", {}),
        (RemoteSession.scrollback, "get_scrollback", {}),
    ):
        taken = set(inspect.signature(method).parameters) - {"self"}
        assert taken == {same.get(field, field) for field in operations[name].params.model_fields}, name
