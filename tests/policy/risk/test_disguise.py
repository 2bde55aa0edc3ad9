"""No destructive command gets through in disguise, and what the engine believes is what bash runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.policy.generator import Disguised, disguised, mixtures, spaced_mixtures
from tests.support.policy.sandbox import LAUNCHERS, RECORDED, Sandbox
from wsh.policy import Effect, Mode, Policy, PolicyRequest, Risk, decide
from wsh.policy.policy import allow_rules
from wsh.policy.risk.assess import CommandSetting, assess_argv

ALLOW = ["ls", "cat", "echo", "git status", "git log", "git diff", "grep", "rg", "find", "sort"]
NARROW = Policy(rules=allow_rules(ALLOW, Mode.HEADLESS) + allow_rules(ALLOW, Mode.INTERACTIVE))
EVERYTHING = Policy(rules=allow_rules(["*"], Mode.HEADLESS) + allow_rules(["*"], Mode.INTERACTIVE))
# They run in the shell itself, or run something else; no headless command can be one of them.
BUILTINS = frozenset(". : source eval exec command builtin cd set unset export".split())
SAMPLE, CAMPAIGN = 100, 50_000


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("sandbox")) as held:
        yield held


def many(torture: bool) -> settings:
    return settings(
        max_examples=CAMPAIGN if torture else SAMPLE,
        deadline=None,
        database=None,
        derandomize=not torture,
        suppress_health_check=list(HealthCheck),
    )


def not_run(line: str) -> None:
    """Headless it is denied, interactively it is asked at most, and it is called what it is."""
    for policy in (NARROW, EVERYTHING):
        for mode in Mode:
            verdict = decide(PolicyRequest(command=line, mode=mode), policy)
            assert verdict.effect is not Effect.ALLOW, (line, verdict)
            assert verdict.effect is Effect.DENY or mode is Mode.INTERACTIVE, (line, verdict)
    assert verdict.risk is not Risk.NONE, line


@pytest.mark.torture
def test_a_destructive_command_is_seen_through_every_disguise(sandbox: Sandbox, torture: bool) -> None:
    @many(torture)
    @given(disguised())
    def check(line: Disguised) -> None:
        not_run(line.text)
        ran = sandbox.run(line.text)
        # dash has a kill of its own, and a process substitution that nobody reads need not run.
        if sandbox.isolated and line.argv[0] != "kill" and "<(" not in line.text:
            # The generator is honest: bash does run the command, with these very arguments.
            assert line.argv in ran or any(words[0] == line.argv[0] for words in ran), (line, ran)

    check()


@pytest.mark.torture
def test_what_the_engine_believes_is_what_bash_runs(sandbox: Sandbox, torture: bool) -> None:
    @many(torture)
    @given(st.one_of(mixtures(), spaced_mixtures()))
    def check(line: str) -> None:
        verdict = decide(PolicyRequest(command=line), EVERYTHING)
        if not verdict.argv and verdict.effect is Effect.DENY and verdict.risk is not Risk.NONE:
            return
        if not sandbox.isolated and any(char in line for char in "/<>"):
            return
        ran = sandbox.run(line)
        if verdict.argv and not any(words[0] in BUILTINS for words in verdict.argv):
            believed = [words for words in predict(verdict.argv, verdict.operators) if words[0] in RECORDED]
            assert sorted(believed) == sorted(words for words in ran), (line, verdict, ran)
        for words in ran:
            real = assess_argv(words, CommandSetting()).risk
            assert verdict.risk.rank >= real.rank, (line, verdict, ran)

    check()


def predict(segments: tuple[tuple[str, ...], ...], operators: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What a shell runs when every known program succeeds and every unknown one fails."""
    ran: list[tuple[str, ...]] = []
    pipelines: list[list[tuple[str, ...]]] = [[segments[0]]]
    joints: list[str] = []
    for operator, segment in itertools.zip_longest(operators, segments[1:]):
        if segment is None:
            break
        if operator == "|":
            pipelines[-1].append(segment)
        else:
            pipelines.append([segment])
            joints.append(operator)
    succeeded = True
    for index, pipeline in enumerate(pipelines):
        joint = joints[index - 1] if index else ";"
        if joint == ";" or (joint == "&&") is succeeded:
            ran += [run for words in pipeline for run in expand(words)]
            succeeded = works(pipeline[-1])
    return ran


def works(words: tuple[str, ...]) -> bool:
    return words[0].rpartition("/")[2] in RECORDED


def expand(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    name = words[0].rpartition("/")[2]
    if words[0] not in (name, f"/bin/{name}", f"/usr/bin/{name}") or name in LAUNCHERS:
        return []
    return [(name, *words[1:])]
