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


@dataclass(frozen=True)
class Model:
    flags: frozenset[str] = frozenset()
    """Options without a value: `-a`, `--all`."""
    values: frozenset[str] = frozenset()
    """Options with a value: `-n 5`, `-n5`, `--lines=5`, `--lines 5`."""
    optional: frozenset[str] = frozenset()
    """Long options whose value, if any, is attached: `--color=auto`."""
    operands: int | None = None
    """How many operands are permitted; None for any number."""
    digits: bool = False
    """`-5` is a number."""
    long_dash: bool = False
    """`-name` is one option, not a cluster."""
    check_operand: Callable[[str], str | None] | None = None
    check_value: Callable[[str, str], str | None] | None = None


def model(
    flags: str = "",
    *,
    values: str = "",
    optional: str = "",
    operands: int | None = None,
    digits: bool = False,
    check_operand: Callable[[str], str | None] | None = None,
    check_value: Callable[[str, str], str | None] | None = None,
) -> Model:
    """`model("-abc --all", values="-n --lines")`; clusters of short letters are spread."""
    spread = set()
    for word in flags.split():
        spread |= {word} if word.startswith("--") else {f"-{letter}" for letter in word[1:]}
    taking = set()
    for word in values.split():
        taking |= {word} if word.startswith("--") else {f"-{letter}" for letter in word[1:]}
    help_too = frozenset({"--help", "--version"})
    return Model(
        frozenset(spread) | help_too,
        frozenset(taking),
        frozenset(optional.split()),
        operands,
        digits,
        check_operand=check_operand,
        check_value=check_value,
    )


def judge(known: Model, arguments: Sequence[str]) -> str | None:
    """What in `arguments` is not known to be harmless; None if all is."""
    operands = 0
    position, size = 0, len(arguments)
    only_operands = False
    while position < size:
        argument = arguments[position]
        position += 1
        if only_operands or argument == "-" or not argument.startswith("-"):
            operands += 1
            if known.operands is not None and operands > known.operands:
                return f"the operand {argument!r} is one too many"
            fault = known.check_operand(argument) if known.check_operand else None
            if fault:
                return fault
        elif argument == "--":
            only_operands = True
        elif argument.startswith("--"):
            name, equals, value = argument.partition("=")
            if equals:
                if name not in known.values and name not in known.optional:
                    return f"the option {name} is not known to be harmless"
            elif name in known.values:
                if position >= size:
                    return f"the option {name} lacks its value"
                value = arguments[position]
                position += 1
                if value.startswith("-") and not _NUMBER_VALUE.match(value):
                    return f"the value of {name} looks like an option"
            elif name not in known.flags and name not in known.optional:
                return f"the option {name} is not known to be harmless"
            fault = known.check_value(name, value) if known.check_value else None
            if fault:
                return fault
        elif known.digits and re.fullmatch(r"-\d{1,18}", argument):
            continue
        else:
            for index, letter in enumerate(argument[1:], 1):
                name = f"-{letter}"
                if name in known.flags:
                    continue
                if name not in known.values:
                    return f"the option {name} is not known to be harmless"
                value = argument[index + 1 :]
                if not value:
                    if position >= size:
                        return f"the option {name} lacks its value"
                    value = arguments[position]
                    position += 1
                    if value.startswith("-") and not _NUMBER_VALUE.match(value):
                        return f"the value of {name} looks like an option"
                fault = known.check_value(name, value) if known.check_value else None
                if fault:
                    return fault
                break
    return None


def judged(known: Model) -> Judge:
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
