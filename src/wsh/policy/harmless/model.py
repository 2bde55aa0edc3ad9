"""Argument models: which arguments of a program are known to do no harm.

No execution, no writing, no other repository's configuration. A model lists what is permitted; an option it does not
list, an abbreviation, or a value that looks like an option is refused, so that a gap in a model denies instead of
allowing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Judge = Callable[[Sequence[str]], str | None]
"""Looks at arguments; says what is not known to be harmless, or None."""

_NUMBER_VALUE = re.compile(r"^-\d+[A-Za-z]?$")
_NUMBER = re.compile(r"-\d{1,18}")


@dataclass(frozen=True)
class ArgumentModel:
    flags: frozenset[str] = frozenset()
    """Options without a value: `-a`, `--all`."""
    values: frozenset[str] = frozenset()
    """Options with a value: `-n 5`, `-n5`, `--lines=5`, `--lines 5`."""
    optional: frozenset[str] = frozenset()
    """Options whose value, if any, is attached: `--color=auto`, `-Iseconds`."""
    defaulting: frozenset[str] = frozenset()
    """Those of `values` that may do without it as the last word: `git branch --merged`."""
    pairs: frozenset[str] = frozenset()
    """Options with two values: `--arg NAME VALUE`."""
    operands: int | None = None
    """How many operands are permitted; None for any number."""
    digits: bool = False
    """`-5` is a number."""
    ordered: bool = False
    """Options stand before operands; one that follows them might be taken for an operand."""
    clusters: bool = True
    """`-n5` is `-n 5`. Without, an option with a value is a word of its own, and so is the value."""
    check_operand: Callable[[str], str | None] | None = None
    check_value: Callable[[str, str], str | None] | None = None


def model(
    flags: str = "",
    *,
    values: str = "",
    optional: str = "",
    defaulting: str = "",
    pairs: str = "",
    operands: int | None = None,
    digits: bool = False,
    ordered: bool = False,
    clusters: bool = True,
    check_operand: Callable[[str], str | None] | None = None,
    check_value: Callable[[str, str], str | None] | None = None,
) -> ArgumentModel:
    """`model("-abc --all", values="-n --lines")`; clusters of short letters are spread."""
    return ArgumentModel(
        _spread(flags) | {"--help", "--version"},
        _spread(values) | _spread(defaulting),
        _spread(optional),
        _spread(defaulting),
        frozenset(pairs.split()),
        operands,
        digits,
        ordered,
        clusters,
        check_operand=check_operand,
        check_value=check_value,
    )


def _spread(words: str) -> frozenset[str]:
    spread: set[str] = set()
    for word in words.split():
        spread |= {word} if word.startswith("--") else {f"-{letter}" for letter in word[1:]}
    return frozenset(spread)


@dataclass
class Understood:
    """Arguments taken apart: options with their values, and operands."""

    options: list[tuple[str, str | None]] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        return {name for name, _ in self.options}

    def values(self, *names: str) -> list[str]:
        return [value or "" for name, value in self.options if name in names]


class NotKnown(Exception):
    """An argument that a model does not know to be harmless; the message says which."""


def understand(known: ArgumentModel, arguments: Sequence[str]) -> Understood:
    """`arguments` as a program of this model reads them. Raises NotKnown."""
    return _Reader(known, arguments).read()


def judge(known: ArgumentModel, arguments: Sequence[str]) -> str | None:
    """What in `arguments` is not known to be harmless; None if all is."""
    try:
        understand(known, arguments)
    except NotKnown as problem:
        return str(problem)
    return None


class _Reader:
    def __init__(self, known: ArgumentModel, arguments: Sequence[str]) -> None:
        self.known = known
        self.waiting = list(reversed(arguments))
        self.found = Understood()

    def read(self) -> Understood:
        only_operands = False
        while self.waiting:
            argument = self.waiting.pop()
            if only_operands or argument == "-" or not argument.startswith("-"):
                self._operand(argument)
            elif argument == "--":
                if self.found.operands and self.known.ordered:
                    raise NotKnown("-- follows an operand")
                only_operands = True
            elif self.found.operands and self.known.ordered:
                raise NotKnown(f"the option {argument!r} follows an operand")
            elif argument.startswith("--"):
                self._long(argument)
            elif self.known.digits and _NUMBER.fullmatch(argument):
                continue
            elif self.known.clusters or argument[:2] in self.known.flags:
                self._cluster(argument)
            else:
                self._word(argument)
        return self.found

    def _operand(self, operand: str) -> None:
        self.found.operands.append(operand)
        if self.known.operands is not None and len(self.found.operands) > self.known.operands:
            raise NotKnown(f"the operand {operand!r} is one too many")
        fault = self.known.check_operand(operand) if self.known.check_operand else None
        if fault:
            raise NotKnown(fault)

    def _long(self, argument: str) -> None:
        name, equals, value = argument.partition("=")
        if equals:
            if name not in self.known.values and name not in self.known.optional:
                raise NotKnown(f"the option {name} is not known to be harmless")
            self._option(name, value)
        else:
            self._word(name)

    def _word(self, name: str) -> None:
        """An option that is a whole word."""
        if name in self.known.values:
            self._option(name, self._next(name))
        elif name in self.known.pairs:
            self._option(name, self._next(name))
            self._option(name, self._next(name))
        elif name in self.known.flags or name in self.known.optional:
            self._option(name, None)
        else:
            raise NotKnown(f"the option {name} is not known to be harmless")

    def _cluster(self, argument: str) -> None:
        for index, letter in enumerate(argument[1:], 1):
            name, rest = f"-{letter}", argument[index + 1 :]
            if name in self.known.optional:
                self._option(name, rest or None)
                return
            if name in self.known.values and self.known.clusters:
                self._option(name, rest or self._next(name))
                return
            if name not in self.known.flags:
                raise NotKnown(f"the option {name} is not known to be harmless")
            self._option(name, None)

    def _next(self, name: str) -> str:
        if not self.waiting:
            if name in self.known.defaulting:
                return ""
            raise NotKnown(f"the option {name} lacks its value")
        value = self.waiting.pop()
        if value.startswith("-") and not _NUMBER_VALUE.match(value):
            raise NotKnown(f"the value of {name} looks like an option")
        return value

    def _option(self, name: str, value: str | None) -> None:
        self.found.options.append((name, value))
        fault = self.known.check_value(name, value or "") if self.known.check_value else None
        if fault:
            raise NotKnown(fault)


def judged(known: ArgumentModel) -> Judge:
    def apply(arguments: Sequence[str]) -> str | None:
        return judge(known, arguments)

    return apply


@dataclass(frozen=True)
class Branches:
    """A program of subcommands: each has a judge of its own; anything before the subcommand is refused."""

    subcommands: Mapping[str, Judge] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    """Arguments permitted instead of a subcommand, such as --version."""

    def __call__(self, arguments: Sequence[str]) -> str | None:
        if not arguments:
            return None
        first = arguments[0]
        if len(arguments) == 1 and first in self.alone:
            return None
        chosen = self.subcommands.get(first)
        if chosen is None:
            return f"{first!r} is not a subcommand known to be harmless"
        return chosen(arguments[1:])
