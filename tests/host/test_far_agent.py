"""What an agent may do at another machine: the stricter of here and there counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.host.conftest import Net
from tests.support.mcp.host import StdioHost
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


def test_what_a_lean_tool_says_of_a_far_session_names_it_by_its_address(net: Net, tmp_path: Path) -> None:
    with StdioHost(args=["--toolsets", "lean"], cwd=str(tmp_path)) as host:
        host.initialize()

        def say(tool: str, **arguments: object) -> str:
            return str(host.call(tool, arguments)["result"]["content"][0]["text"])

        assert say("sessions", action="open", session="near/lean", command="/bin/bash") == "[near/lean is open]"
        text = say("run", session="near/lean", command="echo '[lean]'; seq 5000", max_tokens=300)
        assert text.startswith("[lean]\n1\n"), text
        read = re.search(r'look\(session="(near/lean)", command=(\d+), from_line=(\d+)\)', text)
        assert read is not None, text
        rest = say("look", session=read[1], command=int(read[2]), from_line=int(read[3]), max_tokens=100)
        assert rest.startswith(f"{int(read[3]) - 1}\n")
        assert say("sessions", action="rename", session="near/lean", new_name="near/other") == "[near/other]"
        assert say("sessions", action="close", session="near/other") == "[near/other is closed]"
