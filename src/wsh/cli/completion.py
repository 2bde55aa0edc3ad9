from __future__ import annotations

from wsh.cli.declare import Argument, command, echo, json_option
from wsh.cli.output import print_json


@command("completion", json_option, Argument("shell", choices=("bash", "zsh", "fish")))
def completion(as_json: bool, shell: str) -> None:
    """Print the completion script for SHELL, to be sourced by it."""
    from click import Group
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(Group("wsh"), {}, "wsh", "_WSH_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        echo(script)
