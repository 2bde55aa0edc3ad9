"""Inside a sandbox commands end and print as outside it, kills leave nothing, and a session outlives its server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.sandbox.held import BackendName, each_backend, make_project, open_held
from tests.support.session.campaign import Campaign
from tests.support.session.randoms import compare
from tests.support.session.running import run_with_registry
from tests.support.session.shells import each_shell, make_home, run
from wsh.session.registry import SessionRegistry
from wsh.wire.system.place import Places

pytestmark = pytest.mark.accept
EXTRA = {"LC_CTYPE": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}


@each_backend
@each_shell
@pytest.mark.torture
def test_random_commands_end_and_print_as_on_a_plain_pty(
    places: Places, tmp_path: Path, backend: BackendName, shell: str, torture: bool
) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": make_home(tmp_path), **EXTRA}

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, make_project(tmp_path), shell, env=EXTRA)
        await run(session, "true")
        await run(session, "cd /")
        found = await compare(session, shell, seed=11, count=1000 if torture else 8, env=env)
        assert found.wrong == [], "\n".join(found.wrong[:5])
        if torture:
            campaign = await Campaign(session, shell, 23, env).run(300)
            assert campaign.wrong == [], "\n".join(campaign.wrong[:5])

    run_with_registry(places, work, session__line_wait_ms=0)
