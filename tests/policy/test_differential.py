"""What a model allows is run for real under strace: no write, no other program, no connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.support.policy.arguments import argument_lists, programs
from tests.support.policy.hostile import Traps, build, settings, template
from tests.support.policy.traced import NOBODY, Case, Deed, can_trace, named, trace
from wsh.git.guard import Unguarded, guard, index_query, query
from wsh.policy.execute.launch import minimal_environment
from wsh.policy.harmless import PROGRAMS

SAMPLE, CAMPAIGN = 6, 1400
"""Argument lists for each program; git gets ten times as many."""
_TRIES = 60
_INDEX_REFRESH = ("/.git/index.lock", "/.git/index")


@pytest.fixture(scope="module", autouse=True)
def _tracing() -> None:
    reason = can_trace()
    if reason is not None:
        pytest.skip(reason)


class Scratch:
    """A folder for the commands to read: files for most, a hostile repository for git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plain = root / "plain"
        self.plain.mkdir()
        for name, text in (("in", "b\na\na\n1 2\n"), ("in2", "a\nc\n"), ("in.json", '{"a": [1, 2]}\n'), ("empty", "")):
            (self.plain / name).write_text(text)
        (self.plain / "folder/deep").mkdir(parents=True)
        (self.plain / "folder/deep/in").write_text("a\n")
        self.traps = Traps(root / "traps")
        made = template(root / "made")
        self.repository = build(made, root / "work", "both-submodules", settings(self.traps, "own")).cwd
        config = self.repository / ".git/config"
        config.write_bytes(config.read_bytes() + settings(self.traps, "own"))
        for name in ("in", "in2"):
            (self.repository / name).write_text("a\n")
        for folder, _, files in os.walk(root):
            os.chmod(folder, 0o755)
            if os.getuid() == 0:
                for name in (folder, *(os.path.join(folder, file) for file in files)):
                    os.chown(name, NOBODY, NOBODY, follow_symlinks=False)
        self.env = minimal_environment({"PATH": os.environ["PATH"], "HOME": str(self.plain)}, {})
        self.settings = self._ask(query(("git",)), b"")
        self.index = self._ask(index_query(("git", "describe", "--dirty")) or (), self.settings)

    def _ask(self, question: tuple[str, ...], configured: bytes) -> bytes:
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        guarded = guard(question, configured)
        asked = subprocess.run(
            guarded.argv, cwd=self.repository, env={**self.env, **guarded.env}, capture_output=True, check=True, **who
        )  # type: ignore[call-overload]
        answer: bytes = asked.stdout
        return answer

    def case(self, argv: tuple[str, ...]) -> Case | None:
        path = shutil.which(argv[0])
        assert path is not None
        if argv[0] != "git":
            return Case(argv, path, str(self.plain), self.env)
        try:
            guarded = guard(argv, self.settings, self.index)
        except Unguarded:
            return None
        return Case(guarded.argv, path, str(self.repository), {**self.env, **guarded.env})


@pytest.fixture(scope="module")
def scratch() -> Iterator[Scratch]:
    root = Path(tempfile.mkdtemp(prefix="wsh-models-"))
    try:
        yield Scratch(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def pardon(case: Case, name: str, rest: str) -> bool:
    """What is no deed of the arguments."""
    if case.argv[0] == "git":
        # git starts itself, and what stands in place of a converter or of gpg; diff and describe refresh the index.
        if name == "execve":
            return named(rest).rpartition("/")[2] in ("git", "cat", "false")
        return named(rest).endswith(_INDEX_REFRESH) and name in ("openat", "rename", "unlink")
    # Which name this machine has is asked of the servers that /etc/resolv.conf names.
    return case.argv[0] == "hostname" and "htons(53)" in rest


def allowed(program: str, count: int, seed: int) -> list[tuple[str, ...]]:
    """Up to `count` different argument lists that the model lets through."""
    judge = PROGRAMS[program]
    found: dict[tuple[str, ...], None] = {}
    for arguments in islice(argument_lists(program, seed), count * _TRIES):
        if judge(arguments) is None:
            found[program, *arguments] = None
            if len(found) >= count:
                break
    return list(found)


def test_the_trace_sees_what_is_done(scratch: Scratch, tmp_path: Path) -> None:
    bad = [
        ("xxd", "-ps", "in", "out"), ("uniq", "in", "out"), ("sort", "-o", "out", "in"), ("tee", "out"), ("rm", "in"), ("mkdir", "x"), ("touch", "in"),
        ("chmod", "600", "in"), ("ln", "in", "x"), ("mv", "in", "x"), ("truncate", "-s0", "in"), ("env", "true"), ("find", ".", "-exec", "true", ";"),
        ("sed", "w out", "in"), ("sed", "-i", "p", "in"), ("dd", "if=in", "of=out"), ("date", "-s", "2020-01-01"), ("hostname", "x"),
    ]  # fmt: skip
    good = [
        ("ls", "-la"),
        ("cat", "in"),
        ("grep", "a", "in"),
        ("git", "status"),
        ("git", "log", "-p"),
        ("date", "-Iseconds"),
        ("sort", "in"),
    ]
    here = [argv for argv in (*bad, *good) if shutil.which(argv[0])]
    cases = [case for argv in here if (case := scratch.case(argv)) is not None]
    caught = {deed.argv for deed in trace(cases, tmp_path, pardon)}
    assert caught == {argv for argv in bad if argv in here}


@pytest.mark.torture
@pytest.mark.parametrize("program", programs())
def test_what_a_model_allows_only_reads(scratch: Scratch, tmp_path: Path, program: str, torture: bool) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    count = (CAMPAIGN if torture else SAMPLE) * (10 if program == "git" else 1)
    found = allowed(program, count, seed=int(os.environ.get("WSH_TEST_SEED", "1")))
    cases = [case for argv in found if (case := scratch.case(argv)) is not None]
    assert cases
    deeds: list[Deed] = trace(cases, tmp_path, pardon)
    print(f"{program}: {len(cases)} argument lists")
    assert deeds == []
    assert scratch.traps.sprung() == []
