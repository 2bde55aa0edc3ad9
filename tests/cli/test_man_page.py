"""Help and manual pages have every command, every option, and examples that the command line understands."""

from __future__ import annotations

import shlex
import subprocess
import sys

from wsh.cli.declare import CliCommand
from wsh.cli.example import EXAMPLES
from wsh.cli.main import NAMES, load_command
from wsh.cli.man_page import render_man_pages


def test_every_example_is_understood() -> None:
    assert set(EXAMPLES) <= set(NAMES)
    for examples in EXAMPLES.values():
        for example in examples:
            words = shlex.split(example.removeprefix("source <(").removesuffix(")"))
            words = words[words.index("wsh") + 1 :]
            end = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
            load_command(words[0]).parse(words[1:end])


def test_help_ends_with_examples() -> None:
    words = [sys.executable, "-m", "wsh.cli.main", "export", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.rstrip().endswith("\n".join(f"  {example}" for example in EXAMPLES["export"]))
    assert "\x1b" not in done.stdout


def test_every_command_has_a_page_with_all_its_options() -> None:
    pages = render_man_pages()
    assert set(pages) == {"wsh.1"} | {f"wsh-{name}.1" for name in NAMES}
    for name in NAMES:
        commands: list[CliCommand] = [load_command(name), *load_command(name).commands.values()]
        for command in commands:
            for option in command.options:
                spelled = max(option.names, key=len).replace("-", "\\-")
                assert spelled in pages[f"wsh-{name}.1"], (command.path, spelled)
