"""Who gets in and who does not: tokens, hosts, origins, tickets, links, the unix socket."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.serving import RunningServer, running_server
from wsh.http.auth import Brake, OneUse
from wsh.http.error import AuthInvalid, TooManyAttempts
from wsh.http.server.serve import admits, find_peer
from wsh.http.token_check import Holder, TokenCheck
from wsh.wire.error import LimitReached, NotFound
from wsh.wire.system.moment import Moment
from wsh.wire.system.place import Places
from wsh.wire.token_file import MOST_PASSING, PASSING_S, SIGN_IN_S, TokenFile, digest


def unix_request(
    path: Path, target: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    try:
        connection.request(method, target, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_health_is_open_and_says_only_that_all_is_well(server: RunningServer) -> None:
    reply = server.request("GET", "/health", token=None)
    assert (reply.status, reply.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/sessions", "/server/info", "/docs", "/openapi.json", "/", "/nothing", "/mcp"])
def test_everything_else_needs_a_token_also_on_loopback(server: RunningServer, path: str) -> None:
    reply = server.request("GET", path, token=None)
    assert (reply.status, reply.code) == (401, "auth_required")
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_a_wrong_token_is_refused_and_a_right_one_with_blanks_around_it_is_taken(server: RunningServer) -> None:
    reply = server.request("GET", "/server/info", token="wrong")
    assert (reply.status, reply.code) == (403, "auth_invalid")
    raw = server.raw(
        f"GET /server/info HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"authorization:   bearer   {server.token}  \t\r\nConnection: close\r\n\r\n".encode()
    )
    assert raw.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "place",
    ["/server/info?token={token}", "/server/info?access_token={token}", "/server/info?ticket={token}"],
)
def test_a_token_in_the_url_opens_nothing(server: RunningServer, place: str) -> None:
    assert server.request("GET", place.format(token=server.token), token=None).status == 401


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.evil.example",
        "127.0.0.1.evil.example:{port}",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:{port}.evil.example",
        "user@127.0.0.1:{port}",
    ],
)
def test_a_host_that_is_not_exactly_ours_is_refused(server: RunningServer, host: str) -> None:
    reply = server.request("GET", "/health", headers={"Host": host.format(port=server.port)})
    assert (reply.status, reply.code) == (421, "host_not_allowed")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_our_own_names_are_accepted(server: RunningServer, host: str) -> None:
    assert server.request("GET", "/health", headers={"Host": host.format(port=server.port)}).status == 200


def test_two_host_headers_or_none_are_refused(server: RunningServer) -> None:
    twice = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nHost: evil.example\r\n\r\n".encode()
    assert server.raw(twice).startswith(b"HTTP/1.1 400")
    assert server.raw(b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost"]
)
def test_a_foreign_origin_is_refused_even_with_a_token(server: RunningServer, origin: str) -> None:
    reply = server.request("GET", "/server/info", headers={"Origin": origin.format(port=server.port)})
    assert (reply.status, reply.code) == (403, "origin_not_allowed")


def test_our_own_origin_is_accepted(server: RunningServer) -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        reply = server.request("GET", "/server/info", headers={"Origin": f"http://{host}:{server.port}"})
        assert reply.status == 200


def test_the_same_server_answers_on_ipv6(server: RunningServer) -> None:
    with socket.create_connection(("::1", server.port), timeout=60) as sock:
        sock.sendall(f"GET /health HTTP/1.1\r\nHost: [::1]:{server.port}\r\nConnection: close\r\n\r\n".encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")


def test_the_unix_socket_needs_no_token_and_is_closed_to_others(server: RunningServer) -> None:
    assert stat.S_IMODE(os.stat(server.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(server.socket.parent).st_mode) == 0o700
    status, body = unix_request(server.socket, "/server/info")
    assert status == 200, body


def test_only_the_owner_and_root_are_admitted_to_the_unix_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = find_peer(ours, "unix")
        assert peer is not None and (peer.uid, peer.pid) == (os.getuid(), os.getpid())
    assert admits(1000, own=1000) and admits(0, own=1000) and not admits(1001, own=1000)


def test_an_agents_token_works_at_once_and_opens_less(server: RunningServer) -> None:
    token = TokenFile(server.places.tokens).add_agent("helper")
    assert server.request("GET", "/server/info", token=token).status == 200
    refused = server.request("PUT", "/server/persist", {"persistent": True}, token=token)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert server.request("POST", "/auth/link", token=token).status == 403
    TokenFile(server.places.tokens).remove("helper")
    assert server.request("GET", "/server/info", token=token).status == 403


def test_a_caller_may_ask_for_less_never_for_more(server: RunningServer) -> None:
    assert unix_request(server.socket, "/auth/link", method="POST")[0] == 201
    assert unix_request(server.socket, "/auth/link", {"Wsh-Role": "agent"}, "POST")[0] == 403
    token = TokenFile(server.places.tokens).add_agent("climber")
    assert server.request("POST", "/auth/link", token=token, headers={"Wsh-Role": "owner"}).status == 403


def test_a_token_of_the_owners_is_made_on_the_unix_socket_alone(server: RunningServer) -> None:
    status, body = unix_request(server.socket, "/auth/token")
    token = json.loads(body)["token"]
    assert status == 200 and server.request("POST", "/auth/link", token=token).status == 201
    assert server.request("GET", "/auth/token").code == "forbidden"
    assert unix_request(server.socket, "/auth/token", {"Wsh-Role": "agent"})[0] == 403


def sign_in(server: RunningServer) -> tuple[str, str]:
    """The cookie as a header, and the page's secret, as a browser gets them."""
    path = server.request("POST", "/auth/link").json["url"].removeprefix(server.url)
    reply = server.request("GET", path, token=None)
    cookie = reply.headers["set-cookie"].partition(";")[0]
    key = reply.headers["location"].partition("#key=")[2]
    traded = server.request("POST", "/auth/page", {"key": key}, token=None, headers={"Cookie": cookie})
    assert traded.status == 200, traded
    return cookie, traded.json["secret"]


