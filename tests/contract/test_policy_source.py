"""Whose policy holds: the file here, or the window across a container's bridge."""

from __future__ import annotations

from pathlib import Path

from tests.contract.adapters.test_adapter import bridge_environ
from tests.support.bridge.scripted import ScriptedDesktop, listening
from tests.support.contract.world import make_policy, opened, with_keeper
from tests.support.waiting import until
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
