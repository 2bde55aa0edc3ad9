"""`policy.toml`: from text to a checked `Policy`, with the line of everything that is wrong.

Pure apart from resolving folders. Writing is `edit`'s business, watching is `store`'s.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from datetime import UTC, date, datetime, time

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from wsh.policy.engine import decide
from wsh.policy.parse.lexer import Broken, NotLiteral, lex
from wsh.policy.policy import SHIPPED, Policy
from wsh.policy.request import Mode, PolicyRequest
from wsh.policy.rule.default import ENV_ALLOW, HEADLESS_ALLOW
from wsh.policy.rule.rule import BOTH, Rule, RuleEffect, RuleError, fits, forbids, parse_pattern
from wsh.policy.verdict import Kind
from wsh.sandbox.root import survey
from wsh.sandbox.section import KEYS, SandboxPolicy, SectionReader
from wsh.wire.system.place import find_places

MAX_POLICY_BYTES = 1024 * 1024
_TOML = Language(tree_sitter_toml.language())
Path = tuple[str | int, ...]


class PolicyError(ValueError):
    """A policy file that cannot be used. `problems` are (line, what); the message lists them all."""

    def __init__(self, source: str, problems: list[tuple[int | None, str]]) -> None:
        self.source = source
        self.problems = problems
        super().__init__(
            "; ".join(f"{source}:{line}: {what}" if line else f"{source}: {what}" for line, what in problems)
        )


def parse_policy(text: str, source: str = "policy.toml", now: float | None = None) -> Policy:
    """The policy that `text` says. Raises PolicyError naming every problem and its line."""
    if len(text) > MAX_POLICY_BYTES:
        raise PolicyError(source, [(None, f"the file is larger than {MAX_POLICY_BYTES} bytes")])
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        said = str(problem)
        at = re.search(r"\(at line (\d+)", said)
        line = int(at[1]) if at else text.count("\n") + 1
        raise PolicyError(source, [(line, said)]) from None
    except RecursionError:
        raise PolicyError(source, [(None, "the file is nested too deeply")]) from None
    return _Builder(document, _find_lines(text), source, text, now).build()


class _Builder:
    def __init__(
        self, document: dict[str, object], lines: dict[Path, int], source: str, text: str, now: float | None
    ) -> None:
        self.document = document
        self.lines = lines
        self.source = source
        self.text = text
        self.now = now
        self.problems: list[tuple[int | None, str]] = []

    def build(self) -> Policy:
        sections: dict[str, tuple[str, ...]] = {
            "headless": ("allow", "deny", "lifetime_ms"),
            "interactive": ("allow", "deny", "approval_ms"),
            "destructive": ("blocked", "also"),
            "cwd": ("roots",),
            "env": ("allow",),
            "sandbox": KEYS,
            "examples": ("match", "not_match"),
        }
        for name, value in self.document.items():
            if name == "rule":
                continue
            if name not in sections:
                known = ", ".join(f"[{section}]" for section in sections)
                self.wrong((name,), f"there is no section [{name}]; known are {known} and [[rule]]")
            elif not isinstance(value, dict):
                self.wrong((name,), f"{name} must be a table: write [{name}]")
            else:
                for key in value:
                    if key not in sections[name]:
                        self.wrong((name, key), f"[{name}] has no key {key!r}; known are {', '.join(sections[name])}")
        rules = [*self._lists(), *self._tables()]
        policy = Policy(
            rules=tuple(rules),
            cwd_roots=tuple(self._folder(("cwd", "roots", i), root) for i, root in self._texts("cwd", "roots", ())),
            env_allow=tuple(self._variable(i, name) for i, name in self._texts("env", "allow", ENV_ALLOW)),
            blocked=frozenset(self._kinds()),
            also_destructive=tuple(
                tokens
                for i, pattern in self._texts("destructive", "also", ())
                for tokens, _ in [self._pattern(("destructive", "also", i), pattern)]
                if tokens
            ),
            lifetime_ms=self._milliseconds("headless", "lifetime_ms"),
            approval_ms=self._milliseconds("interactive", "approval_ms"),
            sandbox=self._sandbox(),
            source=self.source,
            digest=hashlib.sha256(self.text.encode()).hexdigest(),
        )
        if not self.problems:
            self._check_examples(policy)
        if self.problems:
            raise PolicyError(self.source, self.problems)
        return policy

    def _sandbox(self) -> SandboxPolicy:
        table = self.document.get("sandbox")
        if not isinstance(table, dict):
            return SandboxPolicy()
        places = find_places()
        ground = survey(None, (places.config, places.state, places.runtime))
        return SectionReader(table, ground, self.wrong).read()

    def wrong(self, path: Path, what: str) -> None:
        line = None
        for size in range(len(path), 0, -1):
            line = self.lines.get(path[:size])
            if line is not None:
                break
        self.problems.append((line, what))

    def _get(self, section: str, key: str) -> object:
        table = self.document.get(section)
        return table.get(key) if isinstance(table, dict) else None

    def _texts(self, section: str, key: str, default: tuple[str, ...]) -> list[tuple[int, str]]:
        value = self._get(section, key)
        if value is None:
            return list(enumerate(default))
        return self._text_list((section, key), value, f"[{section}] {key}")

    def _text_list(self, path: Path, value: object, name: str) -> list[tuple[int, str]]:
        if not isinstance(value, list):
            self.wrong(path, f"{name} must be a list of texts")
            return []
        found = []
        for index, item in enumerate(value):
            if isinstance(item, str):
                found.append((index, item))
            else:
                self.wrong((*path, index), f"{name} must hold texts, not {item!r}")
        return found

    def _pattern(self, path: Path, pattern: str) -> tuple[tuple[str, ...], bool]:
        try:
            return parse_pattern(pattern)
        except RuleError as problem:
            self.wrong(path, str(problem))
            return (), False

    def _lists(self) -> list[Rule]:
        rules = []
        for mode in Mode:
            for effect in RuleEffect:
                shipped = mode is Mode.HEADLESS and effect is RuleEffect.ALLOW
                given = self._get(mode.value, effect.value) is not None
                for index, pattern in self._texts(mode.value, effect.value, HEADLESS_ALLOW if shipped else ()):
                    path: Path = (mode.value, effect.value, index)
                    tokens, any_arguments = self._pattern(path, pattern)
                    if tokens or any_arguments:
                        origin = self._origin(path) if given else SHIPPED
                        rules.append(Rule(effect, tokens, any_arguments, frozenset({mode}), origin=origin))
        return rules

    def _origin(self, path: Path) -> str:
        for size in range(len(path), 0, -1):
            if path[:size] in self.lines:
                return f"{self.source}:{self.lines[path[:size]]}"
        return self.source

    def _tables(self) -> list[Rule]:
        tables = self.document.get("rule", [])
        if not isinstance(tables, list):
            self.wrong(("rule",), "rules are written as [[rule]], each its own table")
            return []
        return [rule for index, table in enumerate(tables) for rule in self._rule(index, table)]

    def _rule(self, index: int, table: object) -> list[Rule]:
        here: Path = ("rule", index)
        known = "effect command modes cwd workspace caller_surface expires comment exact match not_match".split()
        if not isinstance(table, dict):
            self.wrong(here, "a rule must be a table")
            return []
        before = len(self.problems)
        for key in table:
            if key not in known:
                self.wrong((*here, key), f"a rule has no key {key!r}; known are {', '.join(known)}")
        effect = table.get("effect")
        if effect not in ("allow", "deny"):
            self.wrong((*here, "effect"), 'a rule needs effect = "allow" or "deny"')
        command = table.get("command")
        if not isinstance(command, str):
            self.wrong((*here, "command"), 'a rule needs command = "PROGRAM [SUBCOMMAND] [*]"')
            return []
        tokens, any_arguments = self._pattern((*here, "command"), command)
        texts: dict[str, str | None] = {}
        for key in ("workspace", "caller_surface", "comment", "cwd"):
            value = table.get(key)
            if value is not None and (not isinstance(value, str) or not value):
                self.wrong((*here, key), f"{key} must be a text that is not empty")
            texts[key] = value if isinstance(value, str) else None
        exact = table.get("exact", False)
        if not isinstance(exact, bool) or (exact and (any_arguments or effect != "allow")):
            self.wrong(
                (*here, "exact"), "exact is true or false, and goes with an allow rule that does not end in ' *'"
            )
        modes = self._modes((*here, "modes"), table.get("modes"))
        expires = self._expiry((*here, "expires"), table.get("expires"))
        cwd = texts["cwd"]
        rule = Rule(
            RuleEffect(effect) if effect in ("allow", "deny") else RuleEffect.DENY,
            tokens,
            any_arguments,
            modes,
            self._folder((*here, "cwd"), cwd) if cwd else None,
            texts["workspace"],
            texts["caller_surface"],
            expires,
            texts["comment"] or "",
            self._origin(here),
            exact is True,
        )
        if len(self.problems) > before:
            return []
        self._check_rule_examples(here, table, rule)
        return [rule]

    def _modes(self, path: Path, value: object) -> frozenset[Mode]:
        if value is None:
            return BOTH
        names = [mode.value for mode in Mode]
        if not isinstance(value, list) or not value or any(item not in names for item in value):
            self.wrong(path, f"modes must be a list of {' and '.join(names)}")
            return BOTH
        return frozenset(Mode(item) for item in value)

    def _expiry(self, path: Path, value: object) -> float | None:
        if value is None:
            return None
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, date):
            return datetime.combine(value, time.max, UTC).timestamp()
        self.wrong(path, "expires must be a date or a date and time, such as 2030-01-31 or 2030-01-31T12:00:00Z")
        return None

    def _folder(self, path: Path, value: str) -> str:
        expanded = os.path.expanduser(value)
        if not os.path.isabs(expanded) or "\0" in expanded:
            self.wrong(path, f"{value!r} must be an absolute path")
            return "/nowhere"
        return os.path.realpath(expanded)

    def _variable(self, index: int, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\*?", name):
            self.wrong(("env", "allow", index), f"{name!r} is not the name of a variable (a * may end it)")
        return name

    def _kinds(self) -> list[Kind]:
        known = [kind.value for kind in Kind]
        found = []
        for index, name in self._texts("destructive", "blocked", tuple(known)):
            if name in known:
                found.append(Kind(name))
            else:
                self.wrong(("destructive", "blocked", index), f"{name!r} is no class; known are {', '.join(known)}")
        return found

    def _milliseconds(self, section: str, key: str) -> int | None:
        value = self._get(section, key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 604_800_000:
            self.wrong((section, key), f"[{section}] {key} must be a whole number of milliseconds up to a week")
            return None
        return value

    # examples

    def _check_rule_examples(self, here: Path, table: dict[str, object], rule: Rule) -> None:
        def applies(argv: tuple[str, ...]) -> bool:
            return fits(rule, argv).matched if rule.effect is RuleEffect.ALLOW else forbids(rule, argv)

        for key, wanted in (("match", True), ("not_match", False)):
            value = table.get(key)
            if value is None:
                continue
            for index, example in self._text_list((*here, key), value, key):
                try:
                    segments = lex(example).segments
                    matched = len(segments) == 1 and applies(segments[0])
                except (NotLiteral, Broken):
                    matched = False
                if matched is not wanted:
                    said = "does not match" if wanted else "matches"
                    self.wrong((*here, key, index), f"the example {example!r} {said} the rule {rule.pattern!r}")

    def _check_examples(self, policy: Policy) -> None:
        for key, wanted in (("match", True), ("not_match", False)):
            for index, example in self._texts("examples", key, ()):
                verdict = decide(PolicyRequest(command=example, cwd=None, now=self.now), _without_roots(policy))
                if verdict.allowed is not wanted:
                    said = "is not allowed" if wanted else "is allowed"
                    self.wrong(("examples", key, index), f"the example {example!r} {said} headless: {verdict.message}")


def _without_roots(policy: Policy) -> Policy:
    return Policy(policy.rules, (), policy.env_allow, policy.blocked, policy.also_destructive)


def _find_lines(text: str) -> dict[Path, int]:
    """The line on which each key, table and list item stands."""
    lines: dict[Path, int] = {}
    counts: dict[str, int] = {}
    root = Parser(_TOML).parse(text.encode()).root_node
    for node in root.named_children:
        if node.type == "pair":
            _note_pair(node, (), lines)
            continue
        if node.type not in ("table", "table_array_element"):
            continue
        key = _key(node.named_children[0])
        path: Path = key
        if node.type == "table_array_element":
            name = ".".join(map(str, key))
            counts[name] = counts.get(name, -1) + 1
            path = (*key, counts[name])
        lines.setdefault(key, node.start_point[0] + 1)
        lines.setdefault(path, node.start_point[0] + 1)
        for child in node.named_children[1:]:
            if child.type == "pair":
                _note_pair(child, path, lines)
    return lines


def _note_pair(node: Node, prefix: Path, lines: dict[Path, int]) -> None:
    key = (*prefix, *_key(node.named_children[0]))
    lines[key] = node.start_point[0] + 1
    value = node.named_children[1] if node.named_child_count > 1 else None
    if value is None:
        return
    if value.type == "array":
        items = [child for child in value.named_children if child.type != "comment"]
        for index, item in enumerate(items):
            lines[(*key, index)] = item.start_point[0] + 1
    elif value.type == "inline_table":
        for child in value.named_children:
            if child.type == "pair":
                _note_pair(child, key, lines)


def _key(node: Node) -> Path:
    if node.type == "dotted_key":
        return tuple(part for child in node.named_children for part in _key(child))
    text = node.text.decode() if node.text is not None else ""
    return (text.strip("\"'"),)
