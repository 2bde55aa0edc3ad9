"""What an agent may do at another machine: the stricter of here and there counts."""

from __future__ import annotations

import pytest

from tests.host.conftest import Net
from tests.support.waiting import wait_until
from wsh.wire.token_file import TokenFile

pytestmark = pytest.mark.accept


def test_agents_neither_change_hosts_nor_leave_the_sandbox_of_here_at_a_host(net: Net) -> None:
    agent = TokenFile(net.server.places.tokens).add_agent("tester")
    assert net.server.request("PUT", "/hosts/more", {"target": "near"}, token=agent).code == "forbidden"
    assert net.server.request("DELETE", "/hosts/near", token=agent).code == "forbidden"
    assert net.server.request("POST", "/server/stop?host=near", token=agent).code == "forbidden"
    made = net.server.request("POST", "/sessions", {"name": "near/open", "command": "bash --norc"})
    assert made.status == 201
    path = "/sessions/near%2Fopen"
    assert net.server.request("POST", f"{path}/input", b"true\r", token=agent).status == 204
    policy = net.server.places.policy_file
    policy.write_text('version = 1\n[sandbox]\nagents = "workspace"\n')
    try:

        def is_refused() -> bool:
            reply = net.server.request("POST", f"{path}/input", b"true\r", token=agent)
            return reply.status == 403 and reply.code == "sandbox_refused"

        wait_until(is_refused, "the policy of here to hold")
        # What an agent opens there is held as here, or, where the machine cannot hold it, not opened at all.
        held = net.server.request("POST", "/sessions", {"name": "near/held", "command": "cat"}, token=agent)
        assert held.status == 403 or held.json["sandbox"]["profile"] == "workspace", held
        if held.status == 201:
            assert net.server.request("DELETE", "/sessions/near%2Fheld").status == 204
        assert net.server.request("POST", f"{path}/input", b"true\r").status == 204, "the owner types as before"
    finally:
        policy.unlink()
    assert net.server.request("DELETE", path).status == 204
