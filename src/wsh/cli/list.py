from __future__ import annotations

import sys

from wsh.cli.declare import Option, command, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import ANSWER_S, call, is_any_kept, is_server_there


@command(
    "list",
    Option("--tag", key="tags", multiple=True, help="Only sessions with this tag; may be given again."),
    json_option,
)
def list_(tags: tuple[str, ...], as_json: bool) -> None:
    """List sessions, the oldest first."""
    try:
        if not is_server_there() and not is_any_kept():
            found = []
        else:
            query = {"tag": ",".join(tags) or None}
            found = call("GET", "/sessions", query=query, start=False, answer_s=ANSWER_S)
    except Exception as problem:
        if getattr(problem, "code", "") != "server_gone":
            raise
        from wsh.cli.kept import find_held, list_kept

        found = list_kept(tags)
        if not found and not tags and find_held():
            raise  # the keeper holds some that no folder describes yet
        if found:
            sys.stderr.write(
                "No server runs. The keeper holds what is kept; `wsh attach NAME` starts a server that has it again.\n"
            )
    if as_json:
        print_json(found)
        return
    rows = [
        (
            info["name"],
            info["state"]
            if info["running"]
            else f"exited {'' if info['exit_code'] is None else info['exit_code']}".rstrip(),
            info["pid"],
            f"{info['cols']}×{info['rows']}",
            info["command"],
            (info.get("sandbox") or {}).get("profile", ""),
            " ".join(info["tags"]),
        )
        for info in found
    ]
    print_table(
        ("name", "state", "pid", "size", "command", "sandbox", "tags"), rows, empty="No sessions. Begin with: wsh new"
    )
