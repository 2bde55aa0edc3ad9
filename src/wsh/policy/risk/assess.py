"""What could a command destroy? Findings from the models in `danger`, for a script or for one argv.

Pure. A command inside a command (a wrapper's, a shell's `-c`, `find -exec`) is looked at as if it stood alone.
Findings are hints for a person and a reason to refuse; their absence allows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from wsh.policy.danger import find_models
from wsh.policy.danger.file import writes
from wsh.policy.danger.model import RiskModel
from wsh.policy.parse.option import Arity, scan
from wsh.policy.parse.shell import Redirect, SimpleCommand, Start, TooComplicated, Tree, read_script
from wsh.policy.parse.word import GLOB, UNKNOWN, show
from wsh.policy.risk.label import LabelReason, find_labels
from wsh.policy.risk.target import Target, classify
from wsh.policy.verdict import Kind, Risk, RiskReason

T = TypeVar("T")
_MAX_FINDINGS = 16
_MAX_DEPTH = 12
_MAX_LOOKS = 2_000
_MAX_NESTED_BYTES = 24 * 1024
_MAX_NESTED_TEXTS = 200
_MAX_STEPS = 60_000
_RUNS_ITS_VALUE = frozenset(
    "PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH_COMMAND GIT_EXTERNAL_DIFF "
    "GIT_ASKPASS SSH_ASKPASS LESSOPEN PROMPT_COMMAND BROWSER GIT_PROXY_COMMAND".split()
)
_OVERWRITES = frozenset({">", ">|", "&>", ">&", "<>"})
_APPENDS = frozenset({">>", "&>>"})


@dataclass(frozen=True)
class CommandSetting:
    """What surrounds the command that is looked at."""

    cwd: str | None = None
    home: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    also: tuple[tuple[str, ...], ...] = ()
    """Argv prefixes that the policy calls destructive."""


@dataclass
class Assessment:
    reasons: list[RiskReason] = field(default_factory=list)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    """Every command seen, wrapped ones included; deny rules look at these."""
    broken: bool = False
    labels: list[LabelReason] = field(default_factory=list)
    """What it does beside destroying."""

    @property
    def risk(self) -> Risk:
        return max((found.risk for found in self.reasons), key=lambda risk: risk.rank, default=Risk.NONE)


def assess_text(text: str, setting: CommandSetting, tree: Tree | None = None) -> Assessment:
    """Findings about a shell script. Raises TooComplicated."""
    looker = _Looker(setting)
    looker.text(text, setting.cwd, 0, tree)
    return looker.finish()


def assess_argv(argv: Sequence[str], setting: CommandSetting) -> Assessment:
    """Findings about one program and its arguments. Raises TooComplicated."""
    looker = _Looker(setting)
    looker.command(SimpleCommand(tuple(argv), cwd=setting.cwd), 0)
    return looker.finish()


def _shorten(findings: Sequence[T], kind: Callable[[T], object]) -> list[T]:
    """As many as are shown, in their order, and of each kind at least the first: many of one must not push out another."""
    first: dict[object, T] = {}
    for found in findings:
        first.setdefault(kind(found), found)
    left = max(0, _MAX_FINDINGS - len(first))
    kept: list[T] = []
    for found in findings:
        if first[kind(found)] is not found:
            if not left:
                continue
            left -= 1
        kept.append(found)
    return kept


class _Looker:
    def __init__(self, setting: CommandSetting) -> None:
        self.setting = setting
        self.out = Assessment()
        self.looks = 0
        self.nested_bytes = 0
        self.nested_texts = 0
        self.steps = 0

    def finish(self) -> Assessment:
        unique = list(dict.fromkeys(self.out.reasons))
        unique.sort(key=lambda found: -found.risk.rank)
        self.out.reasons = _shorten(unique, lambda found: found.kind)
        self.out.labels = _shorten(list(dict.fromkeys(self.out.labels)), lambda found: found.label)
        return self.out

    def text(self, text: str, cwd: str | None, depth: int, tree: Tree | None = None) -> None:
        if depth:
            self.nested_bytes += len(text)
            self.nested_texts += 1
        if (
            depth > _MAX_DEPTH
            or self.nested_bytes > _MAX_NESTED_BYTES
            or self.nested_texts > _MAX_NESTED_TEXTS  # however short, each has to be parsed
        ):
            raise TooComplicated("commands are nested too deeply")
        if is_fork_bomb(text):
            self.add(RiskReason(Risk.IRRECOVERABLE, Kind.PROCESS, "starts itself without end", text[:80]))
        script = read_script(text, Start(cwd, self.setting.variables), tree)
        self.steps += script.steps
        if self.steps > _MAX_STEPS:
            raise TooComplicated("commands within it hold each other too often")
        if depth == 0:
            self.out.broken = script.broken
        for name in script.recursive_functions:
            self.add(RiskReason(Risk.IRRECOVERABLE, Kind.PROCESS, "starts itself without end", name))
        for command in script.commands:
            self.command(command, depth)

    def add(self, reason: RiskReason) -> None:
        self.out.reasons.append(reason)

    def command(self, command: SimpleCommand, depth: int) -> None:
        self.looks += 1
        if depth > _MAX_DEPTH or self.looks > _MAX_LOOKS:
            raise TooComplicated("it has too many or too deeply nested commands")
        scene = _Scene(self, command, depth)
        for redirect in command.redirects:
            self.out.reasons += _redirects(redirect, scene)
        self.out.labels += find_labels(command, self.setting.home, self.out.commands)
        for name, value in command.assignments:
            if name in _RUNS_ITS_VALUE:
                self.text(value.lstrip("|"), command.cwd, depth + 1)
        if not command.words:
            return
        self.out.commands.append(command.words)
        for found in self.findings(command, scene):
            self.add(found)

    def findings(self, command: SimpleCommand, scene: _Scene) -> Iterator[RiskReason]:
        words = command.words
        name = words[0].rpartition("/")[2]
        for prefix in self.setting.also:
            if (name, *words[1 : len(prefix)]) == prefix or words[: len(prefix)] == prefix:
                yield scene.found(Kind.CUSTOM, "is called destructive by the policy")
        if UNKNOWN in words[0] or GLOB in words[0]:
            yield scene.found(Kind.UNKNOWN, "which program runs is not known before")
            return
        for model in find_models(name):
            yield from _apply(model, words, scene)


def _apply(
    model: RiskModel, words: tuple[str, ...], scene: _Scene, inherited: Arity | None = None
) -> Iterator[RiskReason]:
    own = model.arity
    if inherited is not None:
        own = Arity(own.short | inherited.short, own.long | inherited.long, own.single_dash, own.permute)
    arguments = scan(words[1:], own)
    if model.check is not None:
        yield from model.check(arguments, scene)
    for danger in model.dangers:
        if danger.applies(arguments):
            yield scene.found(danger.kind, danger.what, danger.risk)
    if model.subcommands:
        chosen = next((operand for operand in arguments.operands if not operand.startswith("-")), None)
        if chosen is None:
            return
        if chosen in model.subcommands:
            index = words.index(chosen, 1)
            # Options may stand before the subcommand as well as after it.
            inner = (chosen, *words[1:index], *words[index + 1 :])
            yield from _apply(model.subcommands[chosen], inner, scene, Arity(own.short, own.long))
        elif UNKNOWN in chosen or GLOB in chosen:
            yield scene.found(Kind.UNKNOWN, "which subcommand runs is not known before")


def _redirects(redirect: Redirect, scene: _Scene) -> list[RiskReason]:
    target = redirect.target
    if redirect.operator == ">&" and re.fullmatch(r"[0-9]*-?", target):
        return []
    if redirect.operator in _OVERWRITES:
        return list(writes(target, scene))
    if redirect.operator in _APPENDS and classify(target, scene.cwd, scene.home) is Target.DEVICE:
        return [scene.found(Kind.DEVICE, "writes over a device", Risk.IRRECOVERABLE)]
    return []


@dataclass(eq=False)
class _Scene:
    looker: _Looker
    command: SimpleCommand
    depth: int

    @property
    def cwd(self) -> str | None:
        return self.command.cwd

    @property
    def home(self) -> str | None:
        return self.looker.setting.home

    @property
    def words(self) -> tuple[str, ...]:
        return self.command.words

    @property
    def stdin(self) -> str | None:
        return self.command.stdin

    @cached_property
    def _shown(self) -> str:
        return show(self.command.words)

    def found(self, kind: Kind, what: str, risk: Risk = Risk.DESTRUCTIVE) -> RiskReason:
        return RiskReason(risk, kind, what, self._shown)

    def look(self, words: Sequence[str], stdin: str | None = None) -> Iterable[RiskReason]:
        inner = self._inner()
        inner.command(SimpleCommand(tuple(words), stdin=stdin, cwd=self.cwd), self.depth + 1)
        return self._merge(inner)

    def look_text(self, text: str) -> Iterable[RiskReason]:
        inner = self._inner()
        inner.text(text, self.cwd, self.depth + 1)
        return self._merge(inner)

    def _inner(self) -> _Looker:
        inner = _Looker(self.looker.setting)
        inner.looks, inner.nested_bytes = self.looker.looks, self.looker.nested_bytes
        inner.nested_texts, inner.steps = self.looker.nested_texts, self.looker.steps
        return inner

    def _merge(self, inner: _Looker) -> list[RiskReason]:
        self.looker.looks, self.looker.nested_bytes = inner.looks, inner.nested_bytes
        self.looker.nested_texts, self.looker.steps = inner.nested_texts, inner.steps
        self.looker.out.commands += inner.out.commands
        self.looker.out.labels += inner.out.labels
        return inner.out.reasons


_CALL = re.compile(r"\(\s*\)")
_NAME_BEFORE = re.compile(r"([^\s;&|(){}<>'\"`$]{1,64})\s{0,8}$")


def is_fork_bomb(text: str) -> bool:
    """A function whose body starts itself twice at once, found in the text itself: the grammar may not know "
    "its name."""
    for count, match in enumerate(_CALL.finditer(text)):
        if count > 64:
            return False
        before = _NAME_BEFORE.search(text[max(0, match.start() - 72) : match.start()])
        if before is None:
            continue
        name = re.escape(before[1])
        body = text[match.end() : match.end() + 400]
        if re.search(rf"(?<![\w:]){name}\s{{0,8}}[|&]\s{{0,8}}&?\s{{0,8}}{name}(?![\w:])", body):
            return True
    return False
