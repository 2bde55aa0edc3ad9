"""A decision takes time in proportion to what it is given, whatever that is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from wsh.policy import Mode, Policy, PolicyRequest, Reason, decide
from wsh.policy.parse.hygiene import MAX_COMMAND_BYTES
from wsh.policy.policy import allow_rules

NOTHING_MS = 10.0
"""Of what takes less than this, nobody needs to know how it grows."""
EVERYTHING = Policy(rules=allow_rules(["*"], Mode.HEADLESS))
# Pieces that make shells, grammars or regular expressions sweat when they are repeated.
PIECES = (
    "ls;", "(", "$(", "{ ", "a ", "'", "<<a ", "`", '"$(', "a[", "if ", "a|", "a&&", "${a:-", "$((", "[[ ", "case x in ", "a\\ ", "a(){ ", "a=(", "a\n", "{a,",
    "<(", "! ", "a=b ", "<<a\n", "><", "sh -c '", "eval ", "env ", "xargs ", "rm x;", "find . -exec ", "$a", "~ ", "* ", "\\", '"', "git push ", "for i in a b; do ",
    "é", "mysql -e '/*", "mysql -e 'alter ", "python -c 'open(", "awk '\"", "x=y; $x ", "$'", "a<b ", "a>b ", "0<&1 ", "sed 's/", "()", "f(){ f|", "--a=",
    "'a\n'", "cat<<a\nb\na\n", "))(", "><a=(", "a;()", "a;${", "a[case x in ", "))a[", "\u202e", "日本 ", "-e ", "A=1 ", "\t", "a#b", "!x ", "))", "))\"",
)  # fmt: skip


def cpu_ms(command: str, times: int) -> float:
    """The best of so many, in processor time of this thread: the machine may be busy with other things."""
    best = float("inf")
    for _ in range(times):
        began = time.thread_time()
        decide(PolicyRequest(command=command), EVERYTHING)
        best = min(best, (time.thread_time() - began) * 1000)
    return best


def assert_grows_with_length(make: Callable[[int], str], what: object = "") -> None:
    """Eight times the text may take some eight times as long, not sixty-four. How long that is, `make bench` tells."""
    long = cpu_ms(make(MAX_COMMAND_BYTES), 1)
    if long < NOTHING_MS:
        return
    short = cpu_ms(make(MAX_COMMAND_BYTES // 8), 1)
    # One look at the long text is enough where it passes; a moment on a busy processor is looked at again.
    if long < short * 24 or cpu_ms(make(MAX_COMMAND_BYTES), 9) < cpu_ms(make(MAX_COMMAND_BYTES // 8), 9) * 24:
        return
    raise AssertionError(f"{what}: {short:.1f} ms for 8 KiB, {long:.1f} ms for 64 KiB")


def fill(piece: str, size: int) -> str:
    return piece * (size // len(piece.encode()))


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_for_anything_grows_with_its_length(piece: str) -> None:
    assert_grows_with_length(lambda size: fill(piece, size))


def test_a_long_literal_text_is_understood() -> None:
    code = "print([x for x in (1, 2, 3) if x > 1]); " * 1500
    verdict = decide(PolicyRequest(command=f"python3 -c '{code}'"), EVERYTHING)
    assert verdict.argv == (("python3", "-c", code),)
    assert_grows_with_length(lambda size: f"python3 -c '{code[: size - 20]}'")
    written = decide(
        PolicyRequest(command=f"cat > a.py <<'EOF'\n{code}\nrm -rf /\nEOF\n", mode=Mode.INTERACTIVE), EVERYTHING
    )
    assert written.risk == "destructive" and "overwrites" in written.message
    run = decide(
        PolicyRequest(command=f"bash <<'EOF'\n{'true; ' * 60}\nrm -rf /\nEOF\n", mode=Mode.INTERACTIVE), EVERYTHING
    )
    assert run.risk == "irrecoverable"


def nest(before: str, inside: str, after: str, depth: int) -> str:
    return before * depth + inside + after * depth


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (nest("for i in 1 2 3 4 5 6 7 8; do ", "a=1", "; done", 6), "too often"),
        (nest("for i in 1 2 3 4 5 6 7 8; do ", "", "; done", 5), "too often"),
        (
            " ".join(
                "eval 'for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8; do for k in 1 2 3 4 5 6 7 8; do a=1; done; done; done';"
                for _ in range(60)
            ),
            "too often",
        ),
        ("a=xxxxxxxx; " + "a=$a$a; " * 18 + "rm $a", "hold too much"),
        ("a=xxxxxxxx; " + 'a="$a$a"; ' * 18 + "rm x", "hold too much"),
        (f"a={'x' * 9_000}; rm {'$a ' * 60}", "hold too much"),
    ],
)
def test_what_grows_beyond_its_length_is_not_understood(command: str, what: str) -> None:
    for mode in Mode:
        verdict = decide(PolicyRequest(command=command, mode=mode), EVERYTHING)
        assert verdict.reason is Reason.PARSE_ERROR and what in verdict.message


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_default_within_a_default_is_looked_at_once(quote: str) -> None:
    def make(depth: int) -> str:
        return f"echo {quote}{nest('${a:-', 'x', '}', depth)}{quote}"

    assert cpu_ms(make(16), 3) < max(NOTHING_MS, cpu_ms(make(8), 3) * 24)
    verdict = decide(PolicyRequest(command=f"rm -rf {make(40)[5:]}", mode=Mode.INTERACTIVE), EVERYTHING)
    assert verdict.reason is Reason.DESTRUCTIVE


def test_every_value_of_a_loop_and_every_word_of_a_variable_is_looked_at() -> None:
    for values in ("a b c d e f g h /", " ".join(f"x{number}" for number in range(100)) + " /"):
        verdict = decide(PolicyRequest(command=f"for d in {values}; do rm -rf $d; done"), EVERYTHING)
        assert verdict.reason is Reason.IRRECOVERABLE
        verdict = decide(PolicyRequest(command=f"D='{values}'; rm -rf $D"), EVERYTHING)
        assert verdict.reason is Reason.IRRECOVERABLE
    many = " ".join(f"x{number}" for number in range(2000))
    verdict = decide(PolicyRequest(command=f"for d in {many}; do touch $d; done", mode=Mode.INTERACTIVE), EVERYTHING)
    assert verdict.reason is Reason.SHELL_SYNTAX


# Inside quotes the shell's grammar sees one word; what a model makes of that word must be bounded too.
QUOTED = (
    "[", "\n", " ", ";\t", "$a$ ", "a|update x /*", "alter ", "update x as ", "drop a ", '""', "`{ ", "\\! a\n", "/*a", "open(", 'system("', "run [", "w ", "> \"",
)  # fmt: skip
PROGRAMS = ("mysql -e", "psql -c", "python3 -c", "ruby -e", "awk", "sed", "bash -c", "mongosh --eval")


@pytest.mark.parametrize("piece", QUOTED)
def test_the_time_for_anything_in_quotes_grows_with_its_length(piece: str) -> None:
    for program in PROGRAMS:

        def make(size: int, program: str = program) -> str:
            return f"{program} '{fill(piece, size - len(program) - 3)}'"

        assert_grows_with_length(make, program)


# A word and then nothing but blanks: where runs of blanks meet in an expression, time grows with a power of their number.
BEFORE_BLANKS = (
    "", "while 1", "run", "system (", "os", "open", "drop", "delete", "update x", "alter x", "e", "1w", "f()f|", "fork", "loop", "shutil", "|", ">", "to program", "x=1; run [",
)  # fmt: skip


@pytest.mark.torture
@pytest.mark.parametrize("word", BEFORE_BLANKS)
def test_the_time_for_a_word_and_blanks_grows_with_their_number(word: str, torture: bool) -> None:
    for program, blank in itertools.product(PROGRAMS, (" ", "\n", "\t ", " \n") if torture else (" ", " \n")):

        def make(size: int, program: str = program, blank: str = blank) -> str:
            return f"{program} '{word}{fill(blank, size - len(program) - len(word) - 3)}'"

        assert_grows_with_length(make, (program, blank))


@pytest.mark.parametrize(
    "command",
    [
        "git -c 'tool.{}=x' log",
        "parallel 'a{{{}' ::: b",
        "rm '{}'",
        "ssh -o 'ProxyCommand{} a' h",
        "cat '-{}'",
        "grep -r x '{}'",
        "rg -g'{}' x",
    ],
)
def test_the_time_for_a_word_that_a_model_takes_apart_grows_with_its_length(command: str) -> None:
    for filling in ("tool.", "{", " ", "\n", "x", "/", "a/../"):

        def make(size: int, filling: str = filling) -> str:
            return command.format(fill(filling, size - 100))

        assert_grows_with_length(make, filling)


@pytest.mark.parametrize(
    "segment", ["a b c d e (", "python3 -c '`a`';", "bwrap --bind a b ", "psql -c 'a';", "su -c 'a';", "bash +x "]
)
def test_the_time_for_many_commands_grows_with_their_number(segment: str) -> None:
    assert_grows_with_length(lambda size: fill(segment, size))


def test_code_that_starts_too_many_commands_is_destructive_and_still_asked() -> None:
    code = "`ls`; " * 100
    verdict = decide(PolicyRequest(command=f"ruby -e '{code}'", mode=Mode.INTERACTIVE), EVERYTHING)
    assert verdict.risk == "destructive" and "more commands than can be looked at" in verdict.message


def test_beyond_64_kib_nothing_is_tried() -> None:
    verdict = decide(PolicyRequest(command="ls " + "x" * MAX_COMMAND_BYTES), EVERYTHING)
    assert verdict.reason == "parse_error" and "longer" in verdict.message
