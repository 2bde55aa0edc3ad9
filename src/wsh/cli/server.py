"""`wsh server`: run the server in the foreground."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wsh.cli.output import json_option
from wsh.wire.name import check_session_name
from wsh.wire.place import find_places
from wsh.wire.setting import SettingError, load


@click.command()
@click.option("--bind", metavar="HOST:PORT", help="Where to listen (default 127.0.0.1:8080, or the next free port).")
@click.option("--name", metavar="NAME", help="Name of this server; each name has its own sessions.")
@click.option("--ephemeral", is_flag=True, help="End when the last client has left and no session is to be kept.")
@click.option("--max-sessions", type=int, metavar="N", help="Sessions at once.")
@click.option("--tls-cert", metavar="FILE", help="PEM certificate; with --tls-key the server speaks TLS.")
@click.option("--tls-key", metavar="FILE", help="PEM private key.")
@click.option("--base-prefix", metavar="PATH", help="Serve every route below this path as well.")
@click.option("--cors-origin", multiple=True, metavar="ORIGIN", help="Let pages of this origin call the API.")
@click.option("--toolsets", metavar="LIST", help="Families of MCP tools to offer, separated by commas.")
@click.option("--token", metavar="TOKEN", envvar="WSH_TOKEN", help="The owner's token for this run.")
@click.option("--config", "config", metavar="FILE", type=click.Path(dir_okay=False), help="Read this config.toml.")
@json_option
def server(
    bind: str | None,
    name: str | None,
    ephemeral: bool,
    max_sessions: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    base_prefix: str | None,
    cors_origin: tuple[str, ...],
    toolsets: str | None,
    token: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Serve terminals over HTTP, WebSocket, MCP and a unix socket.

    Ends on Ctrl+C or SIGTERM and leaves the sessions to the next server; `wsh stop` ends the sessions too.
    """
    from wsh.app import ServerOptions, run_server

    if name is not None:
        check_session_name(name)
    places = find_places(server=name)
    if config is not None and not Path(config).is_file():
        raise SettingError(f"there is no file {config}")
    flags = {
        "server.bind": bind,
        "server.max_sessions": max_sessions,
        "server.tls_cert": tls_cert,
        "server.tls_key": tls_key,
        "server.base_prefix": base_prefix,
        "server.cors_origins": list(cors_origin) or None,
        "mcp.toolsets": toolsets,
    }
    settings = load(Path(config) if config else places.config_file, flags=flags)
    options = ServerOptions(ephemeral=ephemeral, token=token, announce=_say, as_json=as_json)
    status = run_server(places, settings, options)
    sys.exit(status)


def _say(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()
