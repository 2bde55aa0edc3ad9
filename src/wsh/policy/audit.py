"""The trail: one JSON line per decision and per result, each carrying the hash of the one before.

Append-only, rotated, shared by several processes (a lock file orders them). A changed, inserted or missing line breaks
the chain, and `verify` says where; the newest hash and the first entry that rotation has kept are also noted beside the
log (the anchor), so that lines cut off its end or its beginning show, also after the log went on. Entries hold names of environment variables and never their values, and nothing typed at a hidden prompt.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from wsh.policy.request import PolicyRequest
from wsh.policy.variable import hide_argv_values, hide_values
from wsh.policy.verdict import Verdict
from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import ensure_private

GENESIS = "0" * 64
_MAX_LINE_BYTES = 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_MOST_NAMES = 256
_MOST_TEXT = 4096


@dataclass(frozen=True)
class VerifyReport:
    entries: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class _Anchor:
    """What stands beside the log: its last entry, and the first one that rotation has kept."""

    sequence: int = 0
    hash: str = GENESIS
    first: int = 1
    before_first: str = GENESIS
    """The hash that the first kept entry follows."""


@dataclass
class _Head:
    """The end of the chain as this process last saw it."""

    inode: int = -1
    size: int = -1
    sequence: int = 0
    hash: str = GENESIS
    torn: bool = False
    first: int = 1
    before_first: str = GENESIS


def name_trail(path: Path) -> str:
    """Names the log at `path` for both ends of a bridge: the same folder on the same running machine, or nothing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        info = os.stat(path.parent)
    except OSError:
        return ""
    return hashlib.sha256(f"{boot}:{info.st_dev}:{info.st_ino}:{path.name}".encode()).hexdigest()[:32]


