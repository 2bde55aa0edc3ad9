from __future__ import annotations

from wsh.cli.declare import Argument, command, echo, json_option
from wsh.cli.output import print_json


@command("shell-integration", json_option, Argument("shell", choices=("bash", "zsh", "fish")))
def shell_integration(as_json: bool, shell: str) -> None:
    """Print what to source in a SHELL inside of a session's shell, so that it tells prompts and commands too.

    Shells that wsh starts need nothing. In a nested one: `source <(wsh shell-integration bash)`, in fish `wsh shell-integration
    fish | source`. Where wsh is not installed, as behind ssh, copy the printed text there and source it; it serves one shell.
    """
    from wsh.session.shell.injection import write_by_hand

    script = write_by_hand(shell)  # type: ignore[arg-type]  # one of the choices
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        echo(script, end="")
