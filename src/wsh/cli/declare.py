"""How a command is declared, and how its words are read.

A command is a function with options and arguments in front of it. The reading is done here with nothing imported, because a parser
that takes longer to import than the interpreter takes to start would be most of what a short command costs. `wsh.cli.manual` turns the
same declarations into click commands for help, completion and manual pages.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wsh.wire.json.object import JsonObject


_TMUX = {
    "ls": "list", "ps": "list", "list-sessions": "list", "new-session": "new", "attach-session": "attach", "a": "attach", "at": "attach",
    "kill-session": "kill", "kill-server": "stop", "send-keys": "send", "capture-pane": "screen", "detach-client": "detach", "rename-session": "rename",
}  # fmt: skip
"""What other programs call our commands."""


class WrongUse(Exception):
    """The words do not fit the command; the text says which and what would."""

    def __init__(self, message: str, command: CliCommand | None = None) -> None:
        super().__init__(message)
        self.command = command


_SAME = {"timeout": "wait", "deadline": "wait", "lines": "limit", "readonly": "only"}
"""Words that other programs use in the names of options, and ours."""


class Failure(Exception):
    """The command could not do its work; the text is all that a person needs."""


class HelpWanted(Exception):
    """Somebody asked for a command's help."""

    def __init__(self, command: CliCommand) -> None:
        self.command = command


class Option:
    """An option. `kind` is str, int, float or bool; a bool takes no value."""

    def __init__(
        self,
        *names: str,
        kind: type = str,
        key: str | None = None,
        help: str = "",
        default: object = None,
        multiple: bool = False,
        required: bool = False,
        choices: Sequence[str] = (),
        metavar: str | None = None,
        least: int | None = None,
        constant: object = None,
        env: str | None = None,
        show_default: bool = False,
    ) -> None:
        self.names = names
        longest = max(names, key=len)
        self.key = key or longest.lstrip("-").replace("-", "_")
        self.kind, self.help, self.multiple, self.required = kind, help, multiple, required
        self.choices, self.metavar, self.least, self.env, self.show_default = choices, metavar, least, env, show_default
        self.constant = constant
        """What the option stands for where several options set one value; it takes no value of its own then."""
        self.default = () if multiple else False if kind is bool and constant is None and default is None else default

    @property
    def takes_value(self) -> bool:
        return self.kind is not bool and self.constant is None

    def read(self, text: str, command: CliCommand) -> object:
        label = max(self.names, key=len)
        if self.choices and text not in self.choices:
            allowed = ", ".join(self.choices)
            raise WrongUse(f"{label} takes one of {allowed}, not {text!r}.{near(text, self.choices)}", command)
        value = _convert(text, self.kind, label, command)
        if self.least is not None and isinstance(value, int) and value < self.least:
            raise WrongUse(f"{label} must be at least {self.least}.", command)
        return value


class Argument:
    """A word with a place. `rest` takes all words that follow it as they are, options of another program included."""

    def __init__(
        self,
        key: str,
        *,
        kind: type = str,
        many: bool = False,
        rest: bool = False,
        required: bool = True,
        default: object = None,
        choices: Sequence[str] = (),
        metavar: str | None = None,
        complete: str | None = None,
    ) -> None:
        self.key, self.kind, self.many, self.rest, self.choices = key, kind, many or rest, rest, choices
        self.required, self.default, self.complete = required and default is None, default, complete
        self.metavar = metavar or key.upper()

    @property
    def shown(self) -> str:
        name = f"{self.metavar}..." if self.many else self.metavar
        return name if self.required else f"[{name}]"

    def read(self, text: str, command: CliCommand) -> object:
        if self.choices and text not in self.choices:
            allowed = ", ".join(self.choices)
            raise WrongUse(f"{self.metavar} is one of {allowed}, not {text!r}.{near(text, self.choices)}", command)
        if self.complete == "session" and not text:
            raise WrongUse(f"{'SESSION' if self.many else self.metavar} is empty.", command)
        return _convert(text, self.kind, self.metavar, command)


