from __future__ import annotations

from wsh.cli.declare import command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call

_LIFETIME_S = 30
# It ends early where somebody else has cleared the file away.
_REMOVE = 'n=$1; while [ "$n" -gt 0 ] && [ -e "$2" ]; do sleep 1; n=$((n - 1)); done; rm -f -- "$2"'
_PAGE = '<!doctype html><meta charset="utf-8"><title>wsh</title><meta http-equiv="refresh" content="0;url={url}">\n'


@command("open", json_option)
def open_(as_json: bool) -> None:
    """Open the page in your browser, signed in; without a browser, print a link. BROWSER names another browser than the usual one."""
    url = call("POST", "/auth/link")["url"]
    page = url.partition("/auth/")[0]
    opened = _show(url)
    if as_json:
        print_json({"opened": page} if opened else {"opened": None, "link": url})
    elif opened:
        echo(f"opened {page}")
    else:
        echo("There is no browser to open here. This link signs one in, once:", err=True)
        echo(url)


def _show(url: str) -> bool:
    """True if a browser was started.

    Arguments of a process can be read by every user of the machine, and the link signs in the first who follows it. So the browser is given
    a private file that leads there, which is removed half a minute later.
    """
    import os
    import subprocess
    import tempfile
    import webbrowser
    from html import escape

    if not any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        return False
    file, path = tempfile.mkstemp(prefix="wsh-", suffix=".html")
    with os.fdopen(file, "w") as out:
        out.write(_PAGE.format(url=escape(url)))
    opened = webbrowser.open(f"file://{path}")
    removing = ["sh", "-c", _REMOVE, "sh", str(_LIFETIME_S if opened else 0), path]
    devnull = subprocess.DEVNULL
    subprocess.Popen(removing, stdin=devnull, stdout=devnull, stderr=devnull, start_new_session=True)
    return opened
