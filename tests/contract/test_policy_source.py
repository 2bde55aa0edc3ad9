"""Whose policy holds: the file here, or the window across a container's bridge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.adapters.test_adapter import bridge_environ
from tests.support.bridge.scripted import ScriptedDesktop, listening
from tests.support.bridge.talk import connected
from tests.support.contract.windowed import desk
from tests.support.contract.world import FixedPolicy, make_policy, opened, with_keeper
from tests.support.waiting import until
from wsh.bridge.endpoint import Endpoint
from wsh.contract.adapters.inputs import read_bridge_inputs
from wsh.contract.policy_source import PolicySource
from wsh.policy.policy import default_policy
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places


async def test_the_windows_policy_rules_headless_commands_across_the_bridge_and_follows_its_changes(
    places: Places, tmp_path: Path
) -> None:
    desktop = ScriptedDesktop(policy_text='[headless]\nallow = ["echo *"]\n')
    async with listening(desktop) as (listener, endpoint), with_keeper(places) as runner:
        environ = bridge_environ(endpoint)
        async with opened(tmp_path, runner=runner, environ=environ, policy=make_policy(["ls"])) as world:
            assert (await world.headless("ls"))["success"], "before any window was met, the file here holds"
            assert (await world.interactive("true"))["success"]
            refused = await world.headless("ls")
            assert refused["error"]["details"]["reason"] == "not_allowlisted"
            assert (await world.headless("echo hi"))["success"]

            elsewhere = Caller("agent", "another", "token", connection="another", cwd=str(tmp_path))
            request = {"mode": "headless", "intent": "execute_command"}
            other = {"action": "execute", "invocation": request, "execution": {"command": "ls"}}
            assert (await world.ask(other, elsewhere))["success"], "one bridge's policy is not another caller's"

            desktop.policy_text = '[headless]\nallow = ["ls"]\n'
            listener.announce_policy()

            async def allowed() -> bool:
                return bool((await world.headless("ls"))["success"])

            await until(allowed, "the policy of the window")
            assert not (await world.headless("echo hi"))["success"]

            desktop.policy_text = "this is not toml ["
            listener.announce_policy()

            async def is_broken() -> bool:
                answer = await world.headless("ls")
                return not answer["success"] and bool(answer["error"]["details"]["reason"] == "policy_broken")

            await until(is_broken, "the refusal of a broken policy")
            await until(lambda: listener.clients, "the bridge to live on")


def _write_no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")


def _let_others_write(file: Path) -> None:
    file.chmod(0o666)


def _put_a_folder_there(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (Path.unlink, None),
        (_write_no_text, "not UTF-8"),
        (_let_others_write, "can be written by others"),
        (_put_a_folder_there, "is not a file"),
    ],
)
async def test_a_policy_of_the_window_that_is_deleted_or_unusable_allows_nothing_across_the_bridge_any_more(
    places: Places, tmp_path: Path, change: Callable[[Path], object], broken: str | None
) -> None:
    file = places.policy_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[[rule]]\neffect = "allow"\ncommand = "zz *"\nmodes = ["headless"]\n')
    file.chmod(0o600)
    async with desk(tmp_path, places) as table:
        table.policy.subscribe(lambda _: table.listener.announce_policy())
        endpoint = Endpoint("127.0.0.1", table.port, table.listener.token)
        environ = bridge_environ(endpoint)
        source = PolicySource(FixedPolicy(make_policy(["local"])))

        def list_rules() -> list[str]:
            return [rule.pattern for rule in source.current(environ).rules]

        inputs = read_bridge_inputs(environ)
        async with connected(endpoint, on_policy=lambda frame: source.learn(inputs, frame)):
            await until(lambda: "zz *" in list_rules(), "the policy of the window", seen=list_rules)
            change(file)
            assert table.policy.check()
            await until(lambda: "zz *" not in list_rules(), "the change", seen=list_rules)
            policy = source.current(environ)
            if broken is None:
                assert policy.rules == default_policy().rules and policy.broken is None
            else:
                assert policy.rules == () and policy.broken is not None and broken in policy.broken
