"""Manual pages for the command line, made from the same declarations as its help."""

from __future__ import annotations

import re

from wsh.cli.declare import CliCommand, Option
from wsh.cli.example import EXAMPLES
from wsh.cli.main import COMMANDS, NAMES, load_command
from wsh.wire.version import VERSION


def render_man_pages() -> dict[str, str]:
    """Pages by the name of their file: wsh.1, and one for each command."""
    pages = {"wsh.1": _render_overview()}
    for name in NAMES:
        pages[f"wsh-{name}.1"] = _render_command(load_command(name))
    return pages


def _render_overview() -> str:
    lines = [*_head("wsh", "one terminal server that AI agents and people share"), _bold("wsh [COMMAND] [ARGS]...")]
    lines += [".SH DESCRIPTION", "Without a command: a new session in this directory, shown in this terminal."]
    for title, commands in COMMANDS.items():
        lines.append(f".SH {_quote(title.upper())}")
        for name, summary in commands.items():
            lines += [".TP", _bold(f"wsh-{name}(1)"), _text(summary)]
    return "\n".join(lines) + "\n"


def _render_command(command: CliCommand) -> str:
    name = command.path.split()[1]
    summary, *more = _paragraphs(command.help)
    lines = [*_head(f"wsh-{name}", summary.rstrip(".")), _bold(command.usage.removeprefix("Usage: "))]
    lines += [".SH DESCRIPTION", _text(summary)]
    for paragraph in more:
        lines += [".PP", _text(paragraph)]
    lines += _options(command)
    for one in command.commands.values():
        lines += [f".SH {_quote(one.path.upper())}", _bold(one.usage.removeprefix("Usage: "))]
        for paragraph in _paragraphs(one.help):
            lines += [".PP", _text(paragraph)]
        lines += _options(one, heading=False)
    if name in EXAMPLES:
        lines += [".SH EXAMPLES", ".nf", *map(_text, EXAMPLES[name]), ".fi"]
    return "\n".join([*lines, ".SH SEE ALSO", _bold("wsh(1)")]) + "\n"


def _head(name: str, summary: str) -> list[str]:
    title = f".TH {_quote(name.upper())} 1 {_quote('')} {_quote(f'wsh {VERSION}')} {_quote('wsh manual')}"
    return [title, ".SH NAME", f"{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS"]


def _options(command: CliCommand, heading: bool = True) -> list[str]:
    lines = [".SH OPTIONS"] if heading and command.options else []
    for option in command.options:
        lines += [".TP", _bold(_spell(option)), _text(option.help or "See above.")]
    return lines


def _spell(option: Option) -> str:
    value = "|".join(option.choices) or option.metavar or option.kind.__name__.upper().replace("STR", "TEXT")
    return ", ".join(option.names) + (f" {value}" if option.takes_value else "")


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _bold(text: str) -> str:
    return f".B {_quote(text)}"


def _quote(text: str) -> str:
    return '"' + _text(text).replace('"', "\\(dq") + '"'


def _text(text: str) -> str:
    """`text` without what troff would take for itself."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text
