"""Moving an index between machines: one `.tar.zst` with a manifest of SHA-256 sums, unpacked with suspicion.

An archive is a stranger's file. Only three names may be in it, only as regular files; what it declares and what it
really holds are both counted against a limit; sums are compared; and the database inside is accepted only if its
schema is word for word ours, since a schema can carry code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from wsh.wire.json.object import JsonObject
from wsh.wire.version import VERSION
from wsh.workspace.error import (
    ArchiveTooLarge,
    ArchiveUnsafe,
    DownloadVerifyFailed,
    Forbidden,
    IndexBroken,
    InvalidArguments,
    NoIndex,
    NothingThere,
)
from wsh.workspace.index import store
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.index.text import LARGEST

MANIFEST, DATABASE, TEXTS = "manifest.json", "index.db", "text.bin"
ARCHIVE_FORMAT = 1
_MANIFEST_BYTES = 64 * 1024
_PART = 1 << 20
_MAX_WINDOW = 1 << 27


# writing


def export_index(home: IndexFolder, target: Path) -> JsonObject:
    """Write the current index of a workspace to `target`, atomically. Raises NoIndex or IndexBroken."""
    current = home.find_current()
    if current is None:
        raise NoIndex(home.root, "all")
    if not target.parent.is_dir():
        raise NothingThere(f"The folder {target.parent} does not exist.", hint="Create it first.")
    with tempfile.TemporaryDirectory(dir=home.folder, prefix=".export-") as scratch:
        copy = Path(scratch) / DATABASE
        text_path, text_end = _copy_database(current, copy)
        try:
            return _write_archive(home, target, copy, text_path, text_end)
        except PermissionError:
            raise Forbidden(f"{target} cannot be written.", hint="Choose another place.") from None


def _copy_database(current: Path, copy: Path) -> tuple[Path, int]:
    source = store.open_index(current)
    target = sqlite3.connect(copy)
    try:
        source.backup(target)
        meta = store.get_meta(target)
        return current.parent / str(meta["text"]), int(meta["text_end"])
    finally:
        target.close()
        source.close()


def _write_archive(home: IndexFolder, target: Path, database: Path, texts: Path, text_end: int) -> JsonObject:
    files = {
        DATABASE: {"size": database.stat().st_size, "sha256": _sha256(database, database.stat().st_size)},
        TEXTS: {"size": text_end, "sha256": _sha256(texts, text_end)},
    }
    manifest = {
        "archive": ARCHIVE_FORMAT,
        "index": store.FORMAT,
        "wsh": VERSION,
        "workspace": os.path.basename(home.root),
        "created": time.time(),
        "files": files,
    }
    fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(fd, "wb") as raw:
            with zstandard.ZstdCompressor(level=6, write_checksum=True).stream_writer(raw, closefd=False) as packed:
                with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
                    body = json.dumps(manifest, indent=1).encode()
                    tar.addfile(_member(MANIFEST, len(body)), io.BytesIO(body))
                    for name, path in ((DATABASE, database), (TEXTS, texts)):
                        with path.open("rb") as content:
                            tar.addfile(_member(name, int(str(files[name]["size"]))), content)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return {"file": str(target), "bytes": target.stat().st_size, "files": files}


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(time.time())
    return info


def _sha256(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        left = size
        while left > 0 and (part := content.read(min(left, _PART))):
            digest.update(part)
            left -= len(part)
    if left:
        raise IndexBroken("corrupt", "texts are missing")
    return digest.hexdigest()


# reading


def import_index(home: IndexFolder, source: Path, max_bytes: int) -> JsonObject:
    """Replace the index of a workspace by the one in an archive. The old one stays until all has been verified."""
    home.ensure()
    with _locked(home):
        database, texts = home.new_files()
        try:
            manifest = _unpack(source, database, texts, max_bytes)
            _check_database(database, texts.name, home.root, manifest["files"][TEXTS]["size"])
            home.publish(database)
        except BaseException:
            database.unlink(missing_ok=True)
            texts.unlink(missing_ok=True)
            raise
        home.sweep(texts.name)
    return {"workspace": home.root, "from": manifest.get("workspace"), "wsh": manifest.get("wsh")}


_LOCK_WAIT_S = 20.0


@contextmanager
def _locked(home: IndexFolder) -> Iterator[None]:
    """The builders' lock, for which a build that keeps the index fresh is waited for, but no long one."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        with home.locked(wait=False) as free:
            if free:
                yield
                return
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    raise InvalidArguments("A build of this workspace is running.", hint="Wait until it has ended, then import again.")


class _Counted(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes, whatever was declared."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._left = limit
        self._limit = limit

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(_PART if size < 0 else size)
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._limit)
        return data


def _too_large(limit: int) -> ArchiveTooLarge:
    return ArchiveTooLarge(
        f"The archive holds more than {limit} bytes.",
        hint="Raise the setting index.max_archive_bytes if it is to be trusted.",
        limitBytes=limit,
    )