def test_a_link_signs_one_browser_in_once(server: RunningServer) -> None:
    url = server.request("POST", "/auth/link").json["url"]
    path = url.removeprefix(server.url)
    assert server.request("HEAD", path, token=None).status == 303
    reply = server.request("GET", path, token=None)
    assert reply.status == 303
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert server.token not in cookie
    home, _, key = reply.headers["location"].partition("#key=")
    assert home == "/ui/" and key
    again = server.request("GET", path, token=None)
    assert (again.status, again.code) == (403, "auth_invalid")


def test_a_cookie_alone_is_worth_nothing(server: RunningServer) -> None:
    cookie, secret = sign_in(server)
    both = {"Cookie": f"other=1; {cookie}", "Wsh-Page": secret}
    assert server.request("GET", "/approvals", token=None, headers=both).status == 200
    for path in ("/server/info", "/sessions", "/approvals", "/mcp", "/nothing", "/auth/token", "/ws/json"):
        alone = server.request("GET", path, token=None, headers={"Cookie": cookie})
        assert (path, alone.status, alone.code) == (path, 401, "auth_required")
    assert server.request("POST", "/auth/ws-ticket", token=None, headers={"Cookie": cookie}).status == 401
    assert server.request("GET", "/server/info", token=None, headers={"Wsh-Page": secret}).status == 401
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{server.ws_url}/ws/json", additional_headers={"Cookie": cookie, "Origin": server.url})
    assert refused.value.response.status_code == 401
    for path in ("/docs", "/openapi.json", "/docs/docs.js"):
        assert server.request("GET", path, token=None, headers={"Cookie": cookie}).status == 200


def test_a_secret_belongs_to_one_cookie(server: RunningServer) -> None:
    (one, secret), (two, other) = sign_in(server), sign_in(server)
    assert server.request("GET", "/server/info", token=None, headers={"Cookie": one, "Wsh-Page": other}).status == 401
    assert server.request("GET", "/server/info", token=None, headers={"Cookie": two, "Wsh-Page": secret}).status == 401
    for changed in (one[:-1], one + "0", one.partition("=")[0] + "="):
        headers = {"Cookie": changed, "Wsh-Page": secret}
        assert server.request("GET", "/server/info", token=None, headers=headers).status == 401
    for changed in (secret[:-1], secret + "0", "", other):
        headers = {"Cookie": one, "Wsh-Page": changed}
        assert server.request("GET", "/server/info", token=None, headers=headers).status == 401


