from __future__ import annotations

from wsh.cli.declare import command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call


@command("link", json_option)
def link(as_json: bool) -> None:
    """Print a link that opens the page and signs this browser in. It works once, for ten minutes."""
    url = call("POST", "/auth/link")["url"]
    if as_json:
        print_json({"url": url})
    else:
        echo(url)
