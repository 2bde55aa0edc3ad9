"""A terminal as bytes on disk: our small header, what we know beyond the library, and the library's own snapshot.

    8 bytes magic and version · u32 crc of all that follows · u32 length of the facts · facts (JSON) · engine's bytes

The engine's format promises nothing across its versions, so the facts name the version that wrote it; a snapshot of
another engine is refused as unusable, and the journal is replayed instead.
"""

from __future__ import annotations

import json
import logging
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from wsh.terminal.engine.limit import TerminalLimits
from wsh.terminal.engine.native import NULL, EngineError, check, ffi, lib, take_allocated
from wsh.terminal.line_numbers import LineNumbers
from wsh.wire.error import SnapshotCorrupt, SnapshotNotPossible
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

log = logging.getLogger(__name__)

MAGIC = b"WSHTERM\x01"
_HEADER = struct.Struct("<8sII")


@lru_cache(maxsize=1)
def engine_version() -> str:
    from importlib.metadata import version

    package = f"pyghostty {version('pyghostty')}"
    text = ffi.new("GhosttyString*")
    if lib.ghostty_build_info(lib.GHOSTTY_BUILD_INFO_VERSION_STRING, text) or not text.len:
        return package
    return f"{package} {bytes(ffi.buffer(text.ptr, text.len)).decode()}"


def _facts(terminal: Terminal) -> JsonObject:
    numbers = terminal._numbers
    return {
        "rows": terminal.rows,
        "cols": terminal.cols,
        "cell": [terminal._sink.cell_width, terminal._sink.cell_height],
        "base": numbers.base,
        "floor": numbers.floor,
        "epoch": numbers.epoch,
        "history": numbers.history,
        "above": numbers.above,
        "reflowed": numbers.reflowed,
    }


@dataclass(frozen=True)
class TerminalState:
    """What a terminal was at one moment. To make bytes of it may take another thread its time."""

    facts: JsonObject
    engine: memoryview

    def to_parts(self) -> tuple[bytes, memoryview]:
        """What `restore` reads, in two parts: the second has megabytes, and is not copied."""
        head = json.dumps({"engine": engine_version(), **self.facts}, separators=(",", ":")).encode()
        crc = zlib.crc32(self.engine, zlib.crc32(head))
        return _HEADER.pack(MAGIC, crc, len(head)) + head, self.engine


def _engine_bytes(terminal: Terminal) -> memoryview:
    try:
        return take_allocated(
            lambda out, length: int(lib.ghostty_snapshot_encode_alloc(terminal.handle, NULL, out, length)),
            "snapshot_encode",
        )
    except EngineError as problem:
        # Also at rest the library knows states that it cannot store, such as a wide character in a single column.
        log.info("no snapshot: %s", problem)
        raise SnapshotNotPossible(terminal.limits.continuation_bytes) from None


def take_state(terminal: Terminal) -> TerminalState:
    return TerminalState(_facts(terminal), _engine_bytes(terminal))


def copy_of(terminal: Terminal, *, history: bool) -> Terminal:
    """A second terminal in the same state, with or without the lines above the screen."""
    return _build(type(terminal), _facts(terminal), _engine_bytes(terminal), terminal.limits, history)


def read_facts(data: bytes) -> tuple[JsonObject, memoryview]:
    """The facts and the engine's bytes of a snapshot that is whole."""
    if len(data) < _HEADER.size:
        raise SnapshotCorrupt("it is shorter than its header")
    magic, crc, length = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise SnapshotCorrupt("it was written by another version, or is no snapshot")
    body = memoryview(data)[_HEADER.size :]
    if length > len(body) or zlib.crc32(body) != crc:
        raise SnapshotCorrupt("its checksum does not match")
    facts = json.loads(bytes(body[:length]))
    if facts["engine"] != engine_version():
        raise SnapshotCorrupt(f"it was written by {facts['engine']}, this is {engine_version()}")
    return facts, body[length:]


def decode(cls: type[Terminal], data: bytes, limits: TerminalLimits) -> Terminal:
    facts, engine = read_facts(data)
    return _build(cls, facts, engine, limits, True)


def _build(
    cls: type[Terminal], facts: JsonObject, engine: memoryview, limits: TerminalLimits, history: bool
) -> Terminal:
    decoder = ffi.new("GhosttySnapshotDecoder*")
    source = ffi.from_buffer("uint8_t[]", engine)
    check(lib.ghostty_snapshot_decoder_new_buf(NULL, decoder, source, len(engine)), "snapshot_decoder_new")
    try:
        for option, value in (
            (lib.GHOSTTY_SNAPSHOT_DECODER_OPT_MAX_CONTINUATION_BYTES, ffi.new("size_t*", limits.continuation_bytes)),
            (lib.GHOSTTY_SNAPSHOT_DECODER_OPT_RETAIN_CONTINUATION, ffi.new("bool*", True)),
        ):
            check(lib.ghostty_snapshot_decoder_set(decoder[0], option, value), "snapshot_decoder_set")
        out = ffi.new("GhosttyTerminal*")
        read = lib.ghostty_snapshot_decoder_decode if history else lib.ghostty_snapshot_decoder_ready
        if read(decoder[0], out):
            raise SnapshotCorrupt("the terminal engine refuses it")
    finally:
        lib.ghostty_snapshot_decoder_free(decoder[0])
    terminal = cls.__new__(cls)
    terminal._adopt(out[0], int(facts["rows"]), int(facts["cols"]), limits, decoded=True)
    terminal._sink.cell_width, terminal._sink.cell_height = facts["cell"]
    terminal._numbers = LineNumbers.resumed(
        out[0],
        limits.scrollback_lines,
        base=int(facts["base"]),
        floor=int(facts["floor"]),
        epoch=int(facts["epoch"]),
        history=int(facts["history"]),
        above=int(facts["above"]),
        reflowed=bool(facts["reflowed"]),
    )
    return terminal