class CliCommand:
    def __init__(self, name: str, run: Callable[..., object], parts: Sequence[Option | Argument]) -> None:
        self.name = name
        self.path = f"wsh {name}"
        self.run = run
        self.help = run.__doc__ or ""
        self.options = [part for part in parts if isinstance(part, Option)]
        self.arguments = [part for part in parts if isinstance(part, Argument)]
        self.commands: dict[str, CliCommand] = {}
        self.runs_alone = True
        """False for a group that does nothing by itself."""

    def command(self, name: str, *parts: Option | Argument) -> Callable[[Callable[..., object]], CliCommand]:
        """Declares a command of this group."""

        def declare(run: Callable[..., object]) -> CliCommand:
            made = CliCommand(name, run, parts)
            made.path = f"{self.path} {name}"
            self.commands[name] = made
            return made

        return declare

    @property
    def usage(self) -> str:
        words = " ".join(argument.shown for argument in self.arguments)
        tail = " COMMAND [ARGS]..." if self.commands else f" {words}" if words else ""
        return f"Usage: {self.path} [OPTIONS]{tail}"

    def parse(self, words: Sequence[str]) -> tuple[CliCommand, JsonObject]:
        """The command that is meant (this one or one of its group) and the values for its function. Raises WrongUse."""
        values: JsonObject = {}
        placed: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                placed += words[at:]
                break
            if word in ("--help", "-h"):
                raise HelpWanted(self)
            if len(word) > 1 and word[0] == "-":
                at = self._read_option(word, words, at, values)
            elif self.commands:
                return self._find(word).parse(words[at:])
            else:
                placed.append(word)
                if (
                    len(placed) > sum(not argument.many for argument in self.arguments)
                    and self.arguments[-1:]
                    and self.arguments[-1].rest
                ):
                    placed += words[at:]
                    break
        if self.commands and (placed or not self.runs_alone):
            if placed:
                return self._find(placed[0]).parse(placed[1:])
            raise HelpWanted(self)
        self._fill_options(values)
        self._fill_arguments(placed, values)
        return self, values

    def _find(self, word: str) -> CliCommand:
        if word not in self.commands:
            raise WrongUse(f"There is no command {word!r}.{near(word, self.commands)}", self)
        return self.commands[word]

    def _read_option(self, word: str, words: Sequence[str], at: int, values: JsonObject) -> int:
        """Reads the option at `word`; returns the index of the next word that is not read."""
        if word.startswith("--"):
            name, equals, given = word.partition("=")
            option = self._option(name)
            if equals and not option.takes_value:
                raise WrongUse(f"{name} takes no value.", self)
            value: str | None = given if equals else None
        else:
            # -abc is -a -b -c, up to the first that takes a value: that value is what is left of the word.
            option = self._option(word[:2])
            while not option.takes_value and len(word) > 2:
                self._set(option, None, values)
                word = "-" + word[2:]
                option = self._option(word[:2])
            value = word[2:] or None
        if option.takes_value and value is None:
            if at >= len(words):
                raise WrongUse(f"{max(option.names, key=len)} needs a value.", self)
            value = words[at]
            at += 1
        self._set(option, value, values)
        return at

    def _option(self, name: str) -> Option:
        for option in self.options:
            if name in option.names:
                return option
        known = [name for option in self.options for name in option.names]
        asked = {_SAME.get(word, word) for word in name.strip("-").split("-")}
        related = [one for one in known if asked & set(one.strip("-").split("-"))]
        hint = near(name, known) or (f" Did you mean {related[0]}?" if related else "")
        raise WrongUse(f"There is no option {name}.{hint}", self)

    def _set(self, option: Option, text: str | None, values: JsonObject) -> None:
        value = option.read(text, self) if text is not None else True if option.constant is None else option.constant
        values[option.key] = (*values.get(option.key, ()), value) if option.multiple else value

    def _fill_options(self, values: JsonObject) -> None:
        for option in self.options:
            if option.key in values:
                continue
            if option.env and os.environ.get(option.env):
                values[option.key] = option.read(os.environ[option.env], self)
            elif option.required:
                raise WrongUse(f"{max(option.names, key=len)} is missing.", self)
            else:
                values[option.key] = option.default

    def _fill_arguments(self, placed: list[str], values: JsonObject) -> None:
        left = list(placed)
        for index, argument in enumerate(self.arguments):
            behind = sum(1 for later in self.arguments[index + 1 :] if later.required)
            if argument.many:
                taken = left[: len(left) - behind] if behind else left
                left = left[len(taken) :]
                if argument.required and not taken:
                    raise WrongUse(f"{argument.metavar} is missing.", self)
                values[argument.key] = tuple(argument.read(word, self) for word in taken)
            elif left and (argument.required or len(left) > behind):
                values[argument.key] = argument.read(left.pop(0), self)
            elif argument.required:
                raise WrongUse(f"{argument.metavar} is missing.", self)
            else:
                values[argument.key] = argument.default
        if left:
            raise WrongUse(f"{left[0]!r} is one word too many.", self)


def command(name: str, *parts: Option | Argument) -> Callable[[Callable[..., object]], CliCommand]:
    """Declares the function below it as the command `wsh NAME`."""
    return lambda run: CliCommand(name, run, parts)


def group(name: str, *parts: Option, runs_alone: bool = False) -> Callable[[Callable[..., object]], CliCommand]:
    """Declares a command that has commands of its own."""

    def declare(run: Callable[..., object]) -> CliCommand:
        made = CliCommand(name, run, parts)
        made.runs_alone = runs_alone
        return made

    return declare


json_option = Option("--json", kind=bool, key="as_json", help="Print JSON.")
session_argument = Argument("session", complete="session")


def echo(text: str = "", *, err: bool = False, end: str = "\n") -> None:
    """Prints at once. A reader that has gone away ends the program quietly; a full disk is an OSError, told once."""
    stream = sys.stderr if err else sys.stdout
    try:
        try:
            stream.write(text + end)
        except UnicodeEncodeError:
            stream.buffer.write((text + end).encode(stream.encoding or "utf-8", "backslashreplace"))
        stream.flush()
    except OSError as problem:
        # What is still in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(problem, BrokenPipeError):
            raise SystemExit(1) from None
        raise


def _convert(text: str, kind: type, label: str, command: CliCommand) -> object:
    if kind is str or kind is bool:
        return text
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise WrongUse(f"{label} takes {wanted}, not {text!r}.", command) from None


def near(word: str, known: Iterable[str]) -> str:
    """A suggestion for a word that is not known."""
    known = list(known)
    found = min(known, key=lambda one: _distance(word, one), default="")
    if _TMUX.get(word) in known:
        found = _TMUX[word]
    is_close = found and (found == _TMUX.get(word) or _distance(word, found) <= max(1, len(word) // 3))
    return f" Did you mean {found}?" if is_close else ""


def _distance(one: str, other: str) -> int:
    """How many letters must be added, left out, changed or swapped with the next one. Without difflib, which imports re."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        older, before, row = before, row, [i + 1]
        for j, b in enumerate(other):
            least = min(before[j + 1] + 1, row[j] + 1, before[j] + (a != b))
            if i and j and a == other[j - 1] and b == one[i - 1]:
                least = min(least, older[j - 1] + 1)
            row.append(least)
    return row[-1]