def test_the_key_of_a_sign_in_works_once_and_with_its_cookie_alone(server: RunningServer) -> None:
    def begin() -> tuple[str, str]:
        path = server.request("POST", "/auth/link").json["url"].removeprefix(server.url)
        reply = server.request("GET", path, token=None)
        return reply.headers["set-cookie"].partition(";")[0], reply.headers["location"].partition("#key=")[2]

    (cookie, key), (other, _) = begin(), begin()
    assert server.request("POST", "/auth/page", {"key": key}, token=None, headers={"Cookie": other}).status == 403
    assert server.request("POST", "/auth/page", {"key": key}, token=None, headers={"Cookie": cookie}).status == 403
    cookie, key = begin()
    assert server.request("POST", "/auth/page", {"key": key}, token=None, headers={"Cookie": cookie}).status == 200
    assert server.request("POST", "/auth/page", {"key": key}, token=None, headers={"Cookie": cookie}).status == 403


def test_a_ticket_opens_a_download_once_and_nothing_else(
    server: RunningServer, open_session: Callable[..., str]
) -> None:
    name = open_session()
    ticket = server.request("POST", "/auth/ws-ticket").json["ticket"]
    assert server.request("GET", f"/sessions/{name}/screen?ticket={ticket}", token=None).status == 401
    path = f"/sessions/{name}/recording?format=asciicast-v2&ticket={ticket}"
    assert server.request("GET", path, token=None).status == 200
    assert server.request("GET", path, token=None).status == 403


def test_a_browser_without_a_cookie_is_told_how_to_sign_in(server: RunningServer) -> None:
    reply = server.request("GET", "/docs", token=None, headers={"Accept": "text/html,*/*"})
    assert reply.status == 401 and b"wsh link" in reply.body
    assert reply.headers["content-type"].startswith("text/html")


def test_answers_carry_the_usual_armour(server: RunningServer) -> None:
    for reply in (server.request("GET", "/server/info"), server.request("GET", "/x"), server.request("GET", "/docs")):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["cache-control"] == "no-store"


def test_guessing_is_braked_and_a_valid_token_never_is(places: Places) -> None:
    with running_server(places) as server:
        seen = [server.request("GET", "/server/info", token=f"guess-{n}").code for n in range(25)]
        assert seen == ["auth_invalid"] * 20 + ["too_many_attempts"] * 5
        braked = server.request("GET", "/server/info", token="one more")
        assert braked.status == 429 and 1 <= int(braked.headers["retry-after"]) <= 61
        assert server.request("GET", "/server/info").status == 200


def test_no_word_of_a_request_is_logged(places: Places) -> None:
    with running_server(places, environ={"WSH_LOG": "debug"}) as server:
        server.request("GET", "/server/info?secret-parameter=1")
        server.request("GET", "/server/info", token="secret-guess")
        server.request("PUT", "/server/persist", {"secret-field": "secret-value"})
        server.raw(b"secret-garbage\r\n\r\n")
        ticket = server.request("POST", "/auth/ws-ticket").json["ticket"]
        with connect(f"{server.ws_url}/ws/json?ticket={ticket}") as socket_of_one:
            socket_of_one.send("secret-words")
            socket_of_one.recv()
        server.stop()
        said = server.output.read_text()
        assert "secret" not in said and server.token not in said and ticket not in said


def test_no_secret_is_kept_as_it_is(places: Places) -> None:
    with running_server(places) as server:
        cookie, secret = sign_in(server)
        agent = TokenFile(places.tokens).add_agent("helper")
        owner = TokenFile(places.tokens).add_owner("laptop")
        kept = places.tokens.read_text()
        assert stat.S_IMODE(os.stat(places.tokens).st_mode) == 0o600
        for word in (server.token, agent, owner, secret, cookie.partition("=")[2]):
            assert word not in kept
    with running_server(places) as server:
        assert server.request("POST", "/auth/link", token=owner).status == 201
        headers = {"Cookie": f"wsh_{server.port}={cookie.partition('=')[2]}", "Wsh-Page": secret}
        assert server.request("GET", "/approvals", token=None, headers=headers).status == 200


