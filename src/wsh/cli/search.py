"""`wsh search`: hits for people with clickable paths, plain `path:line:text` lines in a pipe, JSON for programs."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any
from urllib.parse import quote

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("-F", "--literal", "match", flag_value="literal", help="Match the text exactly.")
@click.option("-E", "--regex", "match", flag_value="regex", help="Match a regular expression.")
@click.option("--mode", type=click.Choice(["all", "code", "prose", "transcripts"]), help="Where to search.")
@click.option("-w", "--workspace", type=click.Path(), default=".", help="Folder to search; default: this one.")
@click.option("-p", "--path", "paths", multiple=True, help="Glob of files, such as 'src/**' or '!tests'.")
@click.option("-l", "--lang", "langs", multiple=True, help="Language, such as python.")
@click.option("-k", "--kind", "kinds", multiple=True, help="Kind, such as function, class, heading, command.")
@click.option("--name", help="Name of the symbol; * and ? stand for any text.")
@click.option("--modified-after", help="Only files changed after a time, such as 2026-01-31 or 7d.")
@click.option("-s", "--session", "sessions", multiple=True, help="Only commands of this session.")
@click.option("--exit-code", type=int, help="Only commands that ended so.")
@click.option("--since", help="Only commands that ran after a time, such as 2h.")
@click.option("--until", help="Only commands that began before a time.")
@click.option("-n", "--top", type=int, help="How many hits.")
@click.option("-C", "--context", "context", type=int, help="Lines around a match.")
@click.option("--cursor", help="Go on after the page that gave this cursor.")
@click.option("--explain", is_flag=True, help="Say how the query was read and how scores came about.")
@click.option("--timeout-ms", type=int, help="Deadline.")
@json_option
def search(query: tuple[str, ...], workspace: str, as_json: bool, **options: Any) -> None:
    """Search code, prose and everything that terminals printed.

    All words must occur; OR, NOT or a leading -, "phrases", (brackets) and prefix* are understood. Put -- before a query
    that begins with a dash.
    """
    names = {
        "match": "match",
        "mode": "mode",
        "paths": "path",
        "langs": "lang",
        "kinds": "kind",
        "name": "name",
        "modified_after": "modifiedAfter",
        "sessions": "session",
        "exit_code": "exitCode",
        "since": "since",
        "until": "until",
        "top": "top",
        "context": "contextLines",
        "cursor": "cursor",
        "explain": "explain",
        "timeout_ms": "timeoutMs",
    }
    arguments: dict[str, Any] = {"query": " ".join(query), "workspace": os.path.abspath(workspace)}
    for option, argument in names.items():
        value = options[option]
        if value not in (None, (), False):
            arguments[argument] = list(value) if isinstance(value, tuple) else value
    found = ask(lambda server: server.call("POST", "/workspace/search", json_body=arguments), doing="searching")
    if as_json:
        print_json(found)
    elif sys.stdout.isatty():
        _print_pretty(found)
    else:
        _print_lines(found)
    sys.exit(0 if found["hits"] else 1)


def _where(hit: dict[str, Any]) -> str:
    if hit["path"] is not None:
        return str(hit["path"])
    told = hit["transcript"]
    return f"{told['session']}[{told['startedAt']}]"


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else "�" for c in text)


def _print_lines(found: dict[str, Any]) -> None:
    """One line per match, as grep prints them."""
    for hit in found["hits"]:
        snippet = hit["snippet"]
        lines = snippet["text"].split("\n")
        numbers = sorted({place["line"] for place in snippet["matches"]}) or [snippet["startLine"]]
        for number in numbers:
            click.echo(f"{_where(hit)}:{number}:{_clean(lines[number - snippet['startLine']])}")


def _print_pretty(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for warning in found["warnings"]:
        console.print(Text(f"{warning['code']}: {warning['message']}", style="yellow"))
    for hit in found["hits"]:
        snippet = hit["snippet"]
        first = snippet["matches"][0]["line"] if snippet["matches"] else hit["startLine"]
        title = Text(_clean(_where(hit)), style="bold")
        if hit["path"] is not None:
            full = os.path.join(found["workspace"], hit["path"])
            title.stylize(f"link file://{socket.gethostname()}{quote(full)}#{first}")
        title.append(f":{first}", style="green")
        label = f"  {hit['kind']}" + (f" {_clean(hit['name'])}" if hit["name"] else "")
        if hit["source"] == "transcript" and hit["transcript"]["exitCode"] is not None:
            label += f"  exit {hit['transcript']['exitCode']}"
        title.append(label, style="cyan")
        title.append(f"  {hit['score']:.1f}  {hit['id']}", style="dim")
        console.print(title)
        for offset, raw in enumerate(snippet["text"].split("\n")):
            number = snippet["startLine"] + offset
            body = Text(_clean(raw))
            for place in snippet["matches"]:
                if place["line"] == number:
                    body.stylize("bold red", place["start"], place["end"])
            console.print(Text.assemble((f"{number:>6} ", "dim"), body), soft_wrap=True)
        if "explain" in hit:
            console.print(Text("       " + "  ".join(f"{k} {v}" for k, v in hit["explain"].items()), style="dim"))
        console.print()
    if not found["hits"]:
        console.print("Nothing found.")
    if found["nextCursor"]:
        console.print(Text(f"More: --cursor {found['nextCursor']}", style="dim"))
