from __future__ import annotations

from wsh.cli.declare import Option, command, json_option
from wsh.cli.output import print_json, print_table


@command("config", Option("--config", key="file", metavar="FILE", help="Another configuration file."), json_option)
def config(file: str | None, as_json: bool) -> None:
    """Show every setting with its value and where that came from."""
    import os

    from wsh.wire.setting import SETTINGS, load
    from wsh.wire.system.runtime_path import config_folder

    settings = load(file or os.path.join(config_folder(os.environ), "config.toml"))
    if as_json:
        print_json(
            {
                s.key: {"value": settings[s.key], "origin": settings.origins[s.key], "help": s.help, "env": s.env}
                for s in SETTINGS
            }
        )
        return
    rows = [(s.key, _show(settings[s.key]), settings.origins[s.key], s.help) for s in SETTINGS]
    print_table(("setting", "value", "from", "meaning"), rows)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else str(value)
