"""A decision is quick, whatever it is given."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import pytest

from wsh.policy import Mode, Policy, Request, decide, default_policy
from wsh.policy.hygiene import MAX_COMMAND_BYTES
from wsh.policy.policy import allow_rules

EVERYTHING = Policy(rules=allow_rules(["*"], Mode.HEADLESS))
# Pieces that make shells, grammars or regular expressions sweat when they are repeated.
PIECES = (
    "ls;", "(", "$(", "{ ", "a ", "'", "<<a ", "`", '"$(', "a[", "if ", "a|", "a&&", "${a:-", "$((", "[[ ", "case x in ", "a\\ ", "a(){ ", "a=(", "a\n", "{a,",
    "<(", "! ", "a=b ", "<<a\n", "><", "sh -c '", "eval ", "env ", "xargs ", "rm x;", "find . -exec ", "$a", "~ ", "* ", "\\", '"', "git push ", "for i in a b; do ",
    "é", "mysql -e '/*", "mysql -e 'alter ", "python -c 'open(", "awk '\"", "x=y; $x ", "$'", "a<b ", "a>b ", "0<&1 ", "sed 's/", "()", "f(){ f|", "--a=",
    "'a\n'", "cat<<a\nb\na\n", "))(", "><a=(", "a;()", "a;${", "a[case x in ", "))a[", "\u202e", "日本 ", "-e ", "A=1 ", "\t", "a#b", "!x ", "))", "))\"",
)  # fmt: skip


def cpu_ms(command: str) -> float:
    """The best of three, in processor time: the machine may be busy with other tests."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        decide(Request(command=command), EVERYTHING)
        best = min(best, (time.process_time() - began) * 1000)
        if best < 25:
            break
    return best


def test_half_of_all_decisions_take_less_than_a_millisecond() -> None:
    commands = [
        json.loads(line)["command"] for line in (Path(__file__).parent / "corpus.jsonl").read_text().splitlines()
    ]
    policy = default_policy()
    took = []
    for command in commands:
        began = time.process_time()
        decide(Request(command=command), policy)
        took.append((time.process_time() - began) * 1000)
    assert statistics.median(took) < 1


@pytest.mark.parametrize("piece", PIECES)
def test_64_kib_of_anything_take_less_than_50_ms(piece: str) -> None:
    whole = piece * (MAX_COMMAND_BYTES // len(piece.encode()))
    for size in (MAX_COMMAND_BYTES, 8000, 2000, 800):
        assert cpu_ms(whole[:size]) < 50, size


def test_a_long_literal_text_is_understood_and_quick() -> None:
    code = "print([x for x in (1, 2, 3) if x > 1]); " * 1500
    verdict = decide(Request(command=f"python3 -c '{code}'"), EVERYTHING)
    assert verdict.argv == (("python3", "-c", code),)
    assert cpu_ms(f"python3 -c '{code}'") < 50
    written = decide(Request(command=f"cat > a.py <<'EOF'\n{code}\nrm -rf /\nEOF\n", mode=Mode.INTERACTIVE), EVERYTHING)
    assert written.risk == "destructive" and "overwrites" in written.message
    run = decide(Request(command=f"bash <<'EOF'\n{'true; ' * 60}\nrm -rf /\nEOF\n", mode=Mode.INTERACTIVE), EVERYTHING)
    assert run.risk == "irrecoverable"


# Inside quotes the shell's grammar sees one word; what a model makes of that word must be bounded too.
QUOTED = (
    "[", "\n", " ", ";\t", "$a$ ", "a|update x /*", "alter ", "update x as ", "drop a ", '""', "`{ ", "\\! a\n", "/*a", "open(", 'system("', "run [", "w ", "> \"",
)  # fmt: skip
PROGRAMS = ("mysql -e", "psql -c", "python3 -c", "ruby -e", "awk", "sed", "bash -c", "mongosh --eval")


@pytest.mark.parametrize("piece", QUOTED)
def test_64_kib_in_quotes_take_less_than_50_ms(piece: str) -> None:
    for program in PROGRAMS:
        room = MAX_COMMAND_BYTES - len(program) - 3
        assert cpu_ms(f"{program} '{piece * (room // len(piece))}'") < 50, program


# A word and then nothing but blanks: where runs of blanks meet in an expression, time grows with a power of their number.
BEFORE_BLANKS = (
    "", "while 1", "run", "system (", "os", "open", "drop", "delete", "update x", "alter x", "e", "1w", "f()f|", "fork", "loop", "shutil", "|", ">", "to program", "x=1; run [",
)  # fmt: skip


@pytest.mark.parametrize("word", BEFORE_BLANKS)
def test_a_word_and_64_kib_of_blanks_take_less_than_50_ms(word: str) -> None:
    for program in PROGRAMS:
        for blank in (" ", "\n", "\t ", " \n"):
            times = (MAX_COMMAND_BYTES - len(program) - len(word) - 3) // len(blank)
            assert cpu_ms(f"{program} '{word}{blank * times}'") < 50, (program, blank)


@pytest.mark.parametrize(
    "command", ["git -c 'tool.{}=x' log", "parallel 'a{{{}' ::: b", "rm '{}'", "ssh -o 'ProxyCommand{} a' h"]
)
def test_a_long_word_that_a_model_takes_apart_takes_less_than_50_ms(command: str) -> None:
    for filling in ("tool.", "{", " ", "\n", "x", "/"):
        assert cpu_ms(command.format(filling * (65_000 // len(filling)))) < 50, filling


@pytest.mark.parametrize(
    "segment", ["a b c d e (", "python3 -c '`a`';", "bwrap --bind a b ", "psql -c 'a';", "su -c 'a';", "bash +x "]
)
def test_many_commands_in_64_kib_take_less_than_50_ms(segment: str) -> None:
    for size in (MAX_COMMAND_BYTES, 20_000, 5_500):
        assert cpu_ms(segment * (size // len(segment))) < 50, size


def test_code_that_starts_too_many_commands_is_destructive_and_still_asked() -> None:
    code = "`ls`; " * 100
    verdict = decide(Request(command=f"ruby -e '{code}'", mode=Mode.INTERACTIVE), EVERYTHING)
    assert verdict.risk == "destructive" and "more commands than can be looked at" in verdict.message


def test_beyond_64_kib_nothing_is_tried() -> None:
    verdict = decide(Request(command="ls " + "x" * MAX_COMMAND_BYTES), EVERYTHING)
    assert verdict.reason == "parse_error" and "longer" in verdict.message
