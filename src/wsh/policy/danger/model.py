"""The shape of a risk model: a program, its options, its subcommands, and which of them destroy something.

Most of a model is data (`Danger`). What data cannot say is a `check`: a function that looks at the arguments in their
scene and yields findings, or asks the scene to look at a command inside the command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wsh.policy.parse.option import Arguments, Arity, arity
from wsh.policy.verdict import Kind, Risk, RiskReason


class Scene(Protocol):
    """Where a command stands, and the way to look at a command within it."""

    @property
    def cwd(self) -> str | None: ...
    @property
    def home(self) -> str | None: ...
    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def stdin(self) -> str | None: ...

    def found(self, kind: Kind, what: str, risk: Risk = Risk.DESTRUCTIVE) -> RiskReason:
        """A finding about this command."""

    def look(self, words: Sequence[str], stdin: str | None = None) -> Iterable[RiskReason]:
        """Findings about a command that this one runs."""

    def look_text(self, text: str) -> Iterable[RiskReason]:
        """Findings about a shell script that this one runs."""


Check = Callable[[Arguments, Scene], Iterable[RiskReason]]


@dataclass(frozen=True)
class Danger:
    """A finding if one of `options` is given (any, if empty), an operand matches, and nothing in `unless` is given."""

    kind: Kind
    what: str
    options: tuple[str, ...] = ()
    operand: re.Pattern[str] | None = None
    at_least: int = 0
    unless: tuple[str, ...] = ()
    risk: Risk = Risk.DESTRUCTIVE

    def applies(self, arguments: Arguments) -> bool:
        if self.options and not arguments.has(*self.options):
            return False
        if self.unless and arguments.has(*self.unless):
            return False
        if len(arguments.operands) < self.at_least:
            return False
        return self.operand is None or any(self.operand.search(operand) for operand in arguments.operands)


@dataclass(frozen=True)
class RiskModel:
    arity: Arity = field(default_factory=Arity)
    dangers: tuple[Danger, ...] = ()
    check: Check | None = None
    subcommands: Mapping[str, RiskModel] = field(default_factory=dict)


def danger(
    kind: Kind,
    what: str,
    options: str = "",
    *,
    operand: str | None = None,
    at_least: int = 0,
    unless: str = "--help --version",
    risk: Risk = Risk.DESTRUCTIVE,
) -> Danger:
    pattern = re.compile(operand) if operand is not None else None
    return Danger(kind, what, tuple(options.split()), pattern, at_least, tuple(unless.split()), risk)


def program(
    *dangers: Danger,
    values: str = "",
    check: Check | None = None,
    subcommands: Mapping[str, RiskModel] | None = None,
    single_dash: bool = False,
    permute: bool = True,
) -> RiskModel:
    """A model. Keys of `subcommands` may hold several names: `{"rm remove": ...}`."""
    spread = {name: model for names, model in (subcommands or {}).items() for name in names.split()}
    return RiskModel(arity(values, single_dash=single_dash, permute=permute), tuple(dangers), check, spread)


def always(kind: Kind, what: str, values: str = "", at_least: int = 0, single_dash: bool = False) -> RiskModel:
    """A program (or subcommand) that destroys whenever it is run in earnest."""
    return program(danger(kind, what, at_least=at_least), values=values, single_dash=single_dash)
