"""Take a command's arguments apart the way getopt does.

`Arity` says which options take a value. The same scanner serves risk (where an abbreviated or clustered option must
still be seen) and wrappers (where scanning stops at the first operand). Argument models of harmless programs have a
stricter scanner of their own (`harmless.model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wsh.policy.parse.word import UNKNOWN


@dataclass(frozen=True)
class Arity:
    """Options that take a value. `long` are names with their dashes."""

    short: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    single_dash: bool = False
    """Go style: `-auto-approve` is one option, nothing is clustered."""
    permute: bool = True
    """Options may follow operands."""


def arity(values: str = "", *, single_dash: bool = False, permute: bool = True) -> Arity:
    """`arity("-o --output")`: these take a value."""
    names = values.split()
    return Arity(
        frozenset(name[1] for name in names if not name.startswith("--") and len(name) == 2),
        frozenset(name for name in names if name.startswith("--") or len(name) > 2),
        single_dash,
        permute,
    )


@dataclass
class Arguments:
    options: list[tuple[str, str | None]] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    """What follows the first operand, it included, when scanning stopped there."""

    def has(self, *names: str) -> bool:
        return self.find(*names) is not None

    def find(self, *names: str) -> tuple[str, str | None] | None:
        """The first option that is, or abbreviates, one of `names`."""
        return next((option for option in self.options if _means(option[0], names)), None)

    def value(self, *names: str) -> str | None:
        """The value of the last option that is, or abbreviates, one of `names`."""
        values = self.values(*names)
        return values[-1] if values else None

    def values(self, *names: str) -> list[str]:
        """The values of all options that are, or abbreviate, one of `names`."""
        return [value for given, value in self.options if value is not None and _means(given, names)]


def _means(given: str, names: Sequence[str]) -> bool:
    return given in names or (
        len(given) > 2 and given.startswith("--") and any(name.startswith(given) for name in names)
    )


def scan(arguments: Sequence[str], spec: Arity) -> Arguments:
    out = Arguments()
    position, size = 0, len(arguments)
    while position < size:
        argument = arguments[position]
        position += 1
        if argument == "--":
            out.operands += arguments[position:]
            out.rest = list(arguments[position:])
            return out
        if not argument.startswith("-") or argument == "-" or argument.startswith(UNKNOWN):
            if not spec.permute:
                out.rest = list(arguments[position - 1 :])
                out.operands += out.rest
                return out
            out.operands.append(argument)
            continue
        if argument.startswith("--") or spec.single_dash:
            name, equals, value = argument.partition("=")
            taken: str | None = value if equals else None
            if not equals and _takes_value(name, spec) and position < size:
                taken = arguments[position]
                position += 1
            out.options.append((name, taken))
            continue
        if argument in spec.long:  # find-style or historical: -name VALUE
            taken = arguments[position] if position < size else None
            position += 1
            out.options.append((argument, taken))
            continue
        for index, letter in enumerate(argument[1:], 1):
            if letter in spec.short:
                attached = argument[index + 1 :]
                taken = attached or (arguments[position] if position < size else None)
                if not attached:
                    position += 1
                out.options.append((f"-{letter}", taken))
                break
            out.options.append((f"-{letter}", None))
    return out


def _takes_value(name: str, spec: Arity) -> bool:
    if name in spec.long:
        return True
    if spec.single_dash:
        return f"-{name}" in spec.long or (len(name) == 2 and name[1] in spec.short)
    return len(name) > 2 and sum(known.startswith(name) for known in spec.long) == 1
