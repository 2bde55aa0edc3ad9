"""The official MCP conformance suite, in every published revision that it can ask for, against a server of our own.

It is the npm package that the tests use too; it is installed beside them, not into the repository.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from tests.support.mcp import judge
from tests.support.mcp.conformance import JUDGED
from tests.support.mcp.live import live_server

from bench.scorecard.outcome import Outcome

NEW = f"{judge.MODULES}/conformance/dist/index.js"
OLD = "node_modules/conformance-stable/dist/index.js"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")


def run() -> tuple[dict[str, Outcome], str]:
    """Outcomes by scenario, and what is to be said of versions."""
    judges = judge.set_up()
    found: dict[str, Outcome] = {}
    told = []
    with (
        tempfile.TemporaryDirectory() as folder,
        live_server(Path(folder), JUDGED) as server,
    ):
        environ = {
            "NODE_OPTIONS": f"--import={(judges / 'authorize.mjs').as_uri()}",
            "JUDGED_ORIGIN": server.url,
            "JUDGED_TOKEN": server.token,
        }
        for name, suite, words in (
            *((revision, NEW, ("--requirements", revision)) for revision in REVISIONS),
            ("stable", OLD, ()),
        ):
            out = Path(folder) / f"out-{name}"
            out.mkdir()
            done = judge.run_node(
                judges, suite, "server", "--url", f"{server.url}/mcp", *words, "-o", str(out), cwd=out, environ=environ
            )
            checks = sorted(out.rglob("checks.json"))
            if not checks:
                told.append(f"{name}: not offered by the suite ({_last_line(done.stdout + done.stderr)})")
            else:
                verdict = (
                    "passes all scenarios that the suite scores" if done.returncode == 0 else "fails scored scenarios"
                )
                told.append(f"{name}: {verdict} (its exit status is {done.returncode})")
            for path in checks:
                scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name)
                failed = [check for check in json.loads(path.read_text()) if check["status"] == "FAILURE"]
                found[f"{name}: {scenario}"] = Outcome(not failed, "; ".join(str(check["id"]) for check in failed))
    return found, ". ".join(told)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no output"
