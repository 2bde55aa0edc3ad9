"""Change `policy.toml` without losing what a person wrote in it.

Comments, order and spacing stay (tomlkit). Every change is checked as a whole before it replaces the file, the
replacement is atomic, and writers take turns on a lock. Who may change the policy is the caller's question.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT, Array

from wsh.policy.file.document import MAX_POLICY_BYTES, PolicyError, parse_policy
from wsh.policy.policy import Policy, default_policy
from wsh.policy.request import Mode
from wsh.policy.rule.rule import BOTH, RuleEffect, parse_pattern
from wsh.wire.system.place import ensure_private, write_private


@dataclass(frozen=True)
class NewRule:
    """A rule as a person asks for it."""

    command: str
    effect: RuleEffect = RuleEffect.ALLOW
    modes: frozenset[Mode] = BOTH
    cwd: str | None = None
    workspace: str | None = None
    caller_surface: str | None = None
    expires: float | None = None
    comment: str | None = None
    exact: bool = False
    """These words and no others."""

    def to_toml(self) -> str:
        """The [[rule]] table that will be written; this is what a person is shown."""
        document = tomlkit.document()
        rules = tomlkit.aot()
        rules.append(self._table())
        document.append("rule", rules)
        return tomlkit.dumps(document)

    def _table(self) -> Any:
        table = tomlkit.table()
        table["effect"] = self.effect.value
        table["command"] = self.command
        if self.exact:
            table["exact"] = True
        if self.modes != BOTH:
            table["modes"] = sorted(mode.value for mode in self.modes)
        for key in ("cwd", "workspace", "caller_surface", "comment"):
            value = getattr(self, key)
            if value is not None:
                table[key] = value
        if self.expires is not None:
            table["expires"] = datetime.fromtimestamp(self.expires, UTC).replace(microsecond=0)
        return table


def add_rule(text: str, rule: NewRule, source: str = "policy.toml") -> str:
    """`text` with the rule at its end. Raises RuleError or PolicyError."""
    parse_pattern(rule.command)
    document = _load(text.rstrip("\n") + "\n\n" if text.strip() else "", source)
    _append_rule(document, rule)
    return _checked(tomlkit.dumps(document), source)


def remove_rules(text: str, command: str, source: str = "policy.toml") -> tuple[str, int]:
    """`text` without any allow of exactly this pattern, and how many there were."""
    wanted = parse_pattern(command)
    document = _load(text, source)
    removed = 0
    rules = _find_rules(document)
    if rules is not None:
        for index in range(len(rules) - 1, -1, -1):
            table = rules[index]
            if table.get("effect") == "allow" and _same(table.get("command"), wanted):
                del rules[index]
                removed += 1
        if not len(rules):
            del document["rule"]
    for section in ("headless", "interactive"):
        table = document.get(section)
        entries: Any = (table.get("allow") if table is not None else None) or []
        for index in range(len(entries) - 1, -1, -1):
            if _same(entries[index], wanted):
                del entries[index]
                removed += 1
    return _checked(tomlkit.dumps(document), source), removed


def set_value(text: str, section: str, key: str, value: object, source: str = "policy.toml") -> str:
    """`text` with [section] key = value; None removes the key. Raises PolicyError."""
    document = _load(text, source)
    if section not in document:
        document[section] = tomlkit.table()
    table: Any = document[section]
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
    return _checked(tomlkit.dumps(document), source)


def read_policy_text(path: Path) -> str:
    """The file's text; empty if missing. Raises PolicyError if it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise PolicyError(str(path), [(line, "the text is not UTF-8")]) from None


