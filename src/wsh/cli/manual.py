"""Commands as click objects, for what is read by people: help, completion scripts and manual pages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from wsh.cli.declare import Argument, CliCommand, Option
from wsh.cli.example import EXAMPLES
from wsh.cli.output import style
from wsh.wire.json.object import JsonObject


def show_help(command: CliCommand) -> None:
    made = to_click(command)
    parent = click.Context(click.Command("wsh"), info_name="wsh")
    for name in command.path.split()[1:-1]:
        parent = click.Context(click.Command(name), info_name=name, parent=parent)
    with click.Context(made, info_name=command.path.split()[-1], parent=parent) as context:
        text = made.get_help(context)
    examples = EXAMPLES.get(command.path.split()[1], ()) if len(command.path.split()) == 2 else ()
    if examples:
        text += "\n\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    # Headings stand out on a terminal.
    click.echo(
        re.sub(
            r"^(Usage|Options|Commands|Examples):", lambda found: style(found.group(), "1"), text, flags=re.MULTILINE
        )
    )


def to_click(command: CliCommand) -> click.Command:
    """The command with the same options, arguments and help."""
    parts: list[click.Parameter] = [*map(_to_option, command.options), *map(_to_argument, command.arguments)]
    facts: JsonObject = {
        "name": command.name,
        "help": command.help,
        "params": parts,
        "callback": _callback(command),
        "context_settings": {"help_option_names": ["-h", "--help"]},
    }
    if command.commands:
        inner = {name: to_click(one) for name, one in command.commands.items()}
        return click.Group(commands=inner, invoke_without_command=command.runs_alone, **facts)
    return click.Command(**facts)


def _callback(command: CliCommand) -> Callable[..., object]:
    def run(**values: object) -> object:
        return command.run(**values)

    return run


def _to_option(option: Option) -> click.Option:
    facts: JsonObject = {
        "help": option.help,
        "multiple": option.multiple,
        "required": option.required,
        "metavar": option.metavar,
        "show_default": option.show_default,
    }
    if not option.takes_value:
        facts |= {"is_flag": True}
    else:
        facts |= {"type": click.Choice(list(option.choices)) if option.choices else option.kind}
    if option.default is not None:
        facts["default"] = option.default
    return click.Option([*option.names, option.key], **facts)


def _to_argument(argument: Argument) -> click.Argument:
    facts: JsonObject = {"required": argument.required, "metavar": argument.shown}
    if argument.many:
        facts["nargs"] = -1
    facts["type"] = click.Choice(list(argument.choices)) if argument.choices else argument.kind
    if argument.complete == "session":
        facts["shell_complete"] = complete_session
    return click.Argument([argument.key], **facts)


def complete_session(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of this user's sessions. Completing a word never starts a server."""
    from wsh.cli.request import ANSWER_S, call

    try:
        found = call("GET", "/sessions", start=False, answer_s=ANSWER_S)
    except Exception:  # a completion that cannot be had is no completion, whatever the reason
        return []
    return [CompletionItem(item["name"], help=item["command"]) for item in found if item["name"].startswith(begun)]


def complete() -> int:
    """Answers the completion script of a shell, which says in _WSH_COMPLETE what it wants.

    A person who presses Tab waits for this, so only the command that is being typed is loaded.
    """
    from click.shell_completion import shell_complete

    from wsh.cli.main import COMMANDS, load_command

    typed = os.environ.get("COMP_WORDS", "").split()
    known = {
        name: to_click(load_command(name)) if name in typed else click.Command(name, help=summary)
        for group in COMMANDS.values()
        for name, summary in group.items()
    }
    return shell_complete(click.Group("wsh", commands=known), {}, "wsh", "_WSH_COMPLETE", os.environ["_WSH_COMPLETE"])
