"""The OpenAPI document: complete, true, and survived by the server under generated requests."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

import wsh.http.route
from tests.support.serving import RunningServer, running_server
from wsh.http.error import STATUS
from wsh.http.route.table import Route
from wsh.http.ws.methods import METHODS
from wsh.http.ws.subscription import EVENTS
from wsh.wire.error import list_error_classes
from wsh.wire.setting import SETTINGS
from wsh.wire.system.place import Places

MODULES = [
    importlib.import_module(f"wsh.http.route.{found.name}")
    for found in pkgutil.iter_modules(wsh.http.route.__path__)
    if found.name.endswith("_route")
]
ROUTES: list[Route] = [route for module in MODULES for route in module.ROUTES]
DOCS = Path(__file__).parents[3] / "docs" / "http-api.md"

SETUP = """
[[operations]]
include-path-regex = "sessions/.name."
parameters = { name = "prey" }
"""


def test_every_route_is_in_the_document_in_both_forms(server: RunningServer) -> None:
    document = server.get("/openapi.json")
    assert document["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(route.method, route.path) for route in ROUTES if route.method != "WEBSOCKET"}
    for route in ROUTES:
        if route.method == "WEBSOCKET":
            assert route.path in document["info"]["description"]
    assert yaml.safe_load(server.request("GET", "/openapi.yaml").body) == document
    assert len({o["operationId"] for m in document["paths"].values() for o in m.values()}) == len(listed)


def test_the_docs_page_needs_nothing_from_elsewhere(server: RunningServer) -> None:
    page = server.request("GET", "/docs").body.decode()
    assert "http://" not in page and "https://" not in page and "<script>" not in page and "style=" not in page
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert server.request("GET", name).status == 200, name


def test_every_error_code_has_one_status() -> None:
    for cls in list_error_classes():
        assert cls.code in STATUS, f"{cls.__name__} would leave as 500"
    for route in ROUTES:
        assert set(route.errors) <= set(STATUS), route.path
    assert 422 not in STATUS.values()


def test_everything_is_documented() -> None:
    text = DOCS.read_text()
    for route in ROUTES:
        assert route.path.replace("{name}", "{n}") in text, f"{route.path} is missing in docs/http-api.md"
    for word in (*METHODS, *EVENTS, *STATUS):
        assert f"`{word}`" in text, f"{word} is missing in docs/http-api.md"
    for setting in SETTINGS:
        if setting.key.startswith("server."):
            assert f"`{setting.key}`" in text, f"{setting.key} is missing in docs/http-api.md"


@contextmanager
def _tending(server: RunningServer) -> Iterator[None]:
    """Generated requests kill and rename their prey and open sessions without end: keep one of that name, and few."""
    server.request("POST", "/sessions", {"name": "prey", "command": "bash"})
    stop = threading.Event()

    def tend() -> None:
        while not stop.wait(0.1):
            names = [info["name"] for info in server.get("/sessions")]
            for name in names if len(names) > 30 else ():
                if name != "prey":
                    server.request("DELETE", f"/sessions/{quote(name, safe='')}")
            if "prey" not in names:
                server.request("POST", "/sessions", {"name": "prey", "command": "bash"})

    tending = threading.Thread(target=tend)
    tending.start()
    try:
        yield
    finally:
        stop.set()
        tending.join()


@pytest.mark.accept
@pytest.mark.torture
@pytest.mark.timeout(1600)
def test_generated_requests_find_no_server_error_and_nothing_undocumented(
    places: Places, tmp_path: Path, torture: bool
) -> None:
    """Bounded: a few requests for each operation, 200 under torture. Waits are cut short, or they would be most of it."""
    setup = tmp_path / "schemathesis.toml"
    setup.write_text(SETUP)
    limits = {"WSH_SERVER_MAX_WAIT_MS": "60", "WSH_SERVER_FAILED_LOGINS_PER_MINUTE": "100000"}
    with running_server(places, environ=limits, expect_alive=True) as server, _tending(server):
        done = subprocess.run(
            [
                str(Path(sys.executable).parent / "schemathesis"),
                "--config-file",
                str(setup),
                "run",
                f"{server.url}/openapi.json",
                "--header",
                f"Authorization: Bearer {server.token}",
                "--phases",
                "examples,coverage,fuzzing" if torture else "fuzzing",
                "--max-examples",
                "200" if torture else "10",
                "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
                "--exclude-path-regex",
                "^/server/stop$|^/terminal$|^/auth/open$|^/ui",
                "--exclude-method",
                "DELETE" if not torture else "TRACE",
                "--suppress-health-check",
                "all",
                "--request-timeout",
                "60",
                *(() if torture else ("--generation-deterministic",)),
                "--continue-on-failure",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            timeout=1500,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert "Traceback" not in server.output.read_text()
