"""`wsh mcp`: MCP on stdin and stdout. `wsh mcp install`: the entry in a client's configuration.

Imports nothing of the SDK: a host that starts this waits for its first answer.
"""

from __future__ import annotations

from wsh.cli.declare import Failure, Option, WrongUse, echo, group, json_option
from wsh.cli.output import print_json
from wsh.wire.json.handshake import TOOLSETS

toolsets_option = Option(
    "--toolsets",
    metavar="LIST",
    help=f"Offer only these sets of tools, separated by commas: {', '.join(TOOLSETS)}.",
)


@group("mcp", toolsets_option, runs_alone=True)
def mcp(toolsets: str | None) -> int:
    """Speak MCP on stdin and stdout, for hosts that start their servers as processes.

    Starts an ephemeral server when none runs. The working directory and the variables ALLOWED_*, PM_* and WSH_* of this
    process govern the connection.
    """
    from wsh.client.launch import begin_server
    from wsh.wire.system.place import find_places

    names, places = _split_toolsets(toolsets), find_places()
    begun = begin_server(places)  # it starts while we import what follows
    from wsh.client.stdio_proxy import run_stdio_proxy

    return run_stdio_proxy(places, names, begun)


@mcp.command(
    "install",
    Option("--client", key="name", required=True, help="claude-code, claude-desktop, vscode, cursor or codex."),
    Option("--scope", choices=("user", "project"), help="Whose configuration; the client's usual one."),
    Option("--write", kind=bool, help="Write it. Without this, only show what would be written."),
    toolsets_option,
    json_option,
)
def install(name: str, scope: str | None, write: bool, toolsets: str | None, as_json: bool) -> None:
    """Show the configuration that lets an MCP client use wsh, and write it with --write."""
    from wsh.client.install import InstallError, find_client, plan

    try:
        change = plan(find_client(name), scope, _split_toolsets(toolsets))
    except InstallError as problem:
        raise Failure(str(problem)) from None
    if not as_json:
        if toolsets is None:
            echo(
                "For an agent that pays by the token, begin with --toolsets lean: six tools, texts within a budget.",
                err=True,
            )
        echo(f"{change.path}:")
        echo(change.shown.rstrip("\n"))
    writes = write and not change.unchanged
    if writes:
        try:
            change.write()
        except OSError as problem:
            raise Failure(f"{change.path} cannot be written: {problem.strerror}") from None
    if as_json:
        facts = {"client": name, "file": str(change.path), "entry": change.shown, "unchanged": change.unchanged}
        print_json(facts | {"written": writes})
    elif change.unchanged:
        echo("This is there already; nothing to do.", err=True)
    elif writes:
        echo(f"Written. {change.client.afterwards}", err=True)
    else:
        echo("Nothing was written; add --write to do it.", err=True)


def _split_toolsets(given: str | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (given or "").split(",") if part.strip())
    unknown = [name for name in names if name not in TOOLSETS]
    if unknown:
        raise WrongUse(f"--toolsets: {', '.join(unknown)}: choose from {', '.join(TOOLSETS)}.")
    return names
