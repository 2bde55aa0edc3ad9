from __future__ import annotations

import base64
import sys
from pathlib import Path

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server

FORMATS = ("asciicast-v2", "asciicast-v3", "txt", "html", "svg", "png")


def fetch(name: str, format: str, at_s: float | None, theme: str) -> bytes:
    async def work(server: Server) -> bytes:
        path = server.session(name).path("/recording")
        done = await server.call("GET", path, query={"format": format, "at_s": at_s, "theme": theme}, raw=True)
        assert isinstance(done, bytes)
        return done

    return ask(work, doing="exporting")


def save(output: Path, data: bytes) -> None:
    try:
        output.write_bytes(data)
    except OSError as problem:
        raise click.ClickException(f"{output} cannot be written: {problem.strerror}") from None


@click.command("export")
@click.option("--format", type=click.Choice(FORMATS), help="Default: by the file's ending, else asciicast-v2.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write; default: standard output.")
@click.option(
    "--at", "at_s", type=float, metavar="SECONDS", help="The moment that svg and png show; default: the last."
)
@click.option("--theme", type=click.Choice(["dark", "light"]), default="dark", show_default=True)
@json_option
@click.argument("session")
def export(
    format: str | None, output: Path | None, at_s: float | None, theme: str, as_json: bool, session: str
) -> None:
    """Write what SESSION printed, from its journal; also of a session that ended.

    With --json and no file, the recording itself stands in `data`: as text, a png as base64.
    """
    endings = {".cast": "asciicast-v2", ".txt": "txt", ".html": "html", ".svg": "svg", ".png": "png"}
    chosen = format or (endings.get(output.suffix.lower()) if output else None) or "asciicast-v2"
    data = fetch(session, chosen, at_s, theme)
    if output is not None:
        save(output, data)
    if as_json:
        facts = {"session": session, "format": chosen, "bytes": len(data)}
        print_json(facts | ({"file": str(output)} if output is not None else _inline(data, chosen)))
    elif output is None:
        sys.stdout.buffer.write(data)


def _inline(data: bytes, format: str) -> dict[str, str]:
    if format == "png":
        return {"encoding": "base64", "data": base64.b64encode(data).decode()}
    return {"encoding": "utf8", "data": data.decode("utf-8", "replace")}
