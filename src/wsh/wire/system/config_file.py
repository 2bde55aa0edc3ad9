"""Writing one setting into config.toml, keeping what else a person wrote there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from wsh.wire.setting import BY_KEY, RENAMED, Settings, load, parse
from wsh.wire.system.place import ensure_private, write_private


class SettingFixed(ValueError):
    """The setting comes from somewhere that overrides the file."""


def write_setting(config_file: Path, name: str, value: object, origin: str) -> Settings:
    """Set it in the file; the settings as they are then. Raises SettingFixed where something overrides the file."""
    import tomlkit

    setting = BY_KEY[name]
    checked = parse(setting, value, origin)
    ensure_private(config_file.parent)
    lock = os.open(config_file.parent / f".{config_file.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = config_file.read_text(encoding="utf-8") if config_file.exists() else ""
        document = tomlkit.parse(text)
        group, _, key = setting.key.partition(".")
        if group not in document:
            document[group] = tomlkit.table()
        table = document[group]
        for old, new in RENAMED.items():
            if new == name:
                table.pop(old.partition(".")[2], None)
        table[key] = checked
        write_private(config_file, tomlkit.dumps(document).encode())
    finally:
        os.close(lock)
    settings = load(config_file)
    if settings[setting.key] != checked:
        raise SettingFixed(f"{setting.key} is written, but {settings.origins[setting.key]} overrides it.")
    return settings
