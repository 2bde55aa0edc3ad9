from __future__ import annotations

import sys

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("send")
@click.option("--enter", is_flag=True, help="Press Enter afterwards.")
@json_option
@click.argument("session")
@click.argument("text", nargs=-1)
def send(enter: bool, as_json: bool, session: str, text: tuple[str, ...]) -> None:
    """Type TEXT into SESSION as it is; without TEXT, what comes on stdin."""
    data = " ".join(text).encode("utf-8", "surrogateescape") if text else sys.stdin.buffer.read()
    if enter:
        data += b"\r"
    ask(lambda server: server.session(session).send(data), doing="sending")
    if as_json:
        print_json({"session": session, "bytes": len(data)})
