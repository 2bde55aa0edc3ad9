"""Which adapter is used: precedence, auto order, discovery and the inputs of the container bridge, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wsh.contract.adapters.discover import DesktopCandidate, discover
from wsh.contract.adapters.inputs import BridgeInputs, read_bridge_inputs
from wsh.contract.adapters.mode import Resolved, resolve_mode
from wsh.contract.reply.fault import ContractFault

CONTAINER = {"PM_RUNNING_IN_CONTAINER": "true"}
TOKEN = {"PM_INTERACTIVE_TERMINAL_TOKEN": "t0ken"}

PRECEDENCE: list[tuple[str | None, dict[str, str], str, str]] = [
    # 1. the request
    ("local", {}, "local", "request"),
    ("bundled", {}, "bundled", "request"),
    ("container_bridge", {}, "container_bridge", "request"),
    ("auto", {}, "local_or_bundled_auto", "request"),
    ("local", {"PM_TERM_ADAPTER_MODE": "bundled"}, "local", "request"),
    ("local", {"PM_TERM_ADAPTER_MODE": "bundled", **CONTAINER}, "local", "request"),
    ("auto", {"PM_TERM_ADAPTER_MODE": "bundled"}, "local_or_bundled_auto", "request"),
    ("auto", CONTAINER, "container_bridge", "request"),
    # 2. the configuration
    (None, {"PM_TERM_ADAPTER_MODE": "local"}, "local", "configuration"),
    (None, {"PM_TERM_ADAPTER_MODE": "bundled", **CONTAINER}, "bundled", "configuration"),
    (None, {"PM_TERM_ADAPTER_MODE": "container_bridge"}, "container_bridge", "configuration"),
    (None, {"PM_TERM_ADAPTER_MODE": "auto"}, "local_or_bundled_auto", "configuration"),
    (None, {"PM_TERM_ADAPTER_MODE": "auto", **CONTAINER}, "container_bridge", "configuration"),
    # 3. the container signal
    (None, CONTAINER, "container_bridge", "container"),
    (None, {"PM_RUNNING_IN_CONTAINER": "1"}, "container_bridge", "container"),
    # 4. the default
    (None, {}, "local_or_bundled_auto", "default"),
    (None, {"PM_RUNNING_IN_CONTAINER": "false"}, "local_or_bundled_auto", "default"),
    (None, {"PM_RUNNING_IN_CONTAINER": "", "PM_TERM_ADAPTER_MODE": ""}, "local_or_bundled_auto", "default"),
]


@pytest.mark.parametrize(("override", "environ", "mode", "source"), PRECEDENCE)
def test_the_request_beats_the_configuration_beats_the_container_beats_the_default(
    override: str | None, environ: dict[str, str], mode: Any, source: Any
) -> None:
    assert resolve_mode(override, environ) == Resolved(mode, source)


@pytest.mark.parametrize("value", ["remote", "LOCAL", "container", "auto,local"])
def test_an_unknown_override_is_an_invalid_payload_wherever_it_comes_from(value: str) -> None:
    for override, environ in ((value, {}), (None, {"PM_TERM_ADAPTER_MODE": value})):
        with pytest.raises(ContractFault) as caught:
            resolve_mode(override, environ)
        assert caught.value.code == "PM_TERM_INVALID_PAYLOAD"


def test_a_container_signal_that_is_neither_yes_nor_no_is_an_invalid_mode() -> None:
    with pytest.raises(ContractFault) as caught:
        resolve_mode(None, {"PM_RUNNING_IN_CONTAINER": "maybe"})
    assert caught.value.code == "PM_TERM_INVALID_MODE"


# discovery


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    made = {}
    for name in ("configured", "bundled", "path"):
        folder = tmp_path / name
        folder.mkdir()
        program = folder / "interactive-terminal"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        made[name] = str(program)
    return made


def find(mode: Any, programs: dict[str, str], without: tuple[str, ...] = (), **more: Any) -> list[DesktopCandidate]:
    environ = {} if "configured" in without else {"PM_INTERACTIVE_TERMINAL_BINARY": programs["configured"]}
    return discover(
        mode,
        more.get("environ", environ),
        binary_path=more.get("binary_path"),
        listed_binaries=more.get("listed", ()),
        bundled_path=None if "bundled" in without else programs["bundled"],
        search_path="/nowhere" if "path" in without else str(Path(programs["path"]).parent),
    )


@pytest.mark.parametrize(
    ("mode", "order"),
    [
        ("local", ["configured", "path"]),
        ("bundled", ["bundled"]),
        ("local_or_bundled_auto", ["configured", "bundled", "path"]),
    ],
)
def test_programs_are_looked_for_in_strict_order(mode: str, order: list[str], programs: dict[str, str]) -> None:
    found = find(mode, programs)
    assert [(candidate.source, candidate.path) for candidate in found] == [(name, programs[name]) for name in order]
    assert all(candidate.problem is None for candidate in found)


def test_what_is_missing_stays_in_the_list_with_why(programs: dict[str, str]) -> None:
    found = find("local_or_bundled_auto", programs, ("configured", "bundled", "path"))
    assert [(candidate.source, candidate.problem) for candidate in found] == [
        ("bundled", "not found"),
        ("path", "not found"),
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/no/such/program", "does not exist"), ("/etc/passwd", "is not executable"), ("/usr", "is not a file")],
)
def test_a_configured_program_must_exist_and_be_executable(path: str, problem: str, programs: dict[str, str]) -> None:
    found = find("local", programs, environ={"PM_INTERACTIVE_TERMINAL_BINARY": path})
    assert found[0] == DesktopCandidate("configured", path, problem)


@pytest.mark.parametrize("path", ["interactive-terminal", "./x", "bin/x", "~/x"])
def test_a_relative_configured_path_is_an_invalid_payload(path: str, programs: dict[str, str]) -> None:
    for more in ({"environ": {"PM_INTERACTIVE_TERMINAL_BINARY": path}}, {"binary_path": path, "listed": (path,)}):
        with pytest.raises(ContractFault) as caught:
            find("local", programs, **more)
        assert caught.value.code == "PM_TERM_INVALID_PAYLOAD"
        assert caught.value.details["reason"] == "relative_binary_path"


def test_a_binary_that_the_request_brings_must_have_been_listed(programs: dict[str, str]) -> None:
    with pytest.raises(ContractFault) as caught:
        find("local", programs, binary_path=programs["path"])
    assert caught.value.code == "PM_TERM_INVALID_PAYLOAD" and caught.value.details["reason"] == "binary_not_listed"
    assert find("local", programs, binary_path=programs["path"], listed=(programs["path"],))[0].path == programs["path"]
    assert find("local", programs, binary_path=programs["configured"])[0].path == programs["configured"]


# the container's inputs


def test_the_bridge_has_the_defaults_of_the_contract() -> None:
    inputs = read_bridge_inputs(TOKEN)
    assert inputs == BridgeInputs(
        token="t0ken",
        aliases=("host.containers.internal", "host.docker.internal"),
        port=45459,
        connect_timeout_ms=3000,
        request_timeout_ms=30000,
        trace=False,
    )
    assert "t0ken" not in repr(inputs)


def test_every_input_of_the_bridge_can_be_overridden() -> None:
    inputs = read_bridge_inputs(
        {
            **TOKEN,
            "PM_INTERACTIVE_TERMINAL_HOST_ALIAS": "desk.local",
            "PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS": "10.0.2.2",
            "PM_INTERACTIVE_TERMINAL_HOST_PORT": "5000",
            "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "1500",
            "PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS": "9000",
            "PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE": "1",
        }
    )
    assert inputs == BridgeInputs("t0ken", ("desk.local", "10.0.2.2"), 5000, 1500, 9000, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST_PORT", "0"),
        ("HOST_PORT", "65536"),
        ("HOST_PORT", "http"),
        ("HOST_PORT", "-1"),
        ("HOST_PORT", "45459.0"),
        ("HOST_PORT", "9" * 50),
        ("CONNECT_TIMEOUT_MS", "soon"),
        ("CONNECT_TIMEOUT_MS", "0"),
        ("REQUEST_TIMEOUT_MS", "-5"),
        ("HOST_ALIAS", "two hosts"),
        ("HOST_ALIAS", "host:45459"),
        ("HOST_ALIAS", "-x"),
        ("HOST_FALLBACK_ALIAS", "http://host"),
        ("TRACE_BRIDGE", "loud"),
    ],
)
def test_a_malformed_input_is_an_invalid_mode_that_names_it(name: str, value: str) -> None:
    with pytest.raises(ContractFault) as caught:
        read_bridge_inputs({**TOKEN, f"PM_INTERACTIVE_TERMINAL_{name}": value})
    assert caught.value.code == "PM_TERM_INVALID_MODE"
    assert [entry["name"] for entry in caught.value.details["malformed"]] == [f"PM_INTERACTIVE_TERMINAL_{name}"]


@pytest.mark.parametrize("environ", [{}, {"PM_INTERACTIVE_TERMINAL_TOKEN": ""}, {"PM_INTERACTIVE_TERMINAL_TOKEN": " "}])
def test_a_missing_token_is_an_invalid_mode(environ: dict[str, str]) -> None:
    with pytest.raises(ContractFault) as caught:
        read_bridge_inputs(environ)
    assert caught.value.code == "PM_TERM_INVALID_MODE"
    assert caught.value.details["missing"] == ["PM_INTERACTIVE_TERMINAL_TOKEN"]
