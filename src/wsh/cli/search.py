"""`wsh search`: hits for people with clickable paths, plain `path:line:text` lines in a pipe, JSON for programs."""

from __future__ import annotations

import os
import sys

from wsh.cli.declare import Argument, Option, command, echo, json_option
from wsh.cli.from_disk import read_workspace
from wsh.cli.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject


@command(
    "search",
    Argument("query", many=True),
    Option("-F", "--literal", key="match", constant="literal", help="Match the text exactly."),
    Option("-E", "--regex", key="match", constant="regex", help="Match a regular expression."),
    Option("--mode", choices=("all", "code", "prose", "transcripts"), help="Where to search."),
    Option("-w", "--workspace", default=".", help="Folder to search; default: this one."),
    Option("-p", "--path", key="paths", multiple=True, help="Glob of files, such as 'src/**' or '!tests'."),
    Option("-l", "--lang", key="langs", multiple=True, help="Language, such as python."),
    Option("-k", "--kind", key="kinds", multiple=True, help="Kind, such as function, class, heading, command."),
    Option("--name", help="Name of the symbol; * and ? stand for any text."),
    Option("--modified-after", help="Only files changed after a time, such as 2026-01-31 or 7d."),
    Option("-s", "--session", key="sessions", multiple=True, help="Only commands of this session."),
    Option("--exit-code", kind=int, help="Only commands that ended so."),
    Option("--since", help="Only commands that ran after a time, such as 2h."),
    Option("--until", help="Only commands that began before a time."),
    Option("-n", "--top", kind=int, help="How many hits."),
    Option("-C", "--context", kind=int, help="Lines around a match."),
    Option("--cursor", help="Go on after the page that gave this cursor."),
    Option("--explain", kind=bool, help="Say how the query was read and how scores came about."),
    Option("--timeout-ms", kind=int, help="Deadline."),
    json_option,
)
def search(query: tuple[str, ...], workspace: str, as_json: bool, **options: object) -> int:
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
    arguments: JsonObject = {"query": " ".join(query), "workspace": os.path.abspath(workspace)}
    for option, argument in names.items():
        value = options[option]
        if value not in (None, (), False):
            arguments[argument] = list(value) if isinstance(value, tuple) else value
    found = read_workspace("search", arguments, doing="searching")
    if as_json:
        print_json(found)
    elif sys.stdout.isatty():
        _print_pretty(found)
    else:
        _print_lines(found)
    return 0 if found["hits"] else 1


def _where(hit: JsonObject) -> str:
    if hit["path"] is not None:
        return str(hit["path"])
    told = hit["transcript"]
    return f"{told['session']}[{told['startedAt']}]"


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else "�" for c in text)


def _print_lines(found: JsonObject) -> None:
    """One line per match, as grep prints them."""
    for hit in found["hits"]:
        snippet = hit["snippet"]
        lines = snippet["text"].split("\n")
        numbers = sorted({place["line"] for place in snippet["matches"]}) or [snippet["startLine"]]
        for number in numbers:
            echo(f"{_where(hit)}:{number}:{_clean(lines[number - snippet['startLine']])}")


def _print_pretty(found: JsonObject) -> None:
    from socket import gethostname
    from urllib.parse import quote

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
            title.stylize(f"link file://{gethostname()}{quote(full)}#{first}")
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
