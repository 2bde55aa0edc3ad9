from __future__ import annotations

import sys

from wsh.cli.declare import Failure, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from urllib.parse import SplitResult


@command(
    "link",
    Option("--qr", kind=bool, help="Draw it as a QR code, for a phone's camera."),
    Option(
        "--at",
        metavar="URL",
        help="The address at which the browser reaches the server, such as https://box.example.net.",
    ),
    json_option,
)
def link(qr: bool, at: str | None, as_json: bool) -> None:
    """Print a link that opens the page and signs this browser in. It works once, for ten minutes."""
    address = _read_address(at) if at is not None else None
    url = call("POST", "/auth/link")["url"]
    if address is not None:
        url = _move(url, address)
    warning = _find_warning(url) if qr or at is not None else None
    if as_json:
        print_json({"url": url, "warning": warning})
        return
    if qr:
        _draw(url)
    echo(url)
    if warning is not None:
        echo(warning, err=True)


def _read_address(text: str) -> SplitResult:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text if "//" in text else f"https://{text}")
        if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.username:
            return parts
    except ValueError:
        pass
    raise WrongUse(f"--at takes an address such as https://box.example.net, not {text!r}.")


def _move(url: str, address: SplitResult) -> str:
    """The same link at another address. A path of the address stands in front, as with a proxy that serves wsh under one."""
    from urllib.parse import urlsplit

    link = urlsplit(url)
    return link._replace(
        scheme=address.scheme, netloc=address.netloc, path=address.path.rstrip("/") + link.path
    ).geturl()


def _find_warning(url: str) -> str | None:
    """What keeps a phone from using the link, or makes that unwise."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127."):
        return (
            "This address means the machine that opens it. A phone reaches the server by an ssh forwarding on the phone itself, "
            "or at another address: give that with --at (docs/phone.md)."
        )
    if parts.scheme != "https":
        return (
            "Plain http: anybody on the way can read and use this link and everything after it, and the phone takes no push. "
            "Use https: a VPN with certificates, or a reverse proxy (docs/phone.md)."
        )
    return None


def _draw(url: str) -> None:
    try:
        import segno
    except ImportError:
        raise Failure("The package segno, which draws QR codes, is missing: install it anew.") from None
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    segno.make(url, error="l", micro=False).terminal(out=sys.stdout, border=2, compact=encoding == "utf8")
