from __future__ import annotations

from wsh.cli.declare import Argument, Option, command, echo, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command(
    "tag",
    Option("--remove", "-r", multiple=True, help="Take this tag away; may be given again."),
    json_option,
    session_argument,
    Argument("tags", many=True, required=False),
)
def tag(remove: tuple[str, ...], as_json: bool, session: str, tags: tuple[str, ...]) -> None:
    """Add TAGS to SESSION, and print the tags it has then."""
    info = call("PATCH", session_path(session), json_body={"add_tags": list(tags), "remove_tags": list(remove)})
    if as_json:
        print_json(info)
    else:
        echo(" ".join(info["tags"]))
