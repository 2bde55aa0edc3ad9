"""The container's files: linted, and run for real as far as a machine without an engine can."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.contract.adapters.test_adapter import REPOSITORY
from wsh.bridge.endpoint import Endpoint, write_endpoint

CONTAINER = REPOSITORY / "container"
GOOD = {
    "PM_RUNNING_IN_CONTAINER": "true",
    "PM_TERM_ADAPTER_MODE": "container_bridge",
    "PM_INTERACTIVE_TERMINAL_HOST_PORT": "45459",
    "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "3000",
    "PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS": "30000",
    "PM_INTERACTIVE_TERMINAL_TOKEN": "hush",
}


def enter(environ: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        [CONTAINER / "entrypoint.sh", *(command or ("env",))], env=base | environ, capture_output=True, text=True
    )


def test_the_shell_scripts_and_the_containerfile_pass_their_linters() -> None:
    subprocess.run(["shellcheck", *CONTAINER.glob("*.sh")], check=True)
    hadolint = Path(sys.executable).parent / "hadolint"
    subprocess.run([hadolint, "--failure-threshold", "info", CONTAINER / "Containerfile"], check=True)


def test_the_entrypoint_starts_the_command_with_the_bridge_configured() -> None:
    done = enter(GOOD)
    assert done.returncode == 0
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert GOOD.items() <= seen.items()
    assert seen["PM_INTERACTIVE_TERMINAL_HOST_ALIAS"] == "host.containers.internal"
    assert seen["PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS"] == "host.docker.internal"
    assert "HOST_ALIAS is not set; using host.containers.internal" in done.stderr, "no default goes unsaid"
    assert "hush" not in done.stderr


def test_the_entrypoint_passes_overrides_and_arguments_on() -> None:
    done = enter(GOOD | {"PM_INTERACTIVE_TERMINAL_HOST_ALIAS": "desk"}, "sh", "-c", 'echo "$1|$0"', "a b", "c")
    assert done.stdout == "c|a b\n" and "bridge: desk" in done.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"PM_INTERACTIVE_TERMINAL_TOKEN": ""}, "PM_INTERACTIVE_TERMINAL_TOKEN is missing"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_PORT": ""}, "PM_INTERACTIVE_TERMINAL_HOST_PORT is missing"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_PORT": "http"}, "must be a whole number from 1 to 65535"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_PORT": "70000"}, "must be a whole number from 1 to 65535"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_PORT": "9" * 40}, "must be a whole number from 1 to 65535"),
        ({"PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "0"}, "CONNECT_TIMEOUT_MS must be a whole number"),
        ({"PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS": "-5"}, "REQUEST_TIMEOUT_MS must be a whole number"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_ALIAS": "two hosts"}, "HOST_ALIAS must be a host name"),
        ({"PM_INTERACTIVE_TERMINAL_HOST_ALIAS": "$(touch x)"}, "HOST_ALIAS must be a host name"),
        ({"PM_TERM_ADAPTER_MODE": "bundled"}, "there is no desktop in a container"),
        ({"PM_TERM_ADAPTER_MODE": "magic"}, "PM_TERM_ADAPTER_MODE must be container_bridge or auto"),
        ({"PM_TERM_ADAPTER_MODE": "auto", "PM_RUNNING_IN_CONTAINER": "no"}, "PM_RUNNING_IN_CONTAINER must be true"),
    ],
)
def test_the_entrypoint_refuses_and_says_what_is_wrong(changes: dict[str, str], said: str, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    done = enter(GOOD | changes, "touch", str(marker))
    assert done.returncode == 64 and said in done.stderr and "nothing was started" in done.stderr
    assert not marker.exists() and "hush" not in done.stderr


def test_every_fault_is_said_at_once() -> None:
    done = enter({}, "true")
    assert done.stderr.count("is missing") == 4 and "5 problem(s)" in done.stderr


def test_without_a_desktop_on_purpose_it_starts_and_says_so() -> None:
    done = enter({"WSH_WITHOUT_DESKTOP": "1"}, "echo", "up")
    assert done.stdout == "up\n" and "no desktop bridge" in done.stderr


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """Stands where podman would, and writes down how it was called."""
    path = tmp_path / "podman"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/argv\nenv > {tmp_path}/env\n')
    path.chmod(0o755)
    return path


def launch(engine: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(engine.parent), "WSH_ENGINE": str(engine)}
    return subprocess.run(
        [CONTAINER / "run-container.sh", *command],
        env=base | environ,
        capture_output=True,
        text=True,
        cwd=engine.parent,
    )


def test_the_runner_maps_the_host_and_passes_port_and_token_without_showing_it(engine: Path) -> None:
    done = launch(engine, "wsh", "mcp", PM_INTERACTIVE_TERMINAL_TOKEN="hush", PM_INTERACTIVE_TERMINAL_HOST_PORT="1")
    assert done.returncode == 0, done.stderr
    argv = (engine.parent / "argv").read_text().splitlines()
    assert argv[:4] == ["run", "--rm", "--interactive", "--init"] and argv[-3:] == ["wsh", "wsh", "mcp"]
    pairs = list(itertools.pairwise(argv))
    for host in ("host.containers.internal", "host.docker.internal"):
        assert ("--add-host", f"{host}:host-gateway") in pairs
    for name in ("TOKEN", "HOST_PORT", "HOST_ALIAS"):
        assert ("--env", f"PM_INTERACTIVE_TERMINAL_{name}") in pairs
    assert ("--publish", "127.0.0.1:8080:8080") in pairs and ("--volume", f"{engine.parent}:/workspace") in pairs
    assert "hush" not in argv and "hush" not in done.stderr
    assert "PM_INTERACTIVE_TERMINAL_TOKEN=hush" in (engine.parent / "env").read_text()
    assert "warning: nothing listens on port 1" in done.stderr


def test_the_runner_finds_the_desktop_of_this_user(engine: Path) -> None:
    write_endpoint(engine.parent / "wsh" / "interactive-terminal.json", Endpoint("127.0.0.1", 2, "from-the-file", 7))
    done = launch(engine)
    environ = (engine.parent / "env").read_text()
    assert done.returncode == 0 and "TOKEN=from-the-file\n" in environ and "HOST_PORT=2\n" in environ


def test_the_runner_refuses_without_a_token_and_without_an_engine(engine: Path) -> None:
    done = launch(engine)
    assert done.returncode == 64 and "no token" in done.stderr and not (engine.parent / "argv").exists()
    bare = engine.parent / "bare"
    bare.mkdir()
    for name in ("id", "sed"):
        (bare / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    none = subprocess.run(
        ["/bin/sh", CONTAINER / "run-container.sh"], env={"PATH": str(bare)}, capture_output=True, text=True
    )
    assert none.returncode == 69 and "neither podman nor docker" in none.stderr


def variables(text: str) -> set[str]:
    return set(re.findall(r"\bPM_[A-Z_]+[A-Z]\b", text))


def test_all_files_speak_of_the_same_variables() -> None:
    shell = variables((CONTAINER / "run-container.sh").read_text())
    power = variables((CONTAINER / "run-container.ps1").read_text())
    inner = variables((CONTAINER / "entrypoint.sh").read_text()) | {"PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE"}
    compose = yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["wsh"]
    shell -= {"PM_TERM_GUI_UNAVAILABLE"}
    power -= {"PM_TERM_GUI_UNAVAILABLE"}
    assert shell - {"PM_INTERACTIVE_TERMINAL"} == power
    given = {name for name in compose["environment"] if name.startswith("PM_")}
    assert given == inner == power | {"PM_RUNNING_IN_CONTAINER"}
    assert compose["extra_hosts"] == ["host.containers.internal:host-gateway", "host.docker.internal:host-gateway"]
    assert ":?" in compose["environment"]["PM_INTERACTIVE_TERMINAL_TOKEN"], "compose refuses without a token"


def test_the_containerfile_has_defaults_but_neither_alias_nor_token() -> None:
    text = (CONTAINER / "Containerfile").read_text()
    environment = "\n".join(line for line in text.splitlines() if "=" in line and not line.startswith("#"))
    assert "PM_RUNNING_IN_CONTAINER=true" in environment and "HOST_PORT=45459" in environment
    assert "HOST_ALIAS" not in environment and "TOKEN=" not in environment
