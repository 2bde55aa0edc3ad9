"""What is written down of a command names the variables that it sets, and what it runs, and no value."""

from __future__ import annotations

import random

import pytest

from wsh.approval.escape import escape_argument
from wsh.policy.variable import hide_argv_values, hide_values

SECRET = "hunter2!"


@pytest.mark.parametrize(
    "line",
    [
        "TOKEN=X make $Y",
        "env -i TOKEN=X make $Y",
        "env -u A TOKEN=X make",
        "sudo -u bob TOKEN=X make",
        "timeout 5 /usr/bin/env TOKEN=X make",
        "env -S 'TOKEN=X make'",
        "declare -x TOKEN=X; make",
        "readonly A=1 TOKEN=X",
        "export TOKEN+=X",
        "A[0]=X make",
        "if true; then TOKEN=X make; fi",
        "{ ! time TOKEN=X make; }",
        "(TOKEN=X make) | cat",
        "TOKEN=$(echo X) make",
        'TOKEN="a \\" X" make',
        "TOKEN='a X",
        "echo `TOKEN=X make` $(TOKEN=X make)",
        "bash -ec 'set -x\nTOKEN=X make' $Y",
        "docker run -e TOKEN=X --env=TOKEN=X image",
    ],
)
def test_the_value_is_left_out_of_lines_and_words(line: str) -> None:
    line = line.replace("X", SECRET)
    assert SECRET not in hide_values(line) and "[...]" in hide_values(line)
    for word in (line, escape_argument(line)):
        assert SECRET not in hide_argv_values([word])[0]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["env", "-i", "TOKEN=a b", "make", "A=1"], "env -i TOKEN=[...] make A=1"),
        (["timeout", "5", "env", "TOKEN=x", "make"], "timeout 5 env TOKEN=[...] make"),
        (["sh", "-c", "TOKEN='a b' make; B=1 x"], "sh -c TOKEN=[...] make; B=[...] x"),
        (["sudo", "dd", "if=/dev/zero", "of=/dev/sda"], "sudo dd if=/dev/zero of=/dev/sda"),
        (["docker", "run", "-e", "TOKEN=x", "image"], "docker run -e TOKEN=[...] image"),
    ],
)
def test_what_runs_stays(argv: list[str], shown: str) -> None:
    assert " ".join(hide_argv_values(argv)) == shown
    spelt = hide_argv_values([escape_argument(word) for word in argv])
    assert "a b" not in " ".join(spelt) and len(spelt) == len(argv)


@pytest.mark.parametrize(
    "line",
    ["dd if=/dev/zero of=x", "sudo dd if=/dev/zero of=x", "make X=1", "git commit -m 'A=1 is set'", "sed -e s=a=b= f"],
)
def test_what_sets_no_variable_is_told_whole(line: str) -> None:
    assert hide_values(line) == line


def test_any_text_is_taken() -> None:
    dice = random.Random(1)
    pieces = [
        "A=",
        "b",
        " ",
        "'",
        '"',
        "$(",
        ")",
        "`",
        ";",
        "env ",
        "sudo ",
        "-u ",
        "export ",
        "\\",
        "\n",
        "$'",
        "=",
        "sh -c ",
    ]
    for _ in range(2000):
        text = "".join(dice.choice(pieces) for _ in range(dice.randint(1, 60)))
        hide_values(text)
        hide_argv_values(text.split(" "))
        hide_argv_values([text])
