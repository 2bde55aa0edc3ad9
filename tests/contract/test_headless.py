"""The headless route with the real policy engine, the keeper's runner and real programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.contract.world import HEADLESS, World, make_policy, opened, with_keeper
from tests.support.waiting import until
from wsh.contract.headless import HeadlessOptions
from wsh.policy import Policy
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places


@asynccontextmanager
async def playing(
    places: Places, folder: Path, policy: Policy | None = None, options: HeadlessOptions | None = None
) -> AsyncIterator[World]:
    async with (
        with_keeper(places) as runner,
        opened(folder, runner=runner, policy=policy, headless=options) as world,
    ):
        yield world


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def running_commands() -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_text().rstrip("\0"))
        except OSError:
            continue
    return found


async def test_an_allowed_command_runs_to_its_end(places: Places, tmp_path: Path) -> None:
    real = str(tmp_path.resolve())  # noqa: ASYNC240
    async with playing(places, tmp_path) as world:
        answer = await world.headless("printf", "out; echo not a shell")
        assert answer["success"] and answer["status"] == "completed" and answer["error"] is None
        assert answer["resolved"] == {
            "canonical_action": "execute",
            "alias_applied": False,
            "legacy_action": None,
            "mode": "headless",
        }
        assert answer["result"]["stdout"] == "out; echo not a shell" and answer["result"]["stderr"] == ""
        assert answer["result"]["exit_code"] == 0 and answer["result"]["running"] is False
        assert answer["result"]["authorization"] == "allowed" and "terminal_id" not in answer["identity"]

        both = await world.headless("sh", "-c", "echo out; echo err >&2; exit 3")
        assert (both["result"]["stdout"], both["result"]["stderr"], both["result"]["exit_code"]) == (
            "out\n",
            "err\n",
            3,
        )
        assert both["success"], "a non-zero exit is a result, not a failure"

        where = await world.headless("pwd")
        assert where["result"]["stdout"].strip() == real
        with_env = await world.ask(
            {
                "action": "execute",
                "invocation": HEADLESS,
                "execution": {"command": "sh", "args": ["-c", "echo $LC_ALL"], "env": {"LC_ALL": "C"}},
            }
        )
        assert with_env["success"] is (world.policy.policy.allows_variable("LC_ALL")), with_env


async def test_a_command_past_its_wait_is_accepted_and_goes_on(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        answer = await world.headless("sh", "-c", "echo one; sleep 0.6; echo two", timeout_ms=200)
        assert answer["success"] and answer["status"] == "accepted" and answer["result"]["running"] is True
        assert answer["result"]["exit_code"] is None
        cursor = answer["result"]["next_cursor"]
        listed = await world.ask({"action": "list"})
        assert [item["session_id"] for item in listed["result"]["items"]] == [answer["identity"]["session_id"]]
        seen = answer["result"]["stdout"]
        while True:
            more = await world.ask(
                {
                    "action": "read_output",
                    "target": {"session_id": answer["identity"]["session_id"], "cursor": cursor},
                    "runtime": {"timeout_ms": 5000},
                }
            )
            seen += more["result"]["stdout"]
            cursor = more["result"]["next_cursor"]
            if not more["result"]["running"]:
                break
            assert more["status"] == "accepted"
        assert seen == "one\ntwo\n" and more["status"] == "completed" and more["result"]["exit_code"] == 0
        assert (await world.ask({"action": "list"}))["result"]["items"] == []
        whole = await world.follow("read_output", answer)
        assert whole["result"]["stdout"] == "one\ntwo\n" and whole["result"]["cursor"] == 0


async def test_terminate_kills_the_tree_and_the_output_stays_readable(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo ready; wait"
        answer = await world.headless("sh", "-c", script, timeout_ms=300)
        while "ready" not in answer["result"]["stdout"]:
            answer = await world.ask(
                {
                    "action": "read_output",
                    "target": {"session_id": answer["identity"]["session_id"]},
                    "runtime": {"timeout_ms": 1000},
                }
            )
        pids = [int(line) for line in answer["result"]["stdout"].split()[:2]]
        assert all(alive(pid) for pid in pids)
        ended = await world.follow("terminate", answer)
        assert ended["success"] and ended["status"] == "completed" and ended["result"]["terminated"] is True
        assert ended["resolved"]["mode"] == "headless" and ended["result"]["running"] is False
        assert not any(alive(pid) for pid in pids)
        assert "ready" in (await world.follow("read_output", answer))["result"]["stdout"]
        again = await world.follow("terminate", answer)
        assert again["success"] and again["result"]["running"] is False


BLOCKED = [
    ({"command": "wget example.org"}, "not_allowlisted"),
    ({"command": "rm -r folder"}, "destructive"),
    ({"command": "rm -rf /"}, "irrecoverable"),
    ({"command": "ls && ls"}, "shell_syntax"),
    ({"command": "ls | cat"}, "shell_syntax"),
    ({"command": "echo $HOME"}, "shell_syntax"),
    ({"command": "ls > file"}, "shell_syntax"),
    ({"command": "rm", "args": ["-rf", "/"]}, "irrecoverable"),
    ({"command": "ls", "env": {"LD_PRELOAD": "/tmp/x.so"}}, "env_not_allowed"),
]


@pytest.mark.parametrize(("execution", "reason"), BLOCKED)
async def test_what_the_policy_does_not_allow_is_blocked_with_the_reason(
    execution: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as world:
        answer = await world.ask({"action": "execute", "invocation": HEADLESS, "execution": execution})
        assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        if (reason, execution["command"]) != ("shell_syntax", "ls > file"):
            assert answer["error"]["details"]["reason"] == reason
        assert answer["result"] == {"authorization": "blocked"}
        assert answer["fallback"]["strategy"] == "reject_with_safety_hint"
        entry = world.trail.entries[-1]
        assert entry["effect"] == "deny" and entry["trace_id"] == answer["correlation"]["trace_id"]


async def test_a_cwd_outside_the_roots_is_blocked_also_through_a_link(places: Places, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/usr")
    async with playing(places, tmp_path, make_policy(cwd_roots=(str(inside.resolve()),))) as world:
        for cwd, good in (
            ("inside", True),
            (str(inside), True),
            ("/usr", False),
            ("inside/link", False),
            ("..", False),
        ):
            answer = await world.headless("ls", cwd=cwd)
            assert answer["success"] is good
            if not good:
                assert answer["error"]["details"]["reason"] == "cwd_outside_roots"


async def test_a_missing_program_or_cwd_is_an_invalid_payload(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, make_policy(headless=["ls", "no-such-program-here"])) as world:
        missing = await world.headless("no-such-program-here")
        assert missing["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert missing["error"]["details"]["fields"][0]["field"] == "execution.command"
        for cwd in ("nowhere", "/etc/passwd"):
            lost = await world.headless("ls", cwd=cwd)
            assert lost["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
            assert lost["error"]["details"]["fields"][0]["field"] == "runtime.cwd"
        assert (await world.ask({"action": "list"}))["result"]["items"] == []


async def test_another_callers_session_does_not_exist(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        mine = await world.headless("sleep", "100", timeout_ms=50)
        other = Caller("agent", "caller-2", "token", connection="caller-2", cwd=str(tmp_path))
        target = {"session_id": mine["identity"]["session_id"]}
        for action in ("read_output", "terminate"):
            answer = await world.ask({"action": action, "target": target}, other)
            assert answer["error"]["code"] == "PM_TERM_NOT_FOUND" and answer["fallback"]["next_action"] == "list"
        assert (await world.ask({"action": "list"}, other))["result"]["items"] == []
        assert len((await world.ask({"action": "list"}))["result"]["items"]) == 1


async def test_list_is_narrowed_by_mode_workspace_and_surface(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:

        async def start(workspace: str | None, surface: str | None) -> str:
            answer = await world.ask(
                {
                    "action": "execute",
                    "invocation": HEADLESS,
                    "execution": {"command": "sleep", "args": ["100"]},
                    "runtime": {"timeout_ms": 1} | ({"workspace_id": workspace} if workspace else {}),
                    "compat": {"caller_surface": surface} if surface else {},
                }
            )
            session: str = answer["identity"]["session_id"]
            return session

        async def found(request: dict[str, Any]) -> set[str]:
            answer = await world.ask({"action": "list"} | request)
            assert answer["status"] == "completed"
            return {item["session_id"] for item in answer["result"]["items"]}

        a, b, c = await start("a", "server"), await start("b", "extension"), await start(None, None)
        assert await found({}) == {a, b, c}
        assert await found({"invocation": {"mode": "headless"}}) == {a, b, c}
        assert await found({"invocation": {"mode": "interactive"}}) == set()
        assert await found({"runtime": {"workspace_id": "a"}}) == {a}
        assert await found({"compat": {"caller_surface": "extension"}}) == {b}
        assert await found({"runtime": {"workspace_id": "a"}, "compat": {"caller_surface": "extension"}}) == set()
        wrong = await world.ask(
            {"action": "read_output", "target": {"session_id": a}, "runtime": {"workspace_id": "b"}}
        )
        assert wrong["error"]["code"] == "PM_TERM_NOT_FOUND"
        crossed = await world.ask(
            {"action": "read_output", "target": {"session_id": a}, "invocation": {"mode": "interactive"}}
        )
        assert crossed["error"]["code"] == "PM_TERM_NOT_FOUND"


async def test_a_cancelled_call_kills_what_it_started(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, make_policy(blocked=frozenset())) as world:
        marker = tmp_path / "pids"
        call = asyncio.create_task(
            world.headless("sh", "-c", f"sleep 1000 & echo $! $$ > {marker}.new; mv {marker}.new {marker}; wait")
        )
        await until(marker.exists, "the program")
        pids = [int(word) for word in marker.read_text().split()]
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not any(alive(pid) for pid in pids)
        assert (await world.ask({"action": "list"}))["result"]["items"] == []


async def test_a_cancellation_at_any_moment_leaves_nothing_running(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        for delay_ms in (0, 0, 1, 2, 3, 5, 8, 13, 21):
            call = asyncio.create_task(world.headless("sleep", "4711"))
            await asyncio.sleep(delay_ms / 1000)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert (await world.ask({"action": "list"}))["result"]["items"] == []
        assert "sleep\x004711" not in running_commands()


async def test_output_beyond_the_limit_is_dropped_from_its_beginning_and_counted(
    places: Places, tmp_path: Path
) -> None:
    async with playing(places, tmp_path, options=HeadlessOptions(max_output_bytes=50_000, reply_bytes=20_000)) as world:
        answer = await world.headless("seq", "100000")
        result = answer["result"]
        assert result["dropped_bytes"] > 0 and result["more"] is True
        seen = result["stdout"]
        while result.get("more"):
            result = (await world.follow("read_output", answer, cursor=result["next_cursor"]))["result"]
            seen += result["stdout"]
        assert seen.endswith("\n99999\n100000\n") and len(seen) == 50_000
        oldest = await world.follow("read_output", answer)
        assert oldest["result"]["dropped_bytes"] == 0 and oldest["result"]["cursor"] == 588_895 - 50_000


async def test_a_lifetime_limit_of_the_policy_ends_a_command(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, make_policy(lifetime_ms=200)) as world:
        answer = await world.headless("sleep", "1000", timeout_ms=10_000)
        assert answer["status"] == "completed" and "lifetime limit" in answer["result"]["warning"]


async def test_the_trail_has_decision_and_result_under_one_trace(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        await world.ask(
            {
                "action": "execute",
                "invocation": HEADLESS,
                "correlation": {"trace_id": "trace_t", "request_id": "req_r"},
                "execution": {"command": "sh", "args": ["-c", "exit 4"]},
            }
        )
        decision, result = world.trail.of("trace_t")
        assert (decision["kind"], decision["effect"], decision["argv"]) == ("decision", "allow", ["sh", "-c", "exit 4"])
        assert (result["kind"], result["exit_code"]) == ("result", 4)
        assert decision["request_id"] == result["request_id"] == "req_r"


async def test_a_decision_that_leaves_no_trail_runs_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:

        def full(entry: object) -> object:
            raise OSError(28, "No space left on device")

        world.trail.append = full  # type: ignore[method-assign]
        answer = await world.headless("ls")
        assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        assert answer["error"]["details"]["reason"] == "disk_full" and "Errno" not in str(answer)
