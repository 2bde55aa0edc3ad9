"""`wsh index`: build a workspace's index, look at it, keep it fresh, move it between machines."""

from __future__ import annotations

import os
import sys
import time

from wsh.cli.declare import Argument, Failure, Option, echo, group, json_option
from wsh.cli.from_disk import export_index, read_workspace
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

workspace_argument = Argument("workspace", default=".")
file_argument = Argument("file")
workspace_option = Option("-w", "--workspace", default=".", help="Whose index; default: this folder's.")


@group("index")
def index() -> None:
    """Build and look after a workspace's index."""


def _call(tool: str, arguments: JsonObject, doing: str = "") -> JsonObject:
    found: JsonObject = call("POST", f"/workspace/{tool}", json_body=arguments, doing=doing)
    return found


@index.command(
    "build",
    workspace_argument,
    Option("--mode", choices=("all", "code", "prose", "transcripts"), default="all", show_default=True),
    Option("--full", kind=bool, help="Read everything again."),
    Option("-p", "--path", key="paths", multiple=True, help="Only this file or folder of the workspace."),
    Option("--timeout-ms", kind=int, help="Deadline."),
    json_option,
)
def build(workspace: str, mode: str, full: bool, paths: tuple[str, ...], timeout_ms: int | None, as_json: bool) -> None:
    """Build the index of WORKSPACE, or bring it up to date."""
    arguments: JsonObject = {"workspace": os.path.abspath(workspace), "mode": mode, "full": full}
    if paths:
        arguments["paths"] = list(paths)
    if timeout_ms is not None:
        arguments["timeoutMs"] = timeout_ms
    if as_json or not sys.stderr.isatty():
        built = _call("index_build", arguments, doing="building")
    else:
        built = _build_with_bar(arguments)
    if as_json:
        print_json(built)
        return
    if built["rebuilt"]:
        echo(f"The index could not be used ({built['rebuilt']['reason']}) and was built anew.")
    files = built["files"]
    if files is not None:
        echo(
            f"{files['added']} added, {files['changed']} changed, {files['removed']} removed, "
            f"{files['unchanged']} unchanged, in {built['durationMs'] / 1000:.2f} s"
        )
        for reason, count in built["skippedByReason"].items():
            echo(f"  skipped, {reason}: {count}")
    if built.get("transcripts"):
        echo(f"{built['transcripts']['documents']} transcripts, {built['transcripts']['expired']} expired")


def _build_with_bar(arguments: JsonObject) -> JsonObject:
    """The build runs in the server; its phase is asked for twice a second."""
    from concurrent.futures import ThreadPoolExecutor, TimeoutError

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        ThreadPoolExecutor(1) as pool,
        Progress(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        building = pool.submit(_call, "index_build", arguments)
        row = bar.add_task("starting", total=None)
        while True:
            try:
                return building.result(0.5)
            except TimeoutError:
                state = _call("index_status", {"workspace": arguments["workspace"]})["running"]
                if state:
                    bar.update(row, description=state["phase"], completed=state["done"], total=state["total"] or None)


@index.command("status", workspace_argument, json_option)
def status(workspace: str, as_json: bool) -> None:
    """Say what the index of WORKSPACE holds and how fresh it is."""
    found = read_workspace("index_status", {"workspace": os.path.abspath(workspace)})
    if as_json:
        print_json(found)
        return
    if found["problem"]:
        echo(f"The index cannot be used: {found['problem']['message']} {found['problem']['hint']}")
    elif not found["exists"]:
        echo("There is no index. Build it with: wsh index build")
    else:
        stale = found["stale"]
        rows: list[tuple[str, object]] = [
            ("files", found["files"]),
            ("chunks", found["chunks"]),
            ("text", f"{found['textBytes'] / 1e6:.1f} MB"),
            ("index", f"{found['sizeBytes'] / 1e6:.1f} MB"),
            ("built", found["builtAt"]),
            ("since then", f"{stale['added']} added, {stale['changed']} changed, {stale['removed']} removed"),
            ("watched", "yes" if found["watched"] else "no"),
            ("languages", ", ".join(f"{name} {count}" for name, count in found["byLanguage"].items())),
            ("kinds", ", ".join(f"{name} {count}" for name, count in found["byKind"].items())),
        ]
        if found["skippedByReason"]:
            rows.append(("skipped", ", ".join(f"{r} {n}" for r, n in found["skippedByReason"].items())))
        print_table(("", ""), rows)
    if found["running"]:
        echo(f"A build is running: {found['running']['phase']}")
    if found["transcripts"]:
        echo(f"{found['transcripts']['documents']} transcripts")


@index.command("watch", workspace_argument, json_option)
def watch(workspace: str, as_json: bool) -> None:
    """Build the index of WORKSPACE and say when it is refreshed, until Ctrl+C. The server does the watching."""
    where = {"workspace": os.path.abspath(workspace)}

    _call("index_build", where)
    seen = ""
    while True:
        state = _call("index_status", where)
        if state["builtAt"] != seen:
            seen = state["builtAt"]
            if as_json:
                print_json({key: state[key] for key in ("workspace", "builtAt", "files", "chunks")})
            else:
                echo(f"{seen}  {state['files']} files, {state['chunks']} chunks")
        if not state["watched"]:
            raise Failure("The server does not watch (setting index.watch).")
        time.sleep(1)


@index.command("export", file_argument, workspace_option, json_option)
def export(file: str, workspace: str, as_json: bool) -> None:
    """Write the index to FILE (.tar.zst), to be imported on another machine."""
    done = export_index(os.path.abspath(workspace), os.path.abspath(file))
    if as_json:
        print_json(done)
    else:
        echo(f"{done['file']}: {done['bytes'] / 1e6:.1f} MB")


@index.command("import", file_argument, workspace_option, json_option)
def import_(file: str, workspace: str, as_json: bool) -> None:
    """Take the index from FILE, after verifying it."""
    body = {"workspace": os.path.abspath(workspace), "file": os.path.abspath(file)}
    done = call("POST", "/workspace/index/import", json_body=body, doing="importing")
    if as_json:
        print_json(done)
    else:
        echo(f"The index of {done['from']} is now that of {done['workspace']}; `wsh index build` brings it up to date.")
