"""What programs printed beyond one answer, kept for their callers to read: so many bytes in all, and the oldest goes first."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.wire.buffer import OutputBuffer

OutputStream: TypeAlias = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class KeptOutput:
    """Of one program that has ended."""

    owner: str
    exit_code: int | None
    streams: Mapping[OutputStream, OutputBuffer]

    @property
    def kept_bytes(self) -> int:
        return sum(stream.kept_bytes for stream in self.streams.values())


@dataclass(frozen=True)
class LinePage:
    """Lines from one on, as many as fit. Lines count from the oldest one that is kept, which is 1."""

    text: str
    first_line: int
    total_lines: int
    next_line: int | None


class KeptOutputs:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[str, KeptOutput] = OrderedDict()

    def keep(self, handle: str, output: KeptOutput) -> bool:
        """Whether there is room for it at all."""
        if output.kept_bytes > self.max_bytes:
            return False
        self._kept[handle] = output
        while sum(each.kept_bytes for each in self._kept.values()) > self.max_bytes:
            self._kept.popitem(last=False)
        return True

    def find(self, handle: str, owner: str) -> KeptOutput | None:
        """Another caller's is not found either."""
        found = self._kept.get(handle)
        return found if found is not None and found.owner == owner else None


def read_lines(kept: OutputBuffer, from_line: int, search: str | None, most_bytes: int) -> LinePage:
    """Lines of it within so many bytes as JSON; with `search`, those that hold the text, each behind its number."""
    lines = kept.read().data.decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    wanted = search.casefold() if search is not None else None
    taken: list[str] = []
    room = most_bytes
    for number in range(from_line, len(lines) + 1):
        line = lines[number - 1]
        if wanted is not None:
            if wanted not in line.casefold():
                continue
            line = f"{number}: {line}"
        size = _json_bytes(line) + 2
        if size > room:
            if taken:
                return LinePage("\n".join(taken) + "\n", from_line, len(lines), number)
            # One line that no answer could carry: its beginning, or nobody would ever come past it.
            cut = line[: len(line) * room // size]
            while cut and _json_bytes(cut) + 2 > room:
                cut = cut[: len(cut) * 3 // 4]
            return LinePage(cut + "\n", from_line, len(lines), number + 1 if number < len(lines) else None)
        room -= size
        taken.append(line)
    return LinePage("\n".join(taken) + "\n" if taken else "", from_line, len(lines), None)


def _json_bytes(text: str) -> int:
    """Between the quotes."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2