class Audit:
    def __init__(self, path: Path, max_bytes: int = 64 * 1024 * 1024, keep: int = 8) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.keep = keep
        self._head = _Head()

    @property
    def _anchor(self) -> Path:
        return self.path.with_name(self.path.name + ".head")

    def append(self, entry: Mapping[str, object]) -> JsonObject:
        """Write one entry; returns it with its sequence number, time and hashes. Raises OSError if it cannot."""
        with self._locked():
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                head = self._find_head(fd)
                line, record = self._make(entry, head)
                if head.size and head.size + len(line) > self.max_bytes:
                    head = self._rotate(head)
                    fresh = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    os.close(fd)
                    fd = fresh
                data = (b"\n" if head.torn else b"") + line
                written = os.write(fd, data)
                if written != len(data):
                    raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes fitted", str(self.path))
                info = os.fstat(fd)
                self._write_anchor(_Anchor(record["seq"], record["hash"], head.first, head.before_first))
                self._head = replace(
                    head, inode=info.st_ino, size=info.st_size, sequence=record["seq"], hash=record["hash"], torn=False
                )
                return record
            finally:
                os.close(fd)

    def read(self, limit: int | None = None) -> list[JsonObject]:
        """The newest `limit` entries (all, if None), oldest first; lines that are no entry are left out."""
        return list(islice(self.read_backwards(), limit))[::-1]

    def read_backwards(self) -> Iterator[JsonObject]:
        """Entries from the newest on. Only what is taken is read, however long the log is."""
        for path in reversed(self._files()):
            yield from _backwards(path)

    def verify(self) -> VerifyReport:
        """Walk the whole chain as it stands at the start, oldest file first. Others go on writing meanwhile."""
        problems: list[str] = []
        notes: list[str] = []
        with ExitStack() as stack:
            # A log may be long, and a server waits for this lock with everything that it does.
            with self._locked():
                anchor = self._read_anchor()
                files = [(path.name, stack.enter_context(path.open("rb"))) for path in self._files()]
                sizes = [os.fstat(file.fileno()).st_size for _, file in files]
            previous: str | None = None
            sequence: int | None = None
            count = 0
            for (name, file), size in zip(files, sizes, strict=True):
                torn: int | None = None
                whole = True
                for number, record, raw in _lines(file, size):
                    where = f"{name}:{number}"
                    if record is None:
                        torn, whole = number, raw.endswith(b"\n")
                        continue
                    if torn is not None:
                        told = f"{name}:{torn}: a line is no entry"
                        (notes if record.get("after_torn_line") else problems).append(told)
                        torn = None
                    count += 1
                    if count == 1 and anchor is not None and not _begins(record, anchor):
                        problems.append(
                            f"{where}: the log begins with entry {record.get('seq')}, but the first one kept is entry "
                            f"{anchor.first}: its beginning was cut off or replaced"
                        )
                    if record.get("hash") != _hash(record):
                        problems.append(f"{where}: the entry was changed: its hash does not fit its content")
                    if previous is not None and record.get("prev") != previous:
                        problems.append(
                            f"{where}: the chain is broken: an entry before it was changed, added or removed"
                        )
                    if sequence is not None and record.get("seq") != sequence + 1:
                        problems.append(f"{where}: entry {sequence} is followed by entry {record.get('seq')}")
                    previous = str(record.get("hash"))
                    sequence = record.get("seq") if isinstance(record.get("seq"), int) else None
                if torn is not None and whole:
                    problems.append(f"{name}:{torn}: a line is no entry")
                elif torn is not None:
                    notes.append(f"{name}:{torn}: the last line is incomplete")
            if anchor is not None and (anchor.sequence, anchor.hash) != (sequence or 0, previous or GENESIS):
                problems.append(
                    f"the log ends with entry {sequence or 0}, but entry {anchor.sequence} was the last one written: "
                    "its end was cut off or replaced"
                )
            elif anchor is None and count:
                problems.append(f"{self._anchor.name} is missing, so a cut-off end would not show")
        return VerifyReport(count, tuple(problems), tuple(notes))

    # the files

    @contextmanager
    def _locked(self) -> Iterator[None]:
        ensure_private(self.path.parent)
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _files(self) -> list[Path]:
        """All files of the log, oldest first."""
        numbers = []
        for candidate in self.path.parent.glob(self.path.name + ".*"):
            suffix = candidate.name[len(self.path.name) + 1 :]
            if suffix.isdigit():
                numbers.append(int(suffix))
        found = [self._numbered(number) for number in sorted(numbers, reverse=True)]
        return [*found, self.path] if self.path.exists() else found

    def _rotate(self, head: _Head) -> _Head:
        """Begin a new file; the head of the chain as it stands then."""
        self._head = _Head()  # read anew where this fails half-way
        for number in range(self.keep, 0, -1):
            path = self._numbered(number)
            if path.exists():
                if number >= self.keep:
                    last = _last_record(path)
                    if last is not None:
                        head = replace(head, first=last["seq"] + 1, before_first=last["hash"])
                        # Before the file goes: what fails after this, or a kill, must not look like a log that was cut.
                        self._write_anchor(_Anchor(head.sequence, head.hash, head.first, head.before_first))
                    path.unlink()
                else:
                    path.rename(self._numbered(number + 1))
        self.path.rename(self._numbered(1))
        return replace(head, inode=0, size=0, torn=False)

    def _find_head(self, fd: int) -> _Head:
        info = os.fstat(fd)
        if (info.st_ino, info.st_size) == (self._head.inode, self._head.size):
            return self._head
        if info.st_size == 0:
            torn = False
            rotated = self._files()[-2:-1]
            last = _last_record(rotated[0]) if rotated else None
        else:
            torn = os.pread(fd, 1, info.st_size - 1) != b"\n"
            last = _last_record(self.path)
        sequence, digest = (0, GENESIS) if last is None else (last["seq"], last["hash"])
        anchor = self._read_anchor() or _Anchor()
        if anchor.sequence > sequence:
            # The end is gone. Going on from what was written last leaves a gap that `verify` can see for ever.
            sequence, digest = anchor.sequence, anchor.hash
        return _Head(info.st_ino, info.st_size, sequence, digest, torn, anchor.first, anchor.before_first)

    def _make(self, entry: Mapping[str, object], head: _Head) -> tuple[bytes, JsonObject]:
        record: JsonObject = {
            "seq": head.sequence + 1,
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **{key: _trim(key, value) for key, value in entry.items() if key not in ("seq", "ts", "prev", "hash")},
            "prev": head.hash,
        }
        if head.torn:
            record["after_torn_line"] = True
        record["hash"] = _hash(record)
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        if len(line) > _MAX_LINE_BYTES:
            raise ValueError(f"an audit entry of {len(line)} bytes is too large")
        return line, record

    def _write_anchor(self, anchor: _Anchor) -> None:
        fd = os.open(self._anchor, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # One small write of fixed length: a reader sees the old or the new text, never a mixture of lengths.
            text = f"{anchor.sequence:020d} {anchor.hash} {anchor.first:020d} {anchor.before_first}\n"
            os.pwrite(fd, text.encode(), 0)
        finally:
            os.close(fd)

    def _read_anchor(self) -> _Anchor | None:
        try:
            text = self._anchor.read_text()
        except OSError:
            return None
        match = re.fullmatch(r"(\d{20}) ([0-9a-f]{64}) (\d{20}) ([0-9a-f]{64})\n", text)
        return _Anchor(int(match[1]), match[2], int(match[3]), match[4]) if match else _Anchor(-1, "")


def _begins(record: Mapping[str, object], anchor: _Anchor) -> bool:
    """Whether a log whose first entry is `record` has all that was kept; a rotation that was cut off leaves more."""
    sequence = record.get("seq")
    if isinstance(sequence, int) and 0 < sequence < anchor.first:
        return True
    return (sequence, record.get("prev")) == (anchor.first, anchor.before_first)


def _hash(record: Mapping[str, object]) -> str:
    content = {key: value for key, value in record.items() if key != "hash"}
    return hashlib.sha256(
        json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _lines(file: BinaryIO, size: int) -> Iterator[tuple[int, JsonObject | None, bytes]]:
    """The lines in the first `size` bytes."""
    left = size
    number = 0
    while left > 0 and (raw := file.readline(left)):
        left -= len(raw)
        number += 1
        yield number, _parse(raw) if raw.endswith(b"\n") else None, raw


def _backwards(path: Path) -> Iterator[JsonObject]:
    """Complete entries of one file, the last one first."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        at = file.seek(0, os.SEEK_END)
        begun = b""  # what is read of the line that goes on before `at`
        ended = False
        while at > 0:
            size = min(_BLOCK_BYTES, at)
            at -= size
            file.seek(at)
            first, *lines = (file.read(size) + begun).split(b"\n")
            if lines and not ended:
                lines.pop()  # after the last newline: not finished
                ended = True
            begun = first
            for raw in reversed(lines):
                record = _parse(raw)
                if record is not None:
                    yield record
        record = _parse(begun) if ended else None
        if record is not None:
            yield record


def _parse(raw: bytes) -> JsonObject | None:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("hash"), str) else None


def _last_record(path: Path) -> JsonObject | None:
    """The last complete entry that has a place in the chain."""
    return next((record for record in _backwards(path) if isinstance(record.get("seq"), int)), None)


# entries


def describe_decision(
    request: PolicyRequest,
    verdict: Verdict,
    *,
    trace_id: str | None,
    tool: str,
    policy_digest: str = "",
    **more: object,
) -> JsonObject:
    """The entry of one decision. `more` adds facts such as an identity or an approval."""
    entry: JsonObject = {
        "kind": "decision",
        "trace_id": trace_id,
        "tool": tool,
        "actor": request.actor,
        "action": request.action.value,
        "mode": request.mode.value,
        "effect": verdict.effect.value,
        "risk": verdict.risk.value,
        "reason": verdict.reason.value,
        "rule": verdict.rule,
        "cwd": request.cwd,
        "workspace": request.workspace,
        "caller_surface": request.caller_surface,
        "env_names": sorted(request.env),
        "policy": policy_digest[:16] or None,
        **more,
    }
    if request.argv is not None:
        entry["argv"] = list(request.argv)
    elif verdict.argv:
        entry["argv"] = [list(segment) for segment in verdict.argv] if len(verdict.argv) > 1 else list(verdict.argv[0])
    if request.command is not None and not verdict.argv:
        entry["command"] = request.command
    return entry


def describe_result(
    *,
    trace_id: str | None,
    tool: str,
    argv: Sequence[str],
    cwd: str | None,
    exit_code: int | None,
    duration_ms: int,
    **more: object,
) -> JsonObject:
    """The entry of one end: how a command that was decided on ended."""
    entry = {
        "kind": "result",
        "trace_id": trace_id,
        "tool": tool,
        "argv": list(argv),
        "cwd": cwd,
        "exit_code": exit_code,
        "duration_ms": duration_ms,
        **more,
    }
    return entry


def _trim(key: str, value: object) -> object:
    """What may stand in the log: no values of variables, and no entry that is huge.

    Callers need not think of it. Long lists are cut; the digest still tells them apart.
    """
    if key == "command" and isinstance(value, str):
        return hide_values(value[:_MOST_TEXT])
    if key == "cwd" and isinstance(value, str):
        return value[:_MOST_TEXT]
    if key == "env_names" and isinstance(value, list) and len(value) > _MOST_NAMES:
        return [*value[:_MOST_NAMES], f"[... {len(value) - _MOST_NAMES} more]"]
    if key != "argv" or not isinstance(value, list | tuple):
        return value
    if value and all(isinstance(item, list | tuple) for item in value):
        return [_trim(key, item) for item in value[:64]]
    words = hide_argv_values([str(item) for item in value])
    if sum(map(len, words)) <= 32 * 1024:
        return words
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()
    shown: list[str] = []
    total = 0
    for word in words:
        total += len(word)
        if total > 16 * 1024:
            break
        shown.append(word)
    return [*shown, f"[... {len(words) - len(shown)} more, sha256 {digest}]"]
