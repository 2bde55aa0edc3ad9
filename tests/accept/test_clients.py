"""Agents' frameworks and generated clients that know nothing of us, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.live import live_server
from wsh.wire.system.place import Places

CLIENTS = Path(__file__).parent / "clients"
WSH = Path(sys.executable).parent / "wsh"
FRAMEWORKS: Mapping[str, tuple[str, ...]] = {
    "openai_agents": ("openai-agents==0.24.0",),
    "langchain_mcp": ("langchain-mcp-adapters==0.3.2",),
    "smol_agents": ("smolagents[mcp]==1.26.0", "mcp<2"),
    "pydantic_ai_mcp": ("pydantic-ai-slim[mcp]==2.66.0",),
}
WITH_MAPS = {"wsh_create_session", "memory_terminal_interactive", "memory_terminal", "memory_terminal_vscode"}
"""Their environment variables have names that nobody knows beforehand, which a strict schema cannot say."""


def make_environment(folder: Path, *packages: str) -> Path:
    """An environment with these packages and nothing else; its folder of programs."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    subprocess.run(install, check=True, timeout=1200)
    return programs


def run(program: Path, *words: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        [program, *words], cwd=cwd, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_takes_every_tool_and_calls_some(framework: str, tmp_path: Path, places: Places) -> None:
    programs = make_environment(tmp_path / "env", *FRAMEWORKS[framework])
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        out = run(programs / "python", str(CLIENTS / f"{framework}.py"), str(WSH), "mcp", cwd=tmp_path, environ=environ)
    finally:
        subprocess.run([WSH, "stop"], env=environ, capture_output=True, timeout=120, check=False)
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert len(told["tools"]) == 24 and "wsh_run_command" in told["tools"]
    if "strict" in told:
        assert {name for name, strict in told["strict"].items() if not strict} == WITH_MAPS


@pytest.mark.timeout(1800)
def test_a_client_made_of_the_openapi_document_works(tmp_path: Path) -> None:
    programs = make_environment(tmp_path / "env", "openapi-python-client==0.29.1")
    (tmp_path / "server").mkdir()
    with live_server(tmp_path / "server") as server:
        (tmp_path / "openapi.json").write_bytes(server.request("GET", "/openapi.json").body)
        path = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
        words = ("generate", "--path", "openapi.json", "--output-path", "made")
        said = run(programs / "openapi-python-client", *words, cwd=tmp_path, environ=path)
        assert "Unable to process schema" not in said and "Could not find reference" not in said, said
        made = {**os.environ, "PYTHONPATH": str(tmp_path / "made")}
        script = str(CLIENTS / "generated.py")
        run(programs / "python", script, server.url, server.token, cwd=tmp_path, environ=made)
