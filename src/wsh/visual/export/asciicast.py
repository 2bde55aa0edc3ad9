"""Recordings as asciicast, versions 2 and 3, line by line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Literal

from wsh.session.record.recording import Ended, Film, Printed, RecordedSize


def write_asciicast(recording: Film, version: Literal[2, 3], *, title: str, command: str) -> Iterator[str]:
    """Lines without their line ends. A character split between two reads is kept whole."""
    header: dict[str, object] = {"version": version}
    if version == 2:
        header |= {"width": recording.cols, "height": recording.rows}
    else:
        header["term"] = {"cols": recording.cols, "rows": recording.rows, "type": "xterm-256color"}
    header |= {"timestamp": int(recording.started), "title": title, "command": command}
    yield json.dumps(header, ensure_ascii=False)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = (recording.rows, recording.cols)
    before = 0.0
    for moment in recording.moments():
        code, data = "", ""
        match moment:
            case Printed(data=raw):
                code, data = "o", decoder.decode(raw)
            case RecordedSize(rows=rows, cols=cols):
                if (rows, cols) != size:
                    size = (rows, cols)
                    code, data = "r", f"{cols}x{rows}"
            case Ended(exit_code=status):
                if version == 3:
                    code, data = "x", str(status)
        if code and data:
            at = moment.at_s if version == 2 else moment.at_s - before
            before = moment.at_s
            yield json.dumps([round(at, 6), code, data], ensure_ascii=False)