def _unpack(source: Path, database: Path, texts: Path, max_bytes: int) -> JsonObject:
    try:
        with source.open("rb") as raw:
            unpacked = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(raw)
            counted = _Counted(cast(IO[bytes], unpacked), max_bytes + _MANIFEST_BYTES)
            with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|") as tar:
                return _take_members(tar, {DATABASE: database, TEXTS: texts}, max_bytes)
    except FileNotFoundError:
        raise NothingThere(f"There is no file {source}.", hint="Check the path.") from None
    except IsADirectoryError:
        raise InvalidArguments(f"{source} is a folder.", hint="Name an archive made by `wsh index export`.") from None
    except PermissionError:
        raise Forbidden(f"{source} cannot be read.", hint="Check its permissions.") from None
    except (zstandard.ZstdError, tarfile.TarError, EOFError, ValueError) as problem:
        raise DownloadVerifyFailed(
            f"The archive is damaged, or none: {problem}.", hint="Copy it again, or export it again."
        ) from None


def _take_members(tar: tarfile.TarFile, targets: dict[str, Path], max_bytes: int) -> JsonObject:
    manifest: JsonObject | None = None
    taken: set[str] = set()
    for member in tar:
        _check_member(member)
        if manifest is None:
            if member.name != MANIFEST:
                raise ArchiveUnsafe("The archive does not begin with its manifest.", hint="Export it again.")
            if member.size > _MANIFEST_BYTES:
                raise _too_large(_MANIFEST_BYTES)
            manifest = _read_manifest(tar, member)
            if sum(entry["size"] for entry in manifest["files"].values()) > max_bytes:
                raise _too_large(max_bytes)
            continue
        target = targets.get(member.name)
        if target is None or member.name in taken:
            raise ArchiveUnsafe(f"The archive holds {member.name[:200]!r}, which does not belong there.")
        expected = manifest["files"][member.name]
        if member.size > max_bytes:
            raise _too_large(max_bytes)
        if member.size != expected["size"] or _extract(tar, member, target) != expected["sha256"]:
            raise DownloadVerifyFailed(
                f"{member.name} is not what the manifest says.", hint="Copy the archive again, or export it again."
            )
        taken.add(member.name)
    if manifest is None or taken != set(targets):
        raise DownloadVerifyFailed("The archive is not complete.", hint="Copy it again, or export it again.")
    return manifest


def _check_member(member: tarfile.TarInfo) -> None:
    name = member.name
    if name.startswith("/") or ".." in name.split("/") or "\\" in name or "\0" in name:
        raise ArchiveUnsafe(
            f"The archive holds {name[:200]!r}, which would land outside.", hint="Do not trust where it came from."
        )
    if not member.isreg() or member.issparse():
        what = "a link" if member.issym() or member.islnk() else "a device" if member.isdev() else "no plain file"
        raise ArchiveUnsafe(f"{name[:200]!r} in the archive is {what}.", hint="Do not trust where it came from.")


def _read_manifest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> JsonObject:
    stream = tar.extractfile(member)
    assert stream is not None
    try:
        manifest: JsonObject = json.loads(stream.read(_MANIFEST_BYTES))
        files = manifest["files"]
        sound = all(
            isinstance(files[name]["size"], int) and files[name]["size"] >= 0 and isinstance(files[name]["sha256"], str)
            for name in (DATABASE, TEXTS)
        )
        if not sound or len(files) != 2:
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise DownloadVerifyFailed("The manifest cannot be read.", hint="Export the index again.") from None
    if manifest.get("archive") != ARCHIVE_FORMAT or manifest.get("index") != store.FORMAT:
        raise InvalidArguments(
            f"The archive is of format {manifest.get('archive')}.{manifest.get('index')}; this program reads "
            f"{ARCHIVE_FORMAT}.{store.FORMAT}.",
            hint="Export it again with the same version of wsh, or build the index here.",
        )
    return manifest


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    stream = tar.extractfile(member)
    assert stream is not None
    digest = hashlib.sha256()
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        while part := stream.read(_PART):
            digest.update(part)
            out.write(part)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _check_database(path: Path, text_name: str, root: str, text_size: int) -> None:
    """Accept the database only if it is sound and has exactly our schema; then make it this workspace's."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        if connection.execute("PRAGMA user_version").fetchone()[0] != store.FORMAT:
            raise DownloadVerifyFailed("The database is of another format than the manifest says.")
        found = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())
        if found != _expected_schema():
            raise ArchiveUnsafe(
                "The database in the archive has a schema that is not ours.", hint="Do not trust where it came from."
            )
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise DownloadVerifyFailed("The database in the archive is damaged.", hint="Export it again.")
        meta = store.get_meta(connection)
        outside = connection.execute(
            "SELECT count(*) FROM file WHERE text_start < 0 OR text_stored < 0 OR text_size NOT BETWEEN 0 AND ?"
            " OR text_start + text_stored > ?",
            (LARGEST, text_size),
        ).fetchone()[0]
        if outside or meta.get("text_end") != text_size:
            raise DownloadVerifyFailed("Database and texts in the archive do not fit together.")
        connection.execute("PRAGMA journal_mode=WAL")
        store.set_meta(connection, root=root, text=text_name, commits=int(meta.get("commits", 0)) + 1)
    except (sqlite3.DatabaseError, IndexBroken) as problem:
        raise DownloadVerifyFailed(f"The database in the archive is damaged: {problem}.") from None
    finally:
        connection.close()


def _expected_schema() -> set[tuple[object, ...]]:
    with tempfile.TemporaryDirectory() as scratch:
        connection = store.create(Path(scratch) / "empty.db", "", "")
        try:
            for statement in store.INDEXES:
                connection.execute(statement)
            return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())
        finally:
            connection.close()
