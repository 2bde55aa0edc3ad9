"""What the person chose for the window itself: the `desktop.*` settings, written back to `config.toml`.

A setting that the environment or the command line fixes cannot be changed from the window, and says so.
"""

from __future__ import annotations

from pathlib import Path

import tomlkit

from wsh.desktop.scene import Preferences
from wsh.policy.edit import locked
from wsh.wire.place import write_private
from wsh.wire.setting import BY_KEY, Settings, load, parse

_KEYS = {field: f"desktop.{field}" for field in ("theme", "notify", "come_forward", "keep_in_tray")}


class PreferenceFixed(ValueError):
    """The setting comes from somewhere that the window does not write."""


def read_preferences(settings: Settings) -> Preferences:
    return Preferences(
        theme=settings.get_str("desktop.theme"),
        notify=settings.get_bool("desktop.notify"),
        come_forward=settings.get_bool("desktop.come_forward"),
        keep_in_tray=settings.get_bool("desktop.keep_in_tray"),
    )


def write_preference(config_file: Path, name: str, value: object) -> Settings:
    """Set one of them in the file, keeping what else is there; the settings as they are then."""
    setting = BY_KEY[_KEYS[name]]
    checked = parse(setting, value, "the window")
    with locked(config_file) as text:
        document = tomlkit.parse(text)
        group, _, key = setting.key.partition(".")
        if group not in document:
            document[group] = tomlkit.table()
        document[group][key] = checked
        write_private(config_file, tomlkit.dumps(document).encode())
    settings = load(config_file)
    if settings[setting.key] != checked:
        raise PreferenceFixed(f"{setting.key} is written, but {settings.origins[setting.key]} overrides it.")
    return settings