def test_a_token_that_was_kept_in_plain_text_goes_on_working_and_is_kept_so_no_more(places: Places) -> None:
    places.config.mkdir(parents=True, exist_ok=True)
    agent = {"name": "a", "sha256": digest("an-agent-of-old-times"), "created": 1.0}
    places.tokens.write_text(json.dumps({"version": 1, "owner": "an-owner-of-old-times", "agents": [agent]}, indent=1))
    with running_server(places) as server:
        assert server.request("POST", "/auth/link", token="an-owner-of-old-times").status == 201
        assert server.request("POST", "/auth/link", token="an-agent-of-old-times").status == 403
        assert "an-owner-of-old-times" not in places.tokens.read_text()


def test_a_token_given_for_one_run_is_not_written_down(places: Places) -> None:
    with running_server(places, environ={"WSH_TOKEN": "a-token-for-this-run"}) as server:
        assert server.request("GET", "/server/info", token="a-token-for-this-run").status == 200
        assert not places.tokens.exists() or "a-token-for-this-run" not in places.tokens.read_text()


def test_a_page_of_a_permitted_origin_may_call(places: Places) -> None:
    with running_server(places, "--cors-origin", "https://app.example") as server:
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        preflight = server.request("OPTIONS", "/sessions", token=None, headers=asked)
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in preflight.headers
        reply = server.request("GET", "/server/info", headers={"Origin": "https://app.example"})
        assert (reply.status, reply.headers["vary"]) == (200, "Origin")
        other = {"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
        assert server.request("OPTIONS", "/sessions", token=None, headers=other).status == 403


def test_a_method_that_no_path_takes_is_told_what_this_path_takes(places: Places) -> None:
    with running_server(places) as server:
        for path, allowed in (("/sessions", "GET, POST"), ("/server/stop", "POST"), ("/sessions/x/screen", "GET")):
            reply = server.request("OPTIONS", path)
            assert (reply.status, reply.headers["allow"]) == (405, allowed), path
        assert server.request("OPTIONS", "/nowhere").status == 404
        assert server.request("OPTIONS", "/sessions", token=None).status == 401


def test_every_route_is_also_below_the_base_prefix(places: Places) -> None:
    with running_server(places, "--base-prefix", "/deep/wsh") as server:
        assert server.request("GET", "/deep/wsh/health", token=None).status == 200
        assert server.request("GET", "/health", token=None).status == 200
        assert server.request("GET", "/deep/wsh/server/info").status == 200
        assert server.request("GET", "/deep/wshserver/info").status == 404
        url = server.request("POST", "/auth/link").json["url"]
        assert re.match(rf"http://127\.0\.0\.1:{server.port}/deep/wsh/auth/open\?code=", url)
        reply = server.request("GET", url.removeprefix(server.url), token=None)
        assert reply.headers["location"].startswith("/deep/wsh/") and "Path=/deep/wsh" in reply.headers["set-cookie"]


# the parts, with their own clock


def test_a_one_use_secret_works_once_and_not_for_long() -> None:
    now = [0.0]
    tickets: OneUse[str] = OneUse(30.0, 2, "server.max_pending_tickets", lambda: now[0])
    first, second = tickets.issue("a", "one"), tickets.issue("b", "one")
    with pytest.raises(LimitReached):
        tickets.issue("c", "one")
    assert tickets.redeem(tickets.issue("d", "two")) == "d", "another caller has a count of its own"
    assert tickets.redeem(first) == "a" and tickets.redeem(first) is None
    now[0] = 30.1
    assert tickets.redeem(second) is None
    tickets.issue("e", "one")
    now[0] = 61.0
    tickets.issue("f", "one")
    tickets.issue("g", "one")


def test_tickets_of_one_caller_leave_the_others_theirs(places: Places) -> None:
    with running_server(places, environ={"WSH_SERVER_MAX_PENDING_TICKETS": "3"}) as server:
        agent = TokenFile(places.tokens).add_agent("greedy")
        names = iter(range(100))

        def ask(token: str) -> int:
            headers = {"Wsh-Role": "agent", "Wsh-Agent": f"name{next(names)}"}
            return server.request("POST", "/auth/ws-ticket", token=token, headers=headers).status

        assert [ask(agent) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert ask(server.token) == 200


def test_the_brake_lets_go_after_a_minute() -> None:
    now = [0.0]
    brake = Brake(3, lambda: now[0])
    kinds = [type(brake.note_failure()) for _ in range(4)]
    assert kinds == [AuthInvalid] * 3 + [TooManyAttempts]
    now[0] = 60.5
    assert type(brake.note_failure()) is AuthInvalid


def test_a_new_owners_token_ends_the_old_ones_and_every_sign_in(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "c" / "tokens.json")
    old, (cookie, secret) = tokens.lend_owner(), tokens.add_sign_in()
    agent = tokens.add_agent("a")
    assert TokenCheck(tokens).has_sign_in(cookie, secret) and TokenCheck(tokens).find_holder(old) is not None
    new = TokenFile(tokens.path).rotate_owner()
    assert (
        TokenCheck(tokens).find_holder(old) is None
        and not TokenCheck(tokens).has_cookie(cookie)
        and not TokenCheck(tokens).has_sign_in(cookie, secret)
    )
    assert TokenCheck(tokens).find_holder(new) == Holder("owner", "owner") and TokenCheck(tokens).find_holder(
        agent
    ) == Holder("agent", "a")


def test_tokens_without_a_name_pass_and_the_oldest_gives_way(tmp_path: Path) -> None:
    now = [1000.0]
    tokens = TokenFile(tmp_path / "c" / "tokens.json", clock=lambda: Moment(now[0]))
    lasting = tokens.add_owner("laptop")
    made = [tokens.lend_owner() for _ in range(MOST_PASSING + 1)]
    assert [TokenCheck(tokens).find_holder(token) is not None for token in made] == [False, *[True] * MOST_PASSING]
    now[0] += PASSING_S
    assert TokenCheck(tokens).find_holder(made[-1]) is None and TokenCheck(tokens).find_holder(lasting) is not None
    tokens.remove("laptop")
    assert TokenCheck(tokens).find_holder(lasting) is None
    with pytest.raises(NotFound):
        tokens.remove("")


def test_processes_that_make_tokens_together_lose_none(tmp_path: Path) -> None:
    script = "import pathlib, sys, wsh.wire.token_file as t; print(t.TokenFile(pathlib.Path(sys.argv[1])).lend_owner())"
    path = tmp_path / "c" / "tokens.json"
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    said = [process.communicate(timeout=60)[0].strip() for process in started]
    assert all(TokenCheck(TokenFile(path)).find_holder(token) == Holder("owner", "owner") for token in said)


def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_token_or_a_sign_in(tmp_path: Path) -> None:
    clock = [Moment(1e9, "first", 50.0)]
    tokens = TokenFile(tmp_path / "c" / "tokens.json", clock=lambda: clock[0])
    token, (cookie, _) = tokens.lend_owner(), tokens.add_sign_in()

    def hold(moment: Moment) -> tuple[bool, bool]:
        clock[0] = moment
        return TokenCheck(tokens).find_holder(token) is not None, TokenCheck(tokens).has_cookie(cookie)

    for wall in (0.0, 1e9, 4e9):
        assert hold(Moment(wall, "first", 60.0)) == (True, True)
        assert hold(Moment(wall, "first", 50.0 + PASSING_S)) == (False, True)
        assert hold(Moment(wall, "first", 50.0 + SIGN_IN_S)) == (False, False)
    # After a restart of the machine only the wall clock is left, and one that is far off is not believed.
    assert hold(Moment(1e9 + PASSING_S - 1, "second", 5.0)) == (True, True)
    assert hold(Moment(1e9 + PASSING_S, "second", 5.0)) == (False, True)
    assert hold(Moment(0.0, "second", 5.0)) == (False, False)
    assert hold(Moment(4e9, "second", 5.0)) == (False, False)
