"""`wsh index`: build a workspace's index, look at it, keep it fresh, move it between machines."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from wsh.cli.output import json_option, print_json, print_table
from wsh.cli.remote import ask

if TYPE_CHECKING:
    from wsh.client.client import Server

workspace_argument = click.argument("workspace", type=click.Path(), default=".")


@click.group("index")
def index() -> None:
    """Build and look after a workspace's index."""


async def _call(server: Server, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await server.call("POST", f"/workspace/{tool}", json_body=arguments)
    return found


@index.command()
@workspace_argument
@click.option("--mode", type=click.Choice(["all", "code", "prose", "transcripts"]), default="all", show_default=True)
@click.option("--full", is_flag=True, help="Read everything again.")
@click.option("-p", "--path", "paths", multiple=True, help="Only this file or folder of the workspace.")
@click.option("--timeout-ms", type=int, help="Deadline.")
@json_option
def build(workspace: str, mode: str, full: bool, paths: tuple[str, ...], timeout_ms: int | None, as_json: bool) -> None:
    """Build the index of WORKSPACE, or bring it up to date."""
    arguments: dict[str, Any] = {"workspace": os.path.abspath(workspace), "mode": mode, "full": full}
    if paths:
        arguments["paths"] = list(paths)
    if timeout_ms is not None:
        arguments["timeoutMs"] = timeout_ms
    if as_json or not sys.stderr.isatty():
        built = ask(lambda server: _call(server, "index_build", arguments), doing="building")
    else:
        built = ask(lambda server: _build_with_bar(server, arguments), doing="")
    if as_json:
        print_json(built)
        return
    if built["rebuilt"]:
        click.echo(f"The index could not be used ({built['rebuilt']['reason']}) and was built anew.")
    files = built["files"]
    if files is not None:
        click.echo(
            f"{files['added']} added, {files['changed']} changed, {files['removed']} removed, "
            f"{files['unchanged']} unchanged, in {built['durationMs'] / 1000:.2f} s"
        )
        for reason, count in built["skippedByReason"].items():
            click.echo(f"  skipped, {reason}: {count}")
    if built.get("transcripts"):
        click.echo(f"{built['transcripts']['documents']} transcripts, {built['transcripts']['expired']} expired")


async def _build_with_bar(server: Server, arguments: dict[str, Any]) -> dict[str, Any]:
    """The build runs in the server; its phase is asked for twice a second."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    task = asyncio.ensure_future(_call(server, "index_build", arguments))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("starting", total=None)
        while not task.done():
            await asyncio.wait([task], timeout=0.5)
            if not task.done():
                state = (await _call(server, "index_status", {"workspace": arguments["workspace"]}))["running"]
                if state:
                    bar.update(row, description=state["phase"], completed=state["done"], total=state["total"] or None)
    return await task


@index.command()
@workspace_argument
@json_option
def status(workspace: str, as_json: bool) -> None:
    """Say what the index of WORKSPACE holds and how fresh it is."""
    found = ask(lambda server: _call(server, "index_status", {"workspace": os.path.abspath(workspace)}))
    if as_json:
        print_json(found)
        return
    if found["problem"]:
        click.echo(f"The index cannot be used: {found['problem']['message']} {found['problem']['hint']}")
    elif not found["exists"]:
        click.echo("There is no index. Build it with: wsh index build")
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
        click.echo(f"A build is running: {found['running']['phase']}")
    if found["transcripts"]:
        click.echo(f"{found['transcripts']['documents']} transcripts")


@index.command()
@workspace_argument
@json_option
def watch(workspace: str, as_json: bool) -> None:
    """Build the index of WORKSPACE and say when it is refreshed, until Ctrl+C. The server does the watching."""
    where = {"workspace": os.path.abspath(workspace)}

    async def follow(server: Server) -> None:
        await _call(server, "index_build", where)
        seen = ""
        while True:
            state = await _call(server, "index_status", where)
            if state["builtAt"] != seen:
                seen = state["builtAt"]
                if as_json:
                    print_json({key: state[key] for key in ("workspace", "builtAt", "files", "chunks")})
                else:
                    click.echo(f"{seen}  {state['files']} files, {state['chunks']} chunks")
                sys.stdout.flush()
            if not state["watched"]:
                raise click.ClickException("The server does not watch (setting index.watch).")
            await asyncio.sleep(1)

    ask(follow, doing="")


@index.command("export")
@click.argument("file", type=click.Path())
@click.option("-w", "--workspace", type=click.Path(), default=".", help="Whose index; default: this folder's.")
@json_option
def export(file: str, workspace: str, as_json: bool) -> None:
    """Write the index to FILE (.tar.zst), to be imported on another machine."""
    body = {"workspace": os.path.abspath(workspace), "file": os.path.abspath(file)}
    done = ask(lambda server: server.call("POST", "/workspace/index/export", json_body=body), doing="exporting")
    if as_json:
        print_json(done)
    else:
        click.echo(f"{done['file']}: {done['bytes'] / 1e6:.1f} MB")


@index.command("import")
@click.argument("file", type=click.Path())
@click.option("-w", "--workspace", type=click.Path(), default=".", help="Whose index; default: this folder's.")
@json_option
def import_(file: str, workspace: str, as_json: bool) -> None:
    """Take the index from FILE, after verifying it."""
    body = {"workspace": os.path.abspath(workspace), "file": os.path.abspath(file)}
    done = ask(lambda server: server.call("POST", "/workspace/index/import", json_body=body), doing="importing")
    if as_json:
        print_json(done)
    else:
        click.echo(
            f"The index of {done['from']} is now that of {done['workspace']}; `wsh index build` brings it up to date."
        )
