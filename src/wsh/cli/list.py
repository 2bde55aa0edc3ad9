from __future__ import annotations

from wsh.cli.declare import Option, command, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call, is_server_there


@command(
    "list",
    Option("--tag", key="tags", multiple=True, help="Only sessions with this tag; may be given again."),
    json_option,
)
def list_(tags: tuple[str, ...], as_json: bool) -> None:
    """List sessions, the oldest first."""
    found = call("GET", "/sessions", query={"tag": ",".join(tags) or None}, start=False) if is_server_there() else []
    if as_json:
        print_json(found)
        return
    rows = [
        (
            info["name"],
            info["state"] if info["running"] else f"exited {info['exit_code']}",
            info["pid"],
            f"{info['rows']}x{info['cols']}",
            info["command"],
            (info.get("sandbox") or {}).get("profile", ""),
            " ".join(info["tags"]),
        )
        for info in found
    ]
    print_table(
        ("name", "state", "pid", "size", "command", "sandbox", "tags"), rows, empty="No sessions. Begin with: wsh new"
    )
