"""What the person chose for the window itself: the `desktop.*` settings, written back to `config.toml`.

A setting that the environment or the command line fixes cannot be changed from the window, and says so.
"""

from __future__ import annotations

from pathlib import Path

from wsh.desktop.message import Preferences
from wsh.wire.setting import Settings
from wsh.wire.system.config_file import SettingFixed, write_setting

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
    try:
        return write_setting(config_file, _KEYS[name], value, "the window")
    except SettingFixed as fixed:
        raise PreferenceFixed(str(fixed)) from None
