"""A rule is changed where it stands, and nothing else in the file is."""

from __future__ import annotations

import pytest

from wsh.policy import Mode, RuleEffect, RuleError
from wsh.policy.file.document import parse_policy
from wsh.policy.file.edit import NewRule, add_rule, change_rule, remove_rules

HEADLESS = frozenset({Mode.HEADLESS})
TEXT = """\
# the first line
[headless]
allow = ["ls", "git status"] # read only

[[rule]] # tests
effect = "allow"
command = "make test"
cwd = "/tmp"
match = ["make test"]

[[rule]]
effect = "deny"
command = "git push"
"""


def test_a_table_keeps_its_place_comment_and_examples() -> None:
    old = NewRule("make test", cwd="/tmp")
    text, found = change_rule(TEXT, old, NewRule("make test *", RuleEffect.ALLOW, HEADLESS, cwd="/srv"))
    assert found
    assert text.index("make test *") < text.index("git push") and "# tests" in text and "match = " in text
    rule = next(rule for rule in parse_policy(text).rules if rule.pattern == "make test *")
    assert rule.cwd == "/srv" and rule.modes == HEADLESS


def test_an_entry_of_a_list_stays_in_the_list_or_becomes_a_table() -> None:
    old = NewRule("ls", modes=HEADLESS)
    text, found = change_rule(TEXT, old, NewRule("ls *", modes=HEADLESS))
    assert found and 'allow = ["ls *", "git status"] # read only' in text
    text, found = change_rule(TEXT, old, NewRule("ls", comment="looks"))
    assert found and '["git status"]' in text and 'comment = "looks"' in text


def test_a_shipped_rule_is_removed_by_writing_the_others_down() -> None:
    text, found = change_rule("", NewRule("ls", modes=HEADLESS), None)
    patterns = [rule.pattern for rule in parse_policy(text).rules]
    assert found and "ls" not in patterns and "cat" in patterns


def test_deny_rules_can_be_removed_and_what_is_not_there_is_said() -> None:
    text, found = change_rule(TEXT, NewRule("git push", RuleEffect.DENY), None)
    assert found and "git push" not in text and "make test" in text
    assert change_rule(TEXT, NewRule("git push"), None)[1] is False
    assert change_rule(TEXT, NewRule("rm", modes=HEADLESS), None)[1] is False


def test_words_that_cannot_be_a_rule_change_nothing() -> None:
    with pytest.raises(RuleError):
        change_rule(TEXT, NewRule("ls", modes=HEADLESS), NewRule("ls; rm x", modes=HEADLESS))


def test_rules_that_are_written_as_one_list_stay_when_another_comes_or_goes() -> None:
    text = (
        'rule = [\n  {effect = "deny", command = "git push"}, # never\n  {effect = "allow", command = "make x"},\n]\n'
    )
    text += '[headless]\nallow = ["ls", "cat"]\n'
    grown = add_rule(text, NewRule("make test", cwd="/tmp", exact=True))
    assert list_labels(grown) == ["allow ls", "allow cat", "deny git push", "allow make x", "allow exactly make test"]
    assert "# never" in grown
    shrunk, removed = remove_rules(grown, "make x")
    assert removed == 1
    assert list_labels(shrunk) == ["allow ls", "allow cat", "deny git push", "allow exactly make test"]
    changed, found = change_rule(shrunk, NewRule("git push", RuleEffect.DENY), NewRule("git pull", RuleEffect.DENY))
    assert found and "deny git pull" in list_labels(changed)
    moved, found = change_rule(changed, NewRule("ls", modes=HEADLESS), NewRule("ls", comment="looks"))
    assert found and list_labels(moved) == ["allow cat", "deny git pull", "allow exactly make test", "allow ls"]


def list_labels(text: str) -> list[str]:
    return [rule.label for rule in parse_policy(text).rules]
