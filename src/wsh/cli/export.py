from __future__ import annotations

import os
import sys

from wsh.cli.declare import Failure, Option, command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path

FORMATS = ("asciicast-v2", "asciicast-v3", "txt", "html", "svg", "svg-animated", "png")


def fetch(name: str, format: str, at_s: float | None, theme: str, from_s: float | None = None) -> bytes:
    query = {"format": format, "at_s": at_s, "from_s": from_s, "theme": theme}
    done: bytes = call("GET", session_path(name, "/recording"), query=query, raw=True, start=False, doing="exporting")
    return done


def save(output: str, data: bytes) -> None:
    try:
        with open(output, "wb") as file:
            file.write(data)
    except OSError as problem:
        raise Failure(f"{output} cannot be written: {problem.strerror}") from None


@command(
    "export",
    Option("--format", choices=FORMATS, help="Default: by the file's ending, else asciicast-v2."),
    Option("--output", "-o", metavar="FILE", help="File to write; default: standard output."),
    Option(
        "--at", key="at_s", kind=float, metavar="SECONDS", help="The moment that svg and png show; default: the last."
    ),
    Option(
        "--from",
        key="from_s",
        kind=float,
        metavar="SECONDS",
        help="Begin there, with the screen of that moment; default: the start.",
    ),
    Option("--theme", choices=("dark", "light"), default="dark", show_default=True),
    json_option,
    session_argument,
)
def export(
    format: str | None,
    output: str | None,
    at_s: float | None,
    from_s: float | None,
    theme: str,
    as_json: bool,
    session: str,
) -> None:
    """Write what SESSION printed, from its journal; also of a session that ended.

    An svg-animated plays the whole recording, with pauses cut to two seconds.
    With --json and no file, the recording itself stands in `data`: as text, a png as base64.
    """
    endings = {".cast": "asciicast-v2", ".txt": "txt", ".html": "html", ".svg": "svg", ".png": "png"}
    chosen = format or (endings.get(os.path.splitext(output)[1].lower()) if output else None) or "asciicast-v2"
    data = fetch(session, chosen, at_s, theme, from_s)
    if output is not None:
        save(output, data)
    if as_json:
        facts = {"session": session, "format": chosen, "bytes": len(data)}
        print_json(facts | ({"file": output} if output is not None else _inline(data, chosen)))
    elif output is None:
        sys.stdout.buffer.write(data)


def _inline(data: bytes, format: str) -> dict[str, str]:
    if format == "png":
        import base64

        return {"encoding": "base64", "data": base64.b64encode(data).decode()}
    return {"encoding": "utf8", "data": data.decode("utf-8", "replace")}
