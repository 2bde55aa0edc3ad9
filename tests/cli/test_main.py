"""What every command of `wsh` has in common: how it ends."""

from __future__ import annotations

import sys

import pytest

from tests.support.serving import RunningServer
from tests.support.warm import run_warm
from wsh.cli import main


def test_an_interrupt_at_a_question_ends_a_command_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", ask)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130 and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("closed", ["2>&-", "<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_command_works_where_its_caller_has_closed_a_stream(server: RunningServer, closed: str) -> None:
    assert server.request("POST", "/sessions", {"name": "seen", "command": "cat"}).status == 201
    done = run_warm(["sh", "-c", f"{sys.executable} -P -m wsh.cli.main list {closed}"], text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("seen" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))
