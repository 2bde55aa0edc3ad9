"""The server as a process: start, names, ports, signals, TLS, systemd, slow and broken clients."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.serving import find_processes, read_answer, running_server, start_server
from tests.support.waiting import HANG_S, wait_until, wait_while
from tests.support.warm import run_warm
from wsh.http.server.listen import parse_bind
from wsh.wire.setting import SettingError
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile


def test_the_runtime_file_says_where_the_server_is_and_goes_with_it(places: Places) -> None:
    with running_server(places) as server:
        info = json.loads(places.runtime_info.read_text())
        assert info["pid"] == server.process.pid and info["url"] == f"http://127.0.0.1:{server.port}"
        assert info["socket"] == str(places.socket)
    assert not places.runtime_info.exists()


def test_a_taken_port_moves_on_to_the_next_free_one(places: Places) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running_server(places, bind=f"127.0.0.1:{port}") as server:
            assert port < server.port <= port + 200
            wait_until(lambda: f"Port {port} is taken" in server.output.read_text(), "the announcement")


def test_a_port_taken_on_ipv6_alone_is_taken(places: Places) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running_server(places, bind=f"127.0.0.1:{port}") as server:
            assert server.port != port


def test_a_second_server_of_the_same_name_is_refused_and_one_of_another_name_is_not(places: Places) -> None:
    with running_server(places) as first:
        first.get("/sessions")  # all that belongs to it has started
        second = run_warm([sys.executable, "-m", "wsh.cli.main", "server", "--bind", "127.0.0.1:0"], text=True)
        assert second.returncode == 3 and "runs already" in second.stderr
        other = Places(places.runtime, places.state, places.config, "other")
        with running_server(other, "--name", "other") as server:
            assert server.request("GET", "/server/info").status == 200


def test_a_killed_server_leaves_a_lock_that_the_next_one_takes(places: Places) -> None:
    server = start_server(places)
    # Answered when the keeper is there, which outlives the server and is the next one's.
    assert server.get("/sessions") == []
    server.stop(signal.SIGKILL)
    assert places.socket.exists()
    with running_server(places) as again:
        assert again.get("/sessions") == []


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_tidily_though_a_client_is_connected(places: Places, sig: int) -> None:
    server = start_server(places)
    with socket.create_connection(("127.0.0.1", server.port)):
        assert server.stop(sig) == 0
    assert not places.socket.exists() and not places.runtime_info.exists()


def test_tls_is_spoken_on_tcp_and_the_unix_socket_stays_plain(places: Places, tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}".split(),
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(cafile=str(cert))
    with running_server(places, "--tls-cert", str(cert), "--tls-key", str(key), tls=context) as server:
        assert server.url.startswith("https://")
        assert server.request("GET", "/server/info").status == 200
        assert server.request("GET", "/server/info", headers={"Origin": server.url}).status == 200
        plain = {"Origin": server.url.replace("https", "http")}
        assert server.request("GET", "/server/info", headers=plain).status == 403
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(server.socket))
            sock.sendall(b"GET /server/info HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(sock).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--bind", "nonsense:port"], "server.bind"),
        (["--bind", "no.such.host.invalid:0"], "is not known"),
        (["--tls-cert", "/nowhere.pem"], "go together"),
        (["--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"], "cannot be used"),
        (["--base-prefix", "/a b"], "server.base_prefix"),
        (["--max-sessions", "0"], "between 1 and"),
        (["--config", "/nowhere.toml"], "there is no file"),
        (["--name", "a/b"], "not a session name"),
        (["--token", "short"], "token"),
    ],
)
def test_a_setting_that_cannot_be_is_said_and_nothing_is_left(places: Places, args: list[str], said: str) -> None:
    done = run_warm([sys.executable, "-m", "wsh.cli.main", "server", *args], text=True)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not places.socket.exists() and not places.runtime_info.exists()


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(places: Places, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(HANG_S)
        with running_server(places, environ={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert manager.recv(100) == b"READY=1"
            server.stop()
            assert manager.recv(100) == b"STOPPING=1"


def test_an_ephemeral_server_goes_when_its_last_client_has_left(places: Places) -> None:
    server = start_server(places, "--ephemeral", environ={"WSH_SERVER_EPHEMERAL_LINGER_S": "2"})
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(places.socket))
        sock.sendall(b"GET /server/info HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(sock).startswith(b"HTTP/1.1 200")
        wait_while(lambda: server.process.poll() is None, "a server with a client", 2.5)
    assert server.process.wait(HANG_S) == 0
    assert not places.socket.exists()


def test_an_ephemeral_server_that_was_told_to_stay_stays(places: Places) -> None:
    with running_server(places, "--ephemeral", environ={"WSH_SERVER_EPHEMERAL_LINGER_S": "2"}) as server:
        assert server.request("PUT", "/server/persist", {"persistent": True}).json == {"persistent": True}
        wait_while(lambda: server.process.poll() is None, "a server that was told to stay", 2.5)
        assert server.get("/server/persist") == {"persistent": True}
        server.request("PUT", "/server/persist", {"persistent": False})
        assert server.process.wait(HANG_S) == 0


def test_a_running_session_of_a_person_holds_an_ephemeral_server_and_an_ended_one_does_not(
    places: Places, tmp_path: Path
) -> None:
    with running_server(places, "--ephemeral", environ={"WSH_SERVER_EPHEMERAL_LINGER_S": "2"}) as server:
        command = f"sh -c 'echo words; while ! test -e {tmp_path}/over; do sleep 0.05; done'"
        server.request("POST", "/sessions", {"name": "kept", "command": command})
        wait_while(lambda: server.process.poll() is None, "a server with a running session", 2.5)
        (tmp_path / "over").touch()
        assert server.process.wait(HANG_S) == 0
    with running_server(places) as server:
        assert server.get("/sessions/kept")["running"] is False
        assert server.get("/sessions/kept/screen?format=plain")["lines"][0] == "words"


def test_a_client_that_leaves_before_the_rooms_are_open_ends_neither_server_nor_sessions(places: Places) -> None:
    first = start_server(places)
    first.request("POST", "/sessions", {"name": "kept", "command": "cat"})
    first.stop()
    path = places.runtime / f"{places.server}.keeper.lock"
    lock = take_lock(path, wait=True)
    assert lock is not None
    try:
        server = start_server(places, "--ephemeral", environ={"WSH_SERVER_EPHEMERAL_LINGER_S": "0"})
        # Whoever asked for /health has left. The sessions are not known before the keeper was met, which waits for the lock.
        for _ in range(3):
            assert server.request("GET", "/health", token=None).status == 200
    finally:
        drop_lock(path, lock)
    for _ in range(2):
        assert server.get("/sessions/kept")["running"] is True
    server.request("POST", "/server/stop")
    assert server.process.wait(HANG_S) == 0
    wait_until(lambda: find_processes(places) == [], "the end of the keeper")


def test_sessions_of_agents_hold_an_ephemeral_server_for_a_while_and_end_with_it(places: Places) -> None:
    with running_server(places, "--ephemeral", environ={"WSH_SERVER_EPHEMERAL_LINGER_S": "1"}) as server:
        agent = TokenFile(places.tokens).add_agent("maker")
        began = time.monotonic()
        made = server.request("POST", "/sessions", {"command": "sleep 600"}, token=agent)
        assert made.status == 201
        assert server.process.wait(HANG_S) == 0
        assert time.monotonic() - began > 0.9
        wait_until(lambda: not os.path.exists(f"/proc/{made.json['pid']}"), "the end of the agent's program")
        wait_until(lambda: find_processes(places) == [], "the end of the keeper")


def test_sigterm_keeps_the_sessions_for_the_next_server_and_stop_ends_them(places: Places) -> None:
    server = start_server(places)
    pid = server.request("POST", "/sessions", {"name": "s", "command": "cat"}).json["pid"]
    server.request("POST", "/sessions/s/input", b"still here\n")
    server.get("/sessions/s/idle?text=here&timeout_ms=300")
    server.request("POST", "/sessions/s/panel", {"position": "top", "height": 3, "spans": []})
    server.stop()
    assert os.path.exists(f"/proc/{pid}")
    with running_server(places) as server:
        info = server.get("/sessions/s")
        assert (info["pid"], info["running"], info["rows"]) == (pid, True, 24)
        assert "still here" in server.get("/sessions/s/screen?format=plain")["lines"]
        assert server.request("POST", "/server/stop?keep=true").status == 202
        assert server.process.wait(HANG_S) == 0 and os.path.exists(f"/proc/{pid}")
        with running_server(places) as last:
            assert last.get("/sessions/s")["pid"] == pid
            assert last.request("POST", "/server/stop").status == 202
            assert last.process.wait(HANG_S) == 0
            wait_until(lambda: find_processes(places) == [], "the end of everything")


def test_a_screen_that_cannot_be_stored_does_not_get_in_the_way_of_a_restart(places: Places) -> None:
    server = start_server(places, environ={"WSH_JOURNAL_SNAPSHOT_INTERVAL_S": "0.2"})
    printed = {"wide": "\\033[?1049h\\346\\274\\242", "unfinished": "\\033]2;" + "x" * 100_000}
    for name, text in printed.items():
        command = f"sh -c \"printf '{text}'; exec cat\""
        assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
        server.get(f"/sessions/{name}/idle?timeout_ms=200")
        server.request("POST", f"/sessions/{name}/resize", {"rows": 1, "cols": 1})
        assert server.request("GET", f"/sessions/{name}/screen").status == 200
        assert server.request("GET", f"/sessions/{name}/scrollback").status == 200
    wait_while(lambda: server.process.poll() is None, "the server, a few snapshots long,", 0.8)
    assert server.stop() == 0
    assert "Traceback" not in server.output.read_text()
    with running_server(places) as server:
        for name in printed:
            assert server.get(f"/sessions/{name}")["running"]
            assert server.request("GET", f"/sessions/{name}/screen").status == 200


def test_make_run_says_where_to_look_and_what_to_paste(places: Places) -> None:
    with running_server(places) as server:
        wait_until(lambda: "Ctrl+C" in server.output.read_text(), "the announcement")
        said = server.output.read_text()
        assert f"{server.url}/auth/open?code=" in said
        entry = next(line for line in said.splitlines() if '"command"' in line)
        server_entry = json.loads(entry)["mcpServers"]["wsh"]
        assert os.access(server_entry["command"], os.X_OK), "a path, since wsh need not be on the client's PATH"
        assert server_entry["args"][-1] == "mcp"
        assert f'"url": "{server.url}/mcp"' in said and "Bearer" in said


# clients that are broken, slow or hostile


def test_what_is_not_http_gets_one_clear_answer(places: Places) -> None:
    with running_server(places) as server:
        host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
        assert b'"code": "invalid_request"' in server.raw(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert server.raw(b"GET / HTTP/9.9\r\n" + host + b"\r\n").startswith(b"HTTP/1.1 400")
        assert server.raw(b"GET  HTTP/1.1\r\n" + host + b"\r\n").startswith(b"HTTP/1.1 400")
        big = b"GET /health HTTP/1.1\r\n" + host + b"X: " + b"a" * 100_000 + b"\r\n"
        assert server.raw(big).startswith(b"HTTP/1.1 431")
        both = (
            b"POST /sessions HTTP/1.1\r\n" + host + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        assert not server.raw(both).startswith(b"HTTP/1.1 2")
        assert server.request("GET", "/health").status == 200


def test_bodies_are_bounded_and_must_be_json(places: Places) -> None:
    with running_server(places, environ={"WSH_SERVER_MAX_BODY_BYTES": "2048"}) as server:
        put = "/server/persist"
        large = server.request("PUT", put, b"{" + b" " * 3000 + b"}", headers={"Content-Type": "application/json"})
        assert (large.status, large.code) == (413, "too_large")
        head = (
            f"PUT {put} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
        assert b" 413 " in server.raw(head + b"800\r\n" + b" " * 2048 + b"\r\n800\r\n" + b" " * 2048 + b"\r\n0\r\n\r\n")
        much = server.request("PUT", put, b" " * (20 << 20), headers={"Content-Type": "application/json"})
        assert (much.status, much.code) == (413, "too_large"), "a client that sends all before it reads has its answer"
        asking = head.replace(b"Transfer-Encoding: chunked", b"Content-Length: 4000\r\nExpect: 100-continue")
        assert server.raw(asking).startswith(b"HTTP/1.1 413")
        form = server.request(
            "PUT", put, b"persistent=true", headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert (form.status, form.code) == (415, "unsupported_media_type")
        for bad in (
            b"",
            b"{",
            b"[]",
            b"null",
            b'{"persistent": "yes"}',
            b'{"persistent": true, "x": 1}',
            b"\xff",
            b"[" * 2000,
        ):
            reply = server.request("PUT", put, bad, headers={"Content-Type": "application/json"})
            assert (reply.status, reply.code) == (400, "invalid_request"), bad
        assert server.request("PUT", put, {"persistent": True}).status == 200


def test_a_client_that_dawdles_is_hung_up_on_and_others_do_not_notice(places: Places) -> None:
    patience = {"WSH_SERVER_HEADER_TIMEOUT_S": "2", "WSH_SERVER_BODY_TIMEOUT_S": "1"}
    with running_server(places, environ=patience) as server:
        slow = []
        try:
            for _ in range(50):
                sock = socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S)
                sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127")
                slow.append(sock)
            for _ in range(20):
                assert server.request("GET", "/health").status == 200
            assert read_answer(slow[0]).startswith(b"HTTP/1.1 408")
            body = (
                f"PUT /server/persist HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 50\r\n"
                f"Authorization: Bearer {server.token}\r\n\r\n{{"
            )
            assert b'"code": "request_timeout"' in server.raw(body.encode())
        finally:
            for sock in slow:
                sock.close()


def list_open_ends(port: int) -> list[str]:
    """The ends of TCP connections that a server on this port has not closed, as the kernel lists them."""
    established, closed_by_client = "01", "08"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        " ".join(row[1:4])
        for row in rows
        if int(row[1].partition(":")[2], 16) == port and row[3] in (established, closed_by_client)
    ]


def test_a_client_that_hangs_up_half_way_harms_nobody(places: Places) -> None:
    with running_server(places) as server:
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port)) as sock:
                sock.sendall(b"PUT /server/persist HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
                sock.shutdown(socket.SHUT_WR)
            with socket.create_connection(("127.0.0.1", server.port)) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                sock.sendall(b"GET /hea")
        assert server.request("GET", "/health").status == 200
        wait_until(lambda: not list_open_ends(server.port), "closed sockets", seen=lambda: list_open_ends(server.port))
        server.stop()
        assert "Traceback" not in server.output.read_text()


def test_what_a_bind_address_may_look_like() -> None:
    assert parse_bind("127.0.0.1:8080") == ("127.0.0.1", 8080)
    assert parse_bind("[::1]:9") == ("::1", 9)
    assert parse_bind(":0") == ("127.0.0.1", 0)
    assert parse_bind("example.org") == ("example.org", 8080)
    assert parse_bind("[::]") == ("::", 8080)
    for bad in ("::1:9", "a:b", "a:70000", "a:-1"):
        with pytest.raises(SettingError):
            parse_bind(bad)
