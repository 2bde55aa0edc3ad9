"""The format of the folders on disk: told apart by a number, brought up to date with a copy kept, refused when it is newer than we are.

A piece of the composition root. Format 1 is that of 0.1.0, which wrote no number. Snapshots, journals and the index have numbers of their
own and are rebuilt where they do not fit; this is for what cannot be rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.setting import SettingError
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places, ensure_private, write_private
from wsh.wire.token_file import TokenFile
from wsh.wire.version import VERSION

_FIRST = 1


@dataclass(frozen=True)
class Migration:
    """From the format before to `to`. `touches` names what it changes: a copy of that is kept."""

    to: int
    touches: Callable[[Places], Sequence[Path]]
    run: Callable[[Places], None]


def _close_to_others(places: Places) -> None:
    """Tokens become digests and go on working. No copy of them is kept: it would be the secret in plain text."""
    TokenFile(places.tokens).upgrade()
    folder = places.state / "sessions"
    if folder.is_dir():
        folder.chmod(0o700)


MIGRATIONS: tuple[Migration, ...] = (Migration(2, touches=lambda places: [], run=_close_to_others),)


def bring_up_to_date(places: Places, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrates the state folder if an older version wrote it. Raises SettingError if a newer one did.

    Copies are in `before-FORMAT/` below the state folder. A migration that fails leaves the number as it was, so that it is tried again.
    """
    newest = max((migration.to for migration in migrations), default=_FIRST)
    ensure_private(places.state)
    file = places.state / "format.json"
    lock_path = places.state / "format.lock"
    lock = take_lock(lock_path, wait=True)
    assert lock is not None
    try:
        found, writer = _read(file, _FIRST if _is_used(places) else newest)
        if found > newest:
            raise SettingError(
                f"{places.state} was written by wsh {writer}, in format {found}; this is {VERSION}, which reads up to format {newest}. "
                f"Use {writer} or newer, or set XDG_STATE_HOME to another folder"
            )
        for migration in sorted(migrations, key=lambda migration: migration.to):
            if migration.to > found:
                _keep_copy(places, migration)
                migration.run(places)
                _write(file, migration.to)
        if not file.exists():
            _write(file, newest)
    finally:
        drop_lock(lock_path, lock)


def _is_used(places: Places) -> bool:
    return places.tokens.exists() or (places.state / "sessions").exists()


def _read(file: Path, without: int) -> tuple[int, str]:
    """The number and who wrote it."""
    try:
        told = json.loads(file.read_bytes())
        return int(told["format"]), str(told["written_by"])
    except FileNotFoundError:
        return without, "0.1.0"
    except (OSError, ValueError, KeyError, TypeError):
        raise SettingError(f"{file} cannot be read; remove it if no newer wsh was used with this folder") from None


def _write(file: Path, number: int) -> None:
    write_private(file, json.dumps({"format": number, "written_by": VERSION}).encode() + b"\n")


def _keep_copy(places: Places, migration: Migration) -> None:
    copies = places.state / f"before-{migration.to}"
    for path in migration.touches(places):
        if path.exists() and not (copies / path.name).exists():
            ensure_private(copies)
            import shutil

            shutil.copy2(path, copies / path.name)
