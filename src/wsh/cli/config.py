from __future__ import annotations

from pathlib import Path

import click

from wsh.cli.output import json_option, print_json, print_table
from wsh.wire.place import find_places
from wsh.wire.setting import SETTINGS, load


@click.command("config")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Another configuration file.")
@json_option
def config(file: Path | None, as_json: bool) -> None:
    """Show every setting with its value and where that came from."""
    settings = load(file or find_places().config_file)
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
