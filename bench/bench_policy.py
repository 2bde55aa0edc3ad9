"""What a decision costs: commands as agents send them, and the worst that 64 KiB can be."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench.row import Row, at_most, median, percentile
from wsh.policy import Mode, Policy, PolicyRequest, decide, default_policy
from wsh.policy.parse.hygiene import MAX_COMMAND_BYTES
from wsh.policy.policy import allow_rules

CORPUS = Path(__file__).parent.parent / "tests" / "policy" / "corpus.jsonl"
ROUNDS = 5
# Pieces that are dear to parse, to look through or to match when they fill the whole input.
PIECES = (
    "ls; ", "a ", "a|", "$(", "((", "{ ", "<<a\n", "'a' ", '"a" ', "a\\ ", "sh -c '", "sudo ", "env ", "xargs ", "eval ", "find . -exec ", "git -c a=b ",
    "rm x; ", "${a:-", "`", "if a; then ", "a=b ", "*", "é ", "a\n", "bash +x ", "su - a ", "mysql -e '/*", "sed -e s/a/b/ ", "python3 -c 'open(",
)  # fmt: skip


# In quotes the grammar sees one word; the models of programs still look into it.
PROGRAMS = ("mysql -e", "python3 -c", "ruby -e", "awk", "sed", "bash -c")
QUOTED = ("drop a ", "\n", "[", '""', "/*a", "alter ", "open(", "`a", "w ", "a;")


def run() -> list[Row]:
    usual = [json.loads(line)["command"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    usual = [command for command in usual if len(command) < 4096]
    policy = default_policy()
    took = [_time(PolicyRequest(command=command), policy) for _ in range(ROUNDS) for command in usual]
    everything = Policy(rules=allow_rules(["*"], Mode.HEADLESS))
    huge = _list_huge()
    worst, which = max((min(_time(request, everything) for _ in range(3)), title) for title, request in huge.items())
    return [
        at_most("policy", f"decision over {len(usual)} commands, p50", median(took), 1.0, "ms"),
        at_most("policy", f"decision over {len(usual)} commands, p99", percentile(took, 0.99), 10.0, "ms"),
        at_most("policy", f"worst of {len(huge)} inputs of 64 KiB", worst, 50.0, "ms", which),
    ]


def _list_huge() -> dict[str, PolicyRequest]:
    found: dict[str, PolicyRequest] = {}
    for piece in PIECES:
        times = MAX_COMMAND_BYTES // len(piece.encode())
        found[f"text of {piece.strip()!r}"] = PolicyRequest(command=piece * times)
        found[f"argv of {piece.strip()!r}"] = PolicyRequest(argv=("env", *(tuple(piece.split()) or ("a",)) * times))
    for program in PROGRAMS:
        for piece in QUOTED:
            times = (MAX_COMMAND_BYTES - len(program) - 3) // len(piece)
            found[f"{program} with {piece!r}"] = PolicyRequest(command=f"{program} '{piece * times}'")
    return found


def _time(request: PolicyRequest, policy: Policy) -> float:
    began = time.perf_counter()
    decide(request, policy)
    return (time.perf_counter() - began) * 1000
