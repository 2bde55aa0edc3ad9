"""How the words of a command are read, and what a command line may import on its way to the server."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support.warm import run_warm
from wsh.cli.declare import Argument, CliCommand, HelpWanted, Option, WrongUse, command, group
from wsh.cli.main import NAMES, load_command


@command(
    "try",
    Option("--name", "-n"),
    Option("--count", kind=int, default=1),
    Option("--tag", key="tags", multiple=True),
    Option("--loud", "-l", kind=bool),
    Option("--quick", "-q", kind=bool),
    Option("--size", choices=("small", "large")),
    Option("-F", "--literal", key="match", constant="literal"),
    Argument("session"),
    Argument("words", rest=True, required=False),
)
def try_(**values: object) -> None:
    """Read."""


NOTHING = {"name": None, "count": 1, "tags": (), "loud": False, "quick": False, "size": None, "match": None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["s"], {"session": "s", "words": ()}),
        (["-lq", "s"], {"loud": True, "quick": True, "session": "s", "words": ()}),
        (["-lnx", "s"], {"loud": True, "name": "x", "session": "s", "words": ()}),
        (["--name=a=b", "--count", "-3", "s"], {"name": "a=b", "count": -3, "session": "s", "words": ()}),
        (["--tag", "a", "s", "--tag=b"], {"tags": ("a", "b"), "session": "s", "words": ()}),
        (["s", "ls", "--loud", "--", "-x"], {"session": "s", "words": ("ls", "--loud", "--", "-x")}),
        (["s", "--", "--loud"], {"session": "s", "words": ("--loud",)}),
        (["--", "-s"], {"session": "-s", "words": ()}),
        (["-F", "s", "-"], {"match": "literal", "session": "s", "words": ("-",)}),
    ],
)
def test_words_become_values(words: list[str], expected: dict[str, Any]) -> None:
    assert try_.parse(words) == (try_, NOTHING | expected)


def test_a_reader_that_has_gone_away_ends_a_command_without_a_word() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        for words in (["--help"], ["--version"], ["run", "--help"]):
            command = [sys.executable, "-P", "-m", "wsh.cli.main", *words]
            done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60)
            assert (done.returncode, done.stderr) == (1, b"")
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "SESSION is missing"),
        (["--nam", "x", "s"], "There is no option --nam. Did you mean --name?"),
        (["--file-name", "x", "s"], "There is no option --file-name. Did you mean --name?"),
        (["-z", "s"], "There is no option -z"),
        (["-lz", "s"], "There is no option -z"),
        (["--count", "many", "s"], "--count takes a whole number, not 'many'"),
        (["s", "--name"], "--name needs a value"),
        (["--loud=yes", "s"], "--loud takes no value"),
        (["--size", "larg", "s"], "Did you mean large?"),
    ],
)
def test_what_does_not_fit_is_said_with_what_would(words: list[str], said: str) -> None:
    with pytest.raises(WrongUse, match=said.replace("?", r"\?")):
        try_.parse(words)


def test_a_group_finds_its_command_and_suggests_one() -> None:
    @group("things")
    def things() -> None:
        """Things."""

    @things.command("show", Argument("name"))
    def show(name: str) -> None:
        """Show one."""

    assert things.parse(["show", "x"]) == (show, {"name": "x"})
    assert show.path == "wsh things show"
    with pytest.raises(WrongUse, match="Did you mean show"):
        things.parse(["shwo"])
    with pytest.raises(HelpWanted):
        things.parse([])


def _leaves(found: CliCommand) -> list[CliCommand]:
    return [found, *found.commands.values()]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_for_each_of_its_words(name: str) -> None:
    for one in _leaves(load_command(name)):
        assert one.help.strip(), one.path
        done = run_warm([sys.executable, "-m", "wsh.cli.main", *one.path.split()[1:], "--help"], text=True)
        assert done.returncode == 0 and done.stdout.startswith(f"Usage: {one.path}"), done
        assert [option for option in one.options if max(option.names, key=len) not in done.stdout] == []


# What would cost a short command as much as the interpreter's own start, or more.
HEAVY = {"click", "asyncio", "dataclasses", "inspect", "typing", "pathlib", "rich", "pydantic", "http", "urllib", "ssl"}
ASKING = [
    ["list"], ["screen", "x"], ["scrollback", "x"], ["send", "x", "y"], ["keys", "x", "enter"], ["run", "x", "ls"],
    ["wait", "x"], ["new"], ["resize", "x", "2", "2"], ["rename", "x", "y"], ["tag", "x"], ["kill", "x"], ["detach", "x"],
    ["link"], ["status"], ["search", "x"], ["index", "status"], ["export", "x"],
]  # fmt: skip


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_command_imports_nothing_heavy_before_it_asks_the_server(words: list[str]) -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "from wsh.cli.main import load_command\n"
        "import wsh.cli.request\n"
        "load_command(sys.argv[1]).parse(sys.argv[2:])\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script, *words], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()
