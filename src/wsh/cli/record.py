from __future__ import annotations

import os

from wsh.cli.attach import show
from wsh.cli.declare import Argument, Option, WrongUse, command, echo, json_option
from wsh.cli.export import fetch, save
from wsh.cli.output import print_json
from wsh.cli.start import open_here


@command(
    "record",
    Option("--output", "-o", metavar="FILE", required=True, help="The asciicast file to write."),
    Option("--v3", kind=bool, help="Write version 3 of the format instead of 2."),
    json_option,
    Argument("words", metavar="COMMAND", rest=True, required=False),
)
def record(output: str, v3: bool, as_json: bool, words: tuple[str, ...]) -> int:
    """Run COMMAND, or a shell, in this terminal and write what it prints to a file.

    Every session is recorded anyway: `wsh export` gives the recording of any of them.
    """
    folder = os.path.dirname(os.path.abspath(output))
    if not os.path.isdir(folder):
        raise WrongUse(f"--output: {folder} is not a folder.")
    name = open_here(words, status=False)
    status = show(name, status=False)
    format = "asciicast-v3" if v3 else "asciicast-v2"
    data = fetch(name, format, None, "dark")
    save(output, data)
    if as_json:
        facts = {"session": name, "format": format, "bytes": len(data), "file": output, "exit_code": status}
        print_json(facts)
    else:
        echo(f"written to {output}", err=True)
    return status
