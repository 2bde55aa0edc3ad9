"""`wsh server`: run the server in the foreground."""

from __future__ import annotations

from wsh.cli.declare import Option, command, echo, json_option


@command(
    "server",
    Option("--bind", metavar="HOST:PORT", help="Where to listen (default 127.0.0.1:8080, or the next free port)."),
    Option("--name", metavar="NAME", help="Name of this server; each name has its own sessions."),
    Option("--ephemeral", kind=bool, help="End when the last client has left and no session is to be kept."),
    Option("--stand-in", kind=bool, help="Give way to the next `wsh server`, as an ephemeral one does."),
    Option("--max-sessions", kind=int, metavar="N", help="Sessions at once."),
    Option("--tls-cert", metavar="FILE", help="PEM certificate; with --tls-key the server speaks TLS."),
    Option("--tls-key", metavar="FILE", help="PEM private key."),
    Option("--base-prefix", metavar="PATH", help="Serve every route below this path as well."),
    Option("--cors-origin", multiple=True, metavar="ORIGIN", help="Let pages of this origin call the API."),
    Option("--toolsets", metavar="LIST", help="Families of MCP tools to offer, separated by commas."),
    Option("--join", metavar="URL", help="Join the fleet at this NATS server, such as nats://10.0.0.1:4222."),
    Option("--credentials", metavar="FILE", help="With --join: what `wsh fleet invite` made."),
    Option("--token", metavar="TOKEN", env="WSH_TOKEN", help="One more owner's token, for this run alone."),
    Option("--config", metavar="FILE", help="Read this config.toml."),
    json_option,
)
def server(
    bind: str | None,
    name: str | None,
    ephemeral: bool,
    stand_in: bool,
    max_sessions: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    base_prefix: str | None,
    cors_origin: tuple[str, ...],
    toolsets: str | None,
    join: str | None,
    credentials: str | None,
    token: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Serve terminals over HTTP, WebSocket, MCP and a unix socket.

    Ends on Ctrl+C or SIGTERM and leaves the sessions to the next server; `wsh stop` ends the sessions too. Where an ephemeral
    server runs, this one takes its place and its sessions.
    """
    import os
    from pathlib import Path

    from wsh.app.boot import ServerOptions, run_server
    from wsh.wire.name import check_session_name
    from wsh.wire.setting import SettingError, load
    from wsh.wire.system.hidden_word import hide_word
    from wsh.wire.system.place import find_places

    if token is not None:
        hide_word(token)
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
        "fleet.url": join,
        "fleet.credentials": credentials and os.path.abspath(credentials),
    }
    settings = load(Path(config) if config else places.config_file, flags=flags)
    words = {
        "--max-sessions": max_sessions,
        "--tls-cert": tls_cert and os.path.abspath(tls_cert),
        "--tls-key": tls_key and os.path.abspath(tls_key),
        "--base-prefix": base_prefix,
        "--toolsets": toolsets,
        "--join": join,
        "--credentials": credentials and os.path.abspath(credentials),
        "--config": config and os.path.abspath(config),
    }
    arguments = [f"{name}={value}" for name, value in words.items() if value is not None]
    arguments += [f"--cors-origin={origin}" for origin in cors_origin]
    options = ServerOptions(
        ephemeral=ephemeral,
        token=token,
        announce=echo,
        as_json=as_json,
        stand_in=stand_in,
        arguments=tuple(arguments),
    )
    return run_server(places, settings, options)
