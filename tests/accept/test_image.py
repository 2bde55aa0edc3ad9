"""The container image, built from a clean root without a daemon, and used."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.accept.test_clean_root import enter, make_root
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-this-test-alone-0123456789"


@pytest.fixture(scope="module")
def image(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root file system of the built image."""
    if os.getuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"):
        pytest.skip("an image needs root's rights and the Debian packages buildah and mmdebstrap")
    folder = tmp_path_factory.mktemp("image")
    root = make_root("bookworm", folder)
    context = folder / "context"
    shutil.copytree(ROOT / "container", context / "container")
    shutil.copy(ROOT / "constraints.txt", context)
    download = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--python-version=3.11"]
    subprocess.run([*download, "-c", ROOT / "constraints.txt", "-d", context / "dist", wheel], check=True)
    # Storage of its own, so that nothing is left on the machine.
    buildah = [
        "buildah",
        "--root",
        str(folder / "storage"),
        "--runroot",
        str(folder / "run"),
        "--storage-driver",
        "vfs",
    ]

    def build(*words: str) -> str:
        done = subprocess.run([*buildah, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"buildah {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout.strip()

    base = build("from", "scratch")
    build("add", "-q", base, str(root), "/")
    build("commit", "-q", base, "localhost/base")
    args = ["--build-arg", "BASE=localhost/base", "--build-arg", "PIP_NO_INDEX=1"]
    build(
        "bud", "-q", "--isolation", "chroot", "--pull-never", *args,
        "-f", str(context / "container" / "Containerfile"), "-t", "localhost/wsh", str(context),
    )  # fmt: skip
    container = build("from", "--pull-never", "localhost/wsh")
    mounted = Path(build("mount", container))
    yield mounted
    build("rm", "--all")
    build("rmi", "--all", "--force")


def test_the_image_serves_mcp_on_a_published_port(image: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Outside, another port than the server's own is published: what run-container.sh passes lets it be called by that.
    environ = ["PATH=/opt/wsh/bin:/usr/bin:/bin", "HOME=/home/wsh", "XDG_RUNTIME_DIR=/run/wsh", f"WSH_TOKEN={TOKEN}"]
    environ += ["WSH_WITHOUT_DESKTOP=1", "WSH_SERVER_ALLOWED_HOSTS=127.0.0.1:1234"]
    chroot = enter(image, *environ, user="1000:1000")
    command = [*chroot, "/usr/local/bin/wsh-entrypoint", "wsh", "server", "--bind", f"127.0.0.1:{port}"]
    headers = {"Host": "127.0.0.1:1234", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            wait_until(lambda: _answers(port), what="the server in the image")
            initialize = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            session, _ = _post(port, headers, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize})
            headers["Mcp-Session-Id"] = session
            _, listed = _post(port, headers, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
            assert {"wsh_run_command", "execute_command"} <= {tool["name"] for tool in listed["result"]["tools"]}
            refused, _ = _status(port, headers | {"Host": "127.0.0.1:4321"})
            assert refused == 421
        finally:
            subprocess.run([*chroot, "wsh", "stop"], capture_output=True, timeout=120, check=False)
            process.terminate()
            process.wait(60)


def _answers(port: int) -> bool:
    try:
        return _status(port, {})[0] == 200
    except OSError:
        return False


def _status(port: int, headers: dict[str, str]) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/health" if not headers else "/sessions", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def _post(
    port: int, headers: dict[str, str], message: dict[str, object]
) -> tuple[str, dict[str, dict[str, list[dict[str, str]]]]]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = connection.getresponse()
        body = answer.read().decode()
    assert answer.status == 200, body
    data = next(line[5:] for line in body.splitlines() if line.startswith("data:")) if "data:" in body else body
    return answer.getheader("Mcp-Session-Id") or "", json.loads(data)
