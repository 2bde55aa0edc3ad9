"""policy.toml: what it says, what is wrong with it, how it changes while a server runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.waiting import HANG_S
from wsh.policy import Effect, Mode, Policy, PolicyRequest, Reason, RuleEffect, decide
from wsh.policy.file.document import PolicyError, parse_policy
from wsh.policy.file.edit import NewRule, add_rule, is_shipped, locked, remove_rules, set_value, write_policy
from wsh.policy.file.store import PolicyStore


def verdict_of(text: str, command: str, mode: Mode = Mode.HEADLESS, **more: object) -> Effect:
    request = PolicyRequest(command=command, mode=mode, **more)  # type: ignore[arg-type]  # facts named by the test
    return decide(request, parse_policy(text)).effect


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[headless]\nallow = ["ls",\n  "cat $x"]\n', 3, "an expansion"),
        ('[headless]\nallow = ["ls && pwd"]\n', 2, "several commands"),
        ('[headless]\nallow = [""]\n', 2, "no rule"),
        ("[headless]\nallow = 3\n", 2, "list of texts"),
        ("[headless]\nalow = []\n", 2, "no key 'alow'"),
        ("[other]\n", 1, "no section [other]"),
        ("headless = 3\n", 1, "must be a table"),
        ("[headless]\nlifetime_ms = -1\n", 2, "milliseconds"),
        ('\n[[rule]]\ncommand = "ls"\n', 2, "effect"),
        ('[[rule]]\neffect = "allow"\n', 1, "needs command"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\nmodes = ["x"]\n', 4, "modes must be"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\ncwd = "src"\n', 4, "absolute"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\nexpires = "soon"\n', 4, "expires"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\nwhy = "x"\n', 4, "no key 'why'"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\nmatch = ["ls -l",\n "cat x"]\n', 5, "does not match"),
        ('[[rule]]\neffect = "allow"\ncommand = "ls"\nnot_match = ["ls -l"]\n', 4, "matches"),
        (
            '[[rule]]\neffect = "deny"\ncommand = "git push"\nmatch = ["git -C x push"]\nnot_match = ["git push"]\n',
            5,
            "matches",
        ),
        ('[env]\nallow = ["A B"]\n', 2, "name of a variable"),
        ('[destructive]\nblocked = ["everything"]\n', 2, "is no class"),
        ('[cwd]\nroots = ["x"]\n', 2, "absolute"),
        ('[examples]\nmatch = ["ls",\n "make"]\n', 3, "is not allowed"),
        ('[examples]\nnot_match = ["ls"]\n', 2, "is allowed"),
        ("[headless\n", 1, "Expected"),
        ("a = 1\na = 2\n", 2, "overwrite"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "p.toml")
    assert [problem for problem in caught.value.problems if problem[0] == line and said in problem[1]], caught.value
    assert f"p.toml:{line}: " in str(caught.value)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy('[x]\n[headless]\nallow = ["$a"]\n[env]\nallow = ["="]\n')
    assert [line for line, _ in caught.value.problems] == [1, 3, 5]


def test_an_empty_file_means_the_shipped_defaults_and_an_empty_list_means_nothing() -> None:
    assert verdict_of("", "git status") is Effect.ALLOW
    assert verdict_of("[headless]\nallow = []\n", "git status") is Effect.DENY
    assert verdict_of("", "git status", Mode.INTERACTIVE) is Effect.ASK


def test_more_specific_beats_general_and_deny_beats_allow_at_equal_rank() -> None:
    text = '[headless]\nallow = ["git *", "make test *"]\ndeny = ["git push", "make *"]\n'
    assert verdict_of(text, "git fetch") is Effect.ALLOW
    assert verdict_of(text, "git push") is Effect.DENY
    assert verdict_of(text, "git -C x push") is Effect.DENY
    assert verdict_of(text, "make test -j2") is Effect.ALLOW
    assert verdict_of(text, "make all") is Effect.DENY
    assert verdict_of('[headless]\nallow = ["make"]\ndeny = ["make"]\n', "make") is Effect.DENY


def test_a_denied_program_stays_denied_behind_wrappers_and_paths() -> None:
    text = '[headless]\nallow = ["*"]\ndeny = ["curl"]\n'
    for command in (
        "curl x",
        "/usr/bin/curl x",
        "env curl x",
        "sh -c 'curl x'",
        "timeout 5 nice curl x",
        "find . -exec curl {} ;",
    ):
        verdict = decide(PolicyRequest(command=command), parse_policy(text))
        assert not verdict.allowed, command
    assert (
        decide(PolicyRequest(argv=("find", ".", "-exec", "curl", "{}", ";")), parse_policy(text)).reason
        is Reason.DENIED_BY_RULE
    )
    assert verdict_of(text, "echo curl") is Effect.ALLOW


def test_a_rule_holds_only_in_its_scope_and_time() -> None:
    text = (
        '[[rule]]\neffect = "allow"\ncommand = "make *"\nmodes = ["interactive"]\ncwd = "/tmp"\nworkspace = "w"\n'
        'caller_surface = "chat"\nexpires = 2030-01-01T00:00:00Z\ncomment = "builds"\n'
    )
    facts = {"cwd": "/tmp/x", "workspace": "w", "caller_surface": "chat", "now": 1_800_000_000.0}
    assert verdict_of(text, "make all", Mode.INTERACTIVE, **facts) is Effect.ALLOW
    for change in (
        {"cwd": "/tmpx"},
        {"workspace": "v"},
        {"caller_surface": None},
        {"now": 1_900_000_000.0},
        {"now": None},
    ):
        assert verdict_of(text, "make all", Mode.INTERACTIVE, **{**facts, **change}) is Effect.ASK, change
    assert verdict_of(text, "make all", Mode.HEADLESS, **facts) is Effect.DENY


def test_a_class_that_is_not_blocked_may_be_allowed_but_never_what_is_irrecoverable() -> None:
    text = '[headless]\nallow = ["rm *", "kill *"]\n[destructive]\nblocked = ["process"]\n'
    assert verdict_of(text, "rm x") is Effect.ALLOW
    assert verdict_of(text, "kill 5") is Effect.DENY
    assert decide(PolicyRequest(command="rm -rf /"), parse_policy(text)).reason is Reason.IRRECOVERABLE
    assert verdict_of('[headless]\nallow = ["rm *"]\n', "rm x") is Effect.DENY


def test_many_findings_of_a_class_that_is_not_blocked_hide_none_that_is() -> None:
    text = '[headless]\nallow = ["sh *"]\n[destructive]\nblocked = ["delete"]\n'
    kills = "; ".join(f"kill {number}" for number in range(2, 40))
    assert decide(PolicyRequest(argv=("sh", "-c", kills)), parse_policy(text)).allowed
    assert (
        decide(PolicyRequest(argv=("sh", "-c", f"{kills}; rm -r x")), parse_policy(text)).reason is Reason.DESTRUCTIVE
    )


def test_a_policy_may_call_more_commands_destructive() -> None:
    text = (
        '[headless]\nallow = ["deploy *"]\n[interactive]\nallow = ["deploy *"]\n[destructive]\nalso = ["deploy prod"]\n'
    )
    assert verdict_of(text, "deploy staging") is Effect.ALLOW
    assert decide(PolicyRequest(command="deploy prod"), parse_policy(text)).reason is Reason.DESTRUCTIVE
    assert verdict_of(text, "deploy prod now", Mode.INTERACTIVE) is Effect.ASK


def test_roots_and_variables_limit_where_and_with_what_commands_run(tmp_path: Path) -> None:
    text = f'[cwd]\nroots = ["{tmp_path}"]\n[env]\nallow = ["MY_*"]\n'
    policy = parse_policy(text)
    inside, outside = os.path.realpath(tmp_path), "/usr"
    assert decide(PolicyRequest(command="ls", cwd=inside, env={"MY_X": "1"}), policy).allowed
    assert decide(PolicyRequest(command="ls", cwd=inside, env={"PATH": "."}), policy).reason is Reason.ENV_NOT_ALLOWED
    assert decide(PolicyRequest(command="ls", cwd=outside), policy).reason is Reason.CWD_OUTSIDE_ROOTS
    assert decide(PolicyRequest(command="ls", cwd=None), policy).reason is Reason.CWD_OUTSIDE_ROOTS
    assert decide(PolicyRequest(command="ls", cwd=inside + "/.."), policy).reason is Reason.CWD_OUTSIDE_ROOTS
    assert decide(PolicyRequest(command="ls", cwd=inside + "x"), policy).reason is Reason.CWD_OUTSIDE_ROOTS


# changing it


def test_editing_keeps_comments_and_order() -> None:
    text = '# mine\n[headless]\n# readers\nallow = [\n  "ls",  # list\n  "cat",\n]\n'
    grown = add_rule(text, NewRule("npm test", modes=frozenset({Mode.HEADLESS}), comment="tests"))
    assert grown.startswith(text.rstrip()) and verdict_of(grown, "npm test") is Effect.ALLOW
    shrunk, count = remove_rules(grown, "npm test")
    assert count == 1 and shrunk.rstrip() == text.rstrip()
    without, count = remove_rules(text, "cat")
    assert count == 1 and "# list" in without and '"cat"' not in without
    changed = set_value(text, "env", "allow", ["LANG"])
    assert changed.startswith(text) and parse_policy(changed).env_allow == ("LANG",)
    with pytest.raises(PolicyError):
        set_value(text, "env", "allow", ["A B"])


def test_what_a_person_is_shown_is_what_is_written() -> None:
    rule = NewRule(
        "make *", RuleEffect.ALLOW, cwd="/tmp", comment='say "hi"\n[cwd]\nroots=["/"]', expires=1_900_000_000.0
    )
    grown = add_rule("", rule)
    assert grown.strip() == rule.to_toml().strip()
    (read,) = [made for made in parse_policy(grown).rules if made.origin != "the shipped defaults"]
    assert (read.pattern, read.cwd, read.comment, read.expires) == ("make *", "/tmp", rule.comment, 1_900_000_000.0)


def test_shipped_patterns_are_known_as_such() -> None:
    assert is_shipped("git status") and not is_shipped("git status *") and not is_shipped("make")


def test_a_write_is_atomic_private_and_follows_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    folder.mkdir(mode=0o700)
    link = folder / "policy.toml"
    link.symlink_to(real)
    with locked(link) as text:
        write_policy(link, add_rule(text, NewRule("make")))
    assert link.is_symlink() and "make" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o600
    with pytest.raises(PolicyError), locked(link) as text:
        write_policy(link, "[x")
    assert "make" in real.read_text()


# watching it


def test_the_store_follows_the_file_as_it_comes_changes_breaks_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "later" / "policy.toml"
    store = PolicyStore(path)
    heard: list[str | None] = []
    store.subscribe(lambda policy: heard.append(policy.broken))
    asks = PolicyRequest(command="make")
    assert not decide(asks, store.current()).allowed and store.warning is None
    path.parent.mkdir()
    path.write_text('[headless]\nallow = ["make"]\n')
    assert decide(asks, store.current()).allowed
    path.write_text('[headless]\nallow = ["cmake"]\n')
    assert not decide(asks, store.current()).allowed
    path.write_text('[headless]\nallow = ["make"\n')
    broken = decide(asks, store.current())
    assert broken.reason is Reason.POLICY_BROKEN and f"{path}:3" in (store.warning or "")
    assert decide(PolicyRequest(command="ls"), store.current()).reason is Reason.POLICY_BROKEN
    assert decide(PolicyRequest(command="ls", mode=Mode.INTERACTIVE), store.current()).effect is Effect.ASK
    path.unlink()
    assert store.warning is None and decide(PolicyRequest(command="ls"), store.current()).allowed
    assert [bool(problem) for problem in heard] == [False, False, False, True, False]


def test_a_change_that_is_found_while_another_is_told_is_told_after_it(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    store = PolicyStore(path)
    begun: list[str] = []
    told: list[str] = []

    def hear(policy: Policy) -> None:
        rules = " ".join(rule.pattern for rule in policy.rules if rule.pattern in ("make", "cmake"))
        begun.append(rules)
        if rules == "make":
            path.write_text('[headless]\nallow = ["cmake"]\n')
            assert decide(PolicyRequest(command="cmake"), store.current()).allowed
        told.append(rules)

    path.write_text('[headless]\nallow = ["make"]\n')
    store.subscribe(hear)
    store.check()
    assert begun == told == ["make", "cmake"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[headless]\nallow = ['\x00']\n", b"#" * 1024 * 1024 + b"x" * 10])
def test_a_file_that_cannot_be_read_as_text_is_broken(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    assert PolicyStore(path).current().broken


def test_a_policy_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[headless]\nallow = ["make"]\n')
    path.chmod(0o666)
    assert "written by others" in (PolicyStore(path).warning or "")
    path.unlink()
    path.mkdir()
    assert "not a file" in (PolicyStore(path).warning or "")


async def test_listeners_hear_of_a_change(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "policy.toml"
    store = PolicyStore(path)
    changed = asyncio.Event()
    store.check()
    store.subscribe(lambda _policy: changed.set())
    watching = asyncio.create_task(store.watch())
    await asyncio.sleep(0)
    path.parent.mkdir()
    path.write_text('[headless]\nallow = ["make"]\n')
    await asyncio.wait_for(changed.wait(), HANG_S)
    watching.cancel()