@contextmanager
def locked(path: Path) -> Iterator[str]:
    """The file's text (empty if missing) while no other writer can change it. Not for as long as a person thinks: a server may wait."""
    ensure_private(path.parent)
    lock = os.open(path.parent / f".{path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield read_policy_text(path)
    finally:
        os.close(lock)


def write_policy(path: Path, text: str) -> Policy:
    """Check `text` and put it in place of the file, atomically; a symbolic link keeps pointing. Call within "
    "`locked`."""
    policy = parse_policy(text, str(path))
    write_private(Path(os.path.realpath(path)), text.encode())
    return policy


def _load(text: str, source: str) -> Any:
    if len(text) > MAX_POLICY_BYTES:
        raise PolicyError(source, [(None, "the file is too large")])
    _checked(text, source)
    return tomlkit.parse(text)


def _find_rules(document: Any) -> Any:
    """The rules as they are written: [[rule]] tables, or one list `rule = [{…}]`. None if there are none."""
    rules = document.get("rule")
    return rules if isinstance(rules, AoT | Array) else None


def _append_rule(document: Any, rule: NewRule) -> None:
    rules = _find_rules(document)
    if isinstance(rules, Array):
        table = tomlkit.inline_table()
        table.update(rule._table())
        rules.append(table)
        return
    if rules is None:
        document["rule"] = rules = tomlkit.aot()
    rules.append(rule._table())


def _checked(text: str, source: str) -> str:
    parse_policy(text, source)
    return text


def _same(pattern: object, wanted: tuple[tuple[str, ...], bool]) -> bool:
    return isinstance(pattern, str) and parse_pattern(pattern) == wanted


def is_shipped(command: str) -> bool:
    """Whether exactly this pattern is one of the shipped defaults."""
    wanted = parse_pattern(command)
    return any((rule.tokens, rule.any_arguments) == wanted for rule in default_policy().rules)


def change_rule(text: str, old: NewRule, new: NewRule | None, source: str = "policy.toml") -> tuple[str, bool]:
    """`text` with `new` where the rule `old` stood, or without it; and whether it was there.

    A shipped default is changed by writing the list of them into the file first. Raises RuleError or PolicyError.
    """
    if new is not None:
        parse_pattern(new.command)
    document = _load(text, source)
    found = _change_table(document, old, new) or _change_entry(document, old, new)
    return _checked(tomlkit.dumps(document), source), found


def _change_table(document: Any, old: NewRule, new: NewRule | None) -> bool:
    rules = _find_rules(document)
    if rules is None:
        return False
    for index, table in enumerate(rules):
        if _identity(_from_table(table)) != _identity(old):
            continue
        if new is None:
            del rules[index]
            if not len(rules):
                del document["rule"]
            return True
        wanted = new._table()
        for key in ("effect", "command", "exact", "modes", "cwd", "workspace", "caller_surface", "comment"):
            if key in wanted:
                table[key] = wanted[key]
            else:
                table.pop(key, None)
        return True
    return False


def _change_entry(document: Any, old: NewRule, new: NewRule | None) -> bool:
    """The same in the short lists, such as [headless] allow."""
    if len(old.modes) != 1 or old.exact or old.cwd or old.workspace or old.caller_surface:
        return False
    (mode,) = old.modes
    section: Any = document.get(mode.value)
    entries: Any = section.get(old.effect.value) if section is not None else None
    if entries is None:
        if mode is not Mode.HEADLESS or old.effect is not RuleEffect.ALLOW or not is_shipped(old.command):
            return False
        entries = tomlkit.array()
        entries.extend([rule.pattern for rule in default_policy().rules])
        entries.multiline(True)
        if section is None:
            document[mode.value] = section = tomlkit.table()
        section[old.effect.value] = entries
        entries = section[old.effect.value]
    wanted = parse_pattern(old.command)
    for index, entry in enumerate(entries):
        if not _same(entry, wanted):
            continue
        if new is not None and (new.effect, new.modes) == (old.effect, old.modes) and not _has_more(new):
            entries[index] = new.command
            return True
        del entries[index]
        if new is not None:
            _append_rule(document, new)
        return True
    return False


def _has_more(rule: NewRule) -> bool:
    return any((rule.cwd, rule.workspace, rule.caller_surface, rule.comment, rule.expires, rule.exact))


def _from_table(table: Any) -> NewRule:
    return NewRule(
        str(table.get("command")),
        RuleEffect(str(table.get("effect"))),
        frozenset(Mode(str(mode)) for mode in table["modes"]) if "modes" in table else BOTH,
        str(table["cwd"]) if "cwd" in table else None,
        str(table["workspace"]) if "workspace" in table else None,
        str(table["caller_surface"]) if "caller_surface" in table else None,
        exact=bool(table.get("exact", False)),
    )


def _identity(rule: NewRule) -> tuple[object, ...]:
    cwd = os.path.realpath(os.path.expanduser(rule.cwd)) if rule.cwd else None
    return rule.effect, parse_pattern(rule.command), rule.exact, rule.modes, cwd, rule.workspace, rule.caller_surface
