from __future__ import annotations

import os

from wsh.cli.declare import Argument, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call, is_server_there


@command(
    "new",
    Option("--name", help="Name of the session; one is made up if left out."),
    Option("--rows", kind=int, help="Rows; default from the settings."),
    Option("--cols", kind=int, help="Columns; default from the settings."),
    Option("--cwd", help="Working directory; default: this one."),
    Option("--env", "-e", multiple=True, metavar="KEY=VALUE", help="Environment variable; may be given again."),
    Option("--on", metavar="WHERE", help="On the node of the fleet with the least load: tag:NAME, a node, or all."),
    Option("--tag", key="tags", multiple=True, help="Tag; may be given again."),
    Option(
        "--sandbox", metavar="PROFILE", help="Hold it in a sandbox: read-only, workspace, workspace+network or yours."
    ),
    json_option,
    Argument("words", metavar="COMMAND", rest=True, required=False),
)
def new(
    name: str | None,
    rows: int | None,
    cols: int | None,
    cwd: str | None,
    env: tuple[str, ...],
    on: str | None,
    tags: tuple[str, ...],
    sandbox: str | None,
    as_json: bool,
    words: tuple[str, ...],
) -> None:
    """Create a session that runs COMMAND, or a shell, and print its name. HOST/NAME in front of it makes one on another machine.

    One word is a command line as you would type it; several are a program and its arguments. Options stand before them.
    """
    if name is None and words and is_address(words):
        name, words = words[0], words[2 if words[1:2] == ("--",) else 1 :]
    if on is not None:
        if name is not None and "/" in name:
            raise WrongUse("--on chooses the machine; leave HOST/ out of the name.")
        from wsh.cli.fleet import place

        node = place(on)
        name = name if node is None else f"{node}/{name or ''}"
    # A folder of this machine means nothing on another.
    where = cwd if name is not None and "/" in name else os.path.abspath(cwd or os.getcwd())
    asked: dict[str, object] = {
        "sandbox": sandbox,
        "name": name,
        "command": command_line(words),
        "rows": rows,
        "cols": cols,
        "cwd": where,
    }
    body: dict[str, object] = {key: value for key, value in asked.items() if value is not None}
    if env:
        body["env"] = dict(map(_split, env))
    if tags:
        body["tags"] = list(tags)
    info = call("POST", "/sessions", json_body=body, doing="starting")
    if as_json:
        print_json(info)
    else:
        echo(info["name"])


def is_address(words: tuple[str, ...]) -> bool:
    """Whether the first word names a session on another machine rather than a program in a folder."""
    host, slash, _ = words[0].partition("/")
    if not slash or not host or host.startswith((".", "~")) or os.path.exists(words[0]):
        return False
    from wsh.cli.host import read_names

    return host in read_names() or _is_node(host)


def _is_node(name: str) -> bool:
    """Whether this server's fleet has another node of that name."""
    from wsh.wire.error import WshError

    if not is_server_there():
        return False
    try:
        return any(one["name"] == name for one in call("GET", "/fleet", start=False)["nodes"] if not one["here"])
    except WshError:
        return False


def command_line(words: tuple[str, ...]) -> str | None:
    """One word as it is, several quoted for a shell, None for none."""
    if len(words) < 2:
        return words[0] if words else None
    from shlex import join

    return join(words)


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise WrongUse(f"{pair!r} is not KEY=VALUE.")
    return key, value
