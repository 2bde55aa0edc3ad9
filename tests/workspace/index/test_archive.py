"""An index moves to another machine; archives that lie, escape, explode or are damaged are refused."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.support.workspace.tools import MakeTools, Tools
from wsh.workspace.error import ToolError
from wsh.workspace.index import store
from wsh.workspace.index.archive import DATABASE, MANIFEST, TEXTS, export_index, import_index
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.surroundings import ToolContext

LIMIT = 50 << 20


def home_of(tools: Tools) -> IndexFolder:
    return tools.service.home_of(str(tools.cwd))


@pytest.fixture
def packed(indexed: Tools, tmp_path: Path) -> Path:
    target = tmp_path / "index.tar.zst"
    export_index(home_of(indexed), target)
    return target


def members(path: Path) -> dict[str, bytes]:
    raw = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {m.name: f.read() for m in tar if (f := tar.extractfile(m)) is not None}


def manifest_of(files: dict[str, bytes]) -> bytes:
    told = json.loads(files[MANIFEST])
    for name in (DATABASE, TEXTS):
        told["files"][name] = {"size": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
    return json.dumps(told).encode()


def write(path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for info, body in entries:
            tar.addfile(info, io.BytesIO(body))
    path.write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))


def plain(name: str, body: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(body)
    return info, body


def refused(tools: Tools, path: Path, limit: int = LIMIT) -> str:
    before = home_of(tools).find_current()
    with pytest.raises(ToolError) as caught:
        import_index(home_of(tools), path, limit)
    assert home_of(tools).find_current() == before
    assert tools.paths(query="quokka") == ["docs/guide.md"]
    leftovers = [p for p in home_of(tools).folder.iterdir() if p.suffix in (".db", ".bin")]
    assert len(leftovers) == 2
    return caught.value.code


def test_an_index_arrives_whole_on_another_machine(
    packed: Path, make_tools: MakeTools, tmp_path: Path, indexed: Tools
) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = make_tools(cwd=tmp_path / "elsewhere")
    other.runner.run(other.service.import_index(ToolContext(str(other.cwd)), None, str(packed)))
    assert other.paths(query="quokka") == ["docs/guide.md"]
    assert other.paths(query="item.partition", match="literal") == ["app/server.py"]
    assert other("index_status")["stale"]["removed"] == 5
    ours = [hit["id"] for hit in indexed("search", query="server")["hits"]]
    assert [hit["id"] for hit in other("search", query="server")["hits"]] == ours


def test_exporting_needs_an_index_and_a_folder(tools: Tools, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        export_index(home_of(tools), tmp_path / "x.tar.zst")
    assert caught.value.code == "NO_INDEX"
    tools("index_build")
    with pytest.raises(ToolError) as caught:
        export_index(home_of(tools), tmp_path / "no" / "x.tar.zst")
    assert caught.value.code == "NOT_FOUND"


def test_a_damaged_archive_is_refused(packed: Path, indexed: Tools, tmp_path: Path) -> None:
    data = packed.read_bytes()
    packed.write_bytes(data[: len(data) // 2])
    assert refused(indexed, packed) == "DOWNLOAD_VERIFY_FAILED"
    packed.write_bytes(data[:200] + bytes(b ^ 0xFF for b in data[200:260]) + data[260:])
    assert refused(indexed, packed) == "DOWNLOAD_VERIFY_FAILED"
    packed.write_text("not an archive")
    assert refused(indexed, packed) == "DOWNLOAD_VERIFY_FAILED"
    assert refused(indexed, tmp_path / "gone.tar.zst") == "NOT_FOUND"
    assert refused(indexed, tmp_path) == "INVALID_REQUEST"


def test_a_sum_that_does_not_fit_is_refused(packed: Path, indexed: Tools) -> None:
    files = members(packed)
    files[TEXTS] = bytes(byte ^ 1 for byte in files[TEXTS])
    write(packed, [plain(name, files[name]) for name in (MANIFEST, DATABASE, TEXTS)])
    assert refused(indexed, packed) == "DOWNLOAD_VERIFY_FAILED"
    write(packed, [plain(name, files[name]) for name in (MANIFEST, DATABASE)])
    assert refused(indexed, packed) == "DOWNLOAD_VERIFY_FAILED"


def link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(DATABASE)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    "entry",
    [
        plain("/etc/cron.d/evil", b"x"),
        plain("../../evil", b"x"),
        plain("sub/../../evil", b"x"),
        plain("surprise.txt", b"x"),
        (link(tarfile.SYMTYPE), b""),
        (link(tarfile.LNKTYPE), b""),
        (link(tarfile.CHRTYPE), b""),
        (link(tarfile.FIFOTYPE), b""),
        (link(tarfile.DIRTYPE), b""),
    ],
    ids=lambda entry: f"{entry[0].name}-{entry[0].type!r}" if isinstance(entry, tuple) else "",
)
def test_names_and_kinds_that_do_not_belong_are_refused(
    packed: Path, indexed: Tools, entry: tuple[tarfile.TarInfo, bytes]
) -> None:
    files = members(packed)
    write(packed, [plain(MANIFEST, files[MANIFEST]), entry])
    assert refused(indexed, packed) == "ARCHIVE_UNSAFE"
    write(packed, [entry])
    assert refused(indexed, packed) == "ARCHIVE_UNSAFE"


def test_what_is_declared_and_what_is_there_are_both_limited(packed: Path, indexed: Tools) -> None:
    assert refused(indexed, packed, limit=1000) == "ARCHIVE_TOO_LARGE"
    files = members(packed)
    told = json.loads(files[MANIFEST])
    told["files"][TEXTS]["size"] = 1 << 40
    write(packed, [plain(MANIFEST, json.dumps(told).encode())])
    assert refused(indexed, packed) == "ARCHIVE_TOO_LARGE"


def test_a_bomb_is_stopped_while_it_unpacks(packed: Path, indexed: Tools) -> None:
    files = members(packed)
    bomb = tarfile.TarInfo(TEXTS)
    bomb.size = 1 << 33
    head = io.BytesIO()
    with tarfile.open(fileobj=head, mode="w") as tar:
        info, body = plain(MANIFEST, files[MANIFEST])
        tar.addfile(info, io.BytesIO(body))
    raw = head.getvalue().rstrip(b"\0")
    raw += b"\0" * (-len(raw) % 512) + bomb.tobuf()
    squeezed = zstandard.ZstdCompressor().compressobj()
    with packed.open("wb") as out:
        out.write(squeezed.compress(raw))
        for _ in range(100):
            out.write(squeezed.compress(b"\0" * (1 << 20)))
        out.write(squeezed.flush())
    assert packed.stat().st_size < 1 << 20
    assert refused(indexed, packed) in ("ARCHIVE_TOO_LARGE", "DOWNLOAD_VERIFY_FAILED")
    # zeros instead of members: nothing is declared, everything is there
    with packed.open("wb") as out:
        squeezed = zstandard.ZstdCompressor().compressobj()
        pax = tarfile.TarInfo("././@PaxHeader")
        pax.type, pax.size = tarfile.XHDTYPE, 200 << 20
        out.write(squeezed.compress(pax.tobuf()))
        for _ in range(200):
            out.write(squeezed.compress(b"9" * (1 << 20)))
        out.write(squeezed.flush())
    assert refused(indexed, packed) == "ARCHIVE_TOO_LARGE"


def tamper(files: dict[str, bytes], tmp_path: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    path = tmp_path / "tampered.db"
    path.write_bytes(files[DATABASE])
    connection = sqlite3.connect(path)
    change(connection)
    connection.commit()
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    files[DATABASE] = path.read_bytes()
    files[MANIFEST] = manifest_of(files)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TRIGGER evil AFTER INSERT ON meta BEGIN DELETE FROM file; END", "ARCHIVE_UNSAFE"),
        ("CREATE VIEW surprise AS SELECT 1", "ARCHIVE_UNSAFE"),
        ("DROP TABLE chunk", "ARCHIVE_UNSAFE"),
        ("UPDATE file SET text_stored = 1000000", "DOWNLOAD_VERIFY_FAILED"),
        ("UPDATE file SET text_size = 1 << 40", "DOWNLOAD_VERIFY_FAILED"),
        (f"PRAGMA user_version = {store.FORMAT + 1}", "DOWNLOAD_VERIFY_FAILED"),
    ],
)
def test_a_database_that_is_not_ours_is_refused(
    packed: Path, indexed: Tools, tmp_path: Path, statement: str, code: str
) -> None:
    files = members(packed)
    tamper(files, tmp_path, lambda connection: connection.execute(statement))
    write(packed, [plain(name, files[name]) for name in (MANIFEST, DATABASE, TEXTS)])
    assert refused(indexed, packed) == code


def test_an_archive_of_another_format_says_so(packed: Path, indexed: Tools) -> None:
    files = members(packed)
    told = json.loads(files[MANIFEST])
    told["index"] = store.FORMAT + 1
    files[MANIFEST] = json.dumps(told).encode()
    write(packed, [plain(name, files[name]) for name in (MANIFEST, DATABASE, TEXTS)])
    assert refused(indexed, packed) == "INVALID_REQUEST"


def test_importing_waits_for_a_short_build_and_not_for_a_long_one(
    packed: Path, indexed: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(indexed)
    before = home.find_current()
    held = threading.Event()

    def build() -> None:
        with home.locked():
            held.set()
            time.sleep(0.2)  # as long as the build takes

    builder = threading.Thread(target=build)
    builder.start()
    assert held.wait(60)
    import_index(home, packed, LIMIT)
    builder.join()
    assert home.find_current() != before
    monkeypatch.setattr("wsh.workspace.index.archive._LOCK_WAIT_S", 0.1)
    with home.locked(), pytest.raises(ToolError) as caught:
        import_index(home, packed, LIMIT)
    assert caught.value.code == "INVALID_REQUEST"
