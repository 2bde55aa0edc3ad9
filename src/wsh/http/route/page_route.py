"""Routes of the page: files that the web build left in the package, nothing else.

Names of built files carry a hash of their content, so they may be kept for ever; the page itself is always asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from wsh.http.route.table import HttpAnswer, HttpCall, Route
from wsh.wire.error import CapabilityMissing, NotFound

GROUP = "page"

# xterm sets the place of its rows by style attributes; everything else comes from files of ours.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}


@dataclass(frozen=True)
class PageFile:
    body: bytes
    media_type: str


@lru_cache(maxsize=1)
def load_page() -> dict[str, PageFile]:
    """Every file of the built page by its path below /ui/; empty if it was not built."""
    found: dict[str, PageFile] = {}
    root = resources.files("wsh.http") / "static" / "ui"
    if not root.is_dir():
        return found
    for entry in root.iterdir():
        files = [(f"assets/{f.name}", f) for f in entry.iterdir()] if entry.is_dir() else [(entry.name, entry)]
        for path, file in files:
            kind = _TYPES.get(path.rpartition(".")[2])
            if kind is not None:
                found[path] = PageFile(file.read_bytes(), kind)
    return found


def serve(path: str) -> HttpAnswer:
    files = load_page()
    if not files:
        raise CapabilityMissing(
            "The page is not part of this installation.", hint="Build it with `make page`, or install a released wheel."
        )
    file = files.get(path)
    if file is None:
        raise NotFound("The page has no such file.", hint="Load the page again; it may have been updated.")
    kept = "public, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
    headers = (("cache-control", kept), ("content-security-policy", PAGE_POLICY))
    return HttpAnswer(file.body, media_type=file.media_type, headers=headers)


async def get_page(call: HttpCall) -> HttpAnswer:
    if not str(call.scope["path"]).endswith("/"):
        # Its files are named relative to it, so that it works under any prefix.
        return HttpAnswer(b"", 303, headers=(("location", f"{call.server.base_prefix}/ui/"),))
    return serve("index.html")


async def get_file(call: HttpCall) -> HttpAnswer:
    return serve(call.path["file"])


async def get_asset(call: HttpCall) -> HttpAnswer:
    return serve(f"assets/{call.path['file']}")


_ERRORS = ("not_found", "capability_missing")

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/ui",
        get_page,
        "The page.",
        GROUP,
        answer="A page.",
        media_type="text/html",
        errors=_ERRORS,
        public=True,
    ),
    Route(
        "GET",
        "/ui/{file}",
        get_file,
        "A file of the page.",
        GROUP,
        answer="A file.",
        media_type="text/html",
        errors=_ERRORS,
        public=True,
    ),
    Route(
        "GET",
        "/ui/assets/{file}",
        get_asset,
        "A built file of the page.",
        GROUP,
        answer="A file.",
        media_type="text/javascript",
        errors=_ERRORS,
        public=True,
    ),
)
