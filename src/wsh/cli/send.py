from __future__ import annotations

import sys

from wsh.cli.declare import Argument, Option, command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path

_PIECE_BYTES = 512 * 1024
"""Below what a server takes as one body by default."""


@command(
    "send",
    Option("--enter", kind=bool, help="Press Enter afterwards."),
    json_option,
    session_argument,
    Argument("text", many=True, required=False),
)
def send(enter: bool, as_json: bool, session: str, text: tuple[str, ...]) -> None:
    """Type TEXT into SESSION as it is; without TEXT, what comes on stdin."""
    data = " ".join(text).encode("utf-8", "surrogateescape") if text else sys.stdin.buffer.read()
    if enter:
        data += b"\r"
    for at in range(0, len(data) or 1, _PIECE_BYTES):
        call("POST", session_path(session, "/input"), body=data[at : at + _PIECE_BYTES], doing="sending")
    if as_json:
        print_json({"session": session, "bytes": len(data)})
