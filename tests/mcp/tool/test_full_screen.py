"""vim, less and htop themselves: `execute_command` says at once that they want a terminal, and the lean tools drive them in one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server

# A deadline that no test outlasts: whoever waits for it hangs.
NEVER_MS = 3_600_000


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioHost]:
    folder = tmp_path_factory.mktemp("screen")
    (folder / "server").mkdir()
    (folder / "text").write_text("".join(f"line {n}\n" for n in range(500)))
    with (
        live_server(folder / "server"),
        StdioHost(args=["--toolsets", "lean,exec"], cwd=str(folder), env={"ALLOWED_COMMANDS": "*"}) as host,
    ):
        host.initialize()
        yield host


def _call(host: StdioHost, tool: str, **arguments: Any) -> tuple[bool, str]:
    result = host.call(tool, arguments, timeout=120)["result"]
    return bool(result.get("isError")), str(result["content"][0]["text"])


NOTE = "does not support interactive commands"
WHERE = "Run it with run, and drive it with type"


@pytest.mark.parametrize("command", ["vim text", "vim", "nano text", "htop", "watch ls", "top", "tmux"])
def test_a_program_that_wants_a_terminal_is_answered_before_its_deadline(host: StdioHost, command: str) -> None:
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    failed, text = _call(host, "execute_command", command=command, timeout_ms=NEVER_MS)
    if program in ("top", "tmux"):  # they end by themselves, and say why
        assert not failed and "exit_code: 1" in text
    else:
        assert NOTE in text and WHERE in text
    assert "timeout" not in text.casefold()


def test_a_pager_without_a_terminal_is_a_plain_result(host: StdioHost) -> None:
    if shutil.which("less") is None:
        pytest.skip("less is not here")
    failed, text = _call(host, "execute_command", command="less text", timeout_ms=NEVER_MS)
    assert not failed and "line 499" in text and NOTE not in text


@pytest.mark.parametrize(
    ("command", "keys", "drawn"),
    [
        ("vim text", "escape : q ! enter", "line 1"),
        ("less text", "q", "line 1"),
        ("htop", "q", "CPU"),
        ("nano text", "ctrl+x", "line 1"),
    ],
)
def test_run_shows_its_screen_long_before_the_deadline_and_type_ends_it(
    host: StdioHost, command: str, keys: str, drawn: str
) -> None:
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    failed, text = _call(host, "run", command=command, timeout_ms=300_000)
    assert not failed and "full-screen program" in text and "still running" not in text, text
    failed, text = _call(host, "type", keys=keys)
    assert not failed, text
    _, text = _call(host, "run", command="echo back at $((40 + 2))")
    assert "back at 42" in text and "[exit 0" in text, text
