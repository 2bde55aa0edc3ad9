"""The interactive route against a scripted desktop: real sockets, the library's own listener, real programs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge.scripted import ScriptedDesktop, decline, ignore, listening
from tests.support.contract.world import HEADLESS, INTERACTIVE, World, make_policy, opened
from tests.support.waiting import until
from wsh.approval.answer import Pending
from wsh.approval.judgement import Judgement
from wsh.bridge.endpoint import write_endpoint
from wsh.bridge.listener import BridgeListener, ListenerOptions
from wsh.contract.interactive import InteractiveOptions
from wsh.policy import Policy
from wsh.wire.caller import Caller

OPEN: dict[str, Any] = {"mode": "interactive", "intent": "open_only"}


@asynccontextmanager
async def meeting(
    folder: Path,
    desktop: ScriptedDesktop,
    policy: Policy | None = None,
    options: ListenerOptions | None = None,
    interactive: InteractiveOptions | None = None,
) -> AsyncIterator[tuple[World, BridgeListener]]:
    """A contract and a desktop that have found each other by the runtime file."""
    async with (
        opened(folder, policy=policy, interactive=interactive) as world,
        listening(desktop, options) as (listener, endpoint),
    ):
        write_endpoint(world.info, endpoint)
        yield world, listener


async def test_an_approved_command_runs_and_its_output_comes_back(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await world.interactive("sh", "-c", "echo hello; exit 3")
        assert answer["success"] and answer["status"] == "completed" and answer["error"] is None
        assert answer["result"]["stdout"] == "hello\n" and answer["result"]["exit_code"] == 3
        assert answer["result"]["running"] is False and answer["result"]["authorization"] == "allowed"
        assert answer["result"]["approved_by"] == "script" and answer["result"]["approval_scope"] == "once"
        assert set(answer["identity"]) == {"session_id", "terminal_id"}
        assert answer["resolved"]["mode"] == "interactive"
        (pending,) = desktop.arrived
        assert pending.evidence.argv == ("sh", "-c", "echo hello; exit 3")
        assert pending.evidence.cwd == str(tmp_path) and pending.request.asker.caller == "stdio:caller-1"
        assert pending.request.request_id == answer["correlation"]["request_id"]


async def test_a_command_line_runs_as_words_where_it_is_words_and_through_a_shell_where_it_is_not(
    tmp_path: Path,
) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        words = await world.interactive("echo 'two  words' plain")
        assert desktop.orders[-1].argv == ("echo", "two  words", "plain")
        assert words["result"]["stdout"] == "two  words plain\n"
        shell = await world.interactive("echo a | tr a b && echo $((1+1))")
        assert desktop.orders[-1].argv == ("sh", "-c", "echo a | tr a b && echo $((1+1))")
        assert shell["result"]["stdout"] == "b\n2\n"


async def test_a_decline_is_reported_with_its_reason_and_nothing_runs(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=decline)
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await world.interactive("true")
        assert answer["error"]["code"] == "PM_TERM_DECLINED" and answer["error"]["retriable"] is False
        assert answer["error"]["details"]["reason"] == "not today"
        assert answer["fallback"]["strategy"] == "report_decline"
        assert desktop.orders == []
        assert (await world.ask({"action": "list"}))["result"]["items"] == []


async def test_an_unanswered_approval_times_out_and_can_no_longer_be_approved(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    short = InteractiveOptions(max_approval_ms=600)
    async with meeting(tmp_path, desktop, interactive=short) as (world, _):
        answer = await world.interactive("ls", timeout_ms=20_000)
        assert answer["error"]["code"] == "PM_TERM_TIMEOUT"
        assert answer["error"]["details"]["phase"] == "approval" and answer["error"]["details"]["ran"] is False
        assert answer["error"]["details"]["timeout_ms"] == 600
        assert answer["error"]["details"]["headless_verdict"]["effect"] == "allow"
        assert answer["fallback"]["recommended_mode"] == "headless"
        await until(lambda: desktop.closed, "the card to go")
        assert desktop.arrived[0].approve() is False and desktop.orders == []
        no = await world.interactive("wget x", timeout_ms=20_000)
        assert no["error"]["details"]["headless_verdict"]["effect"] == "deny"
        assert no["error"]["details"]["headless_verdict"]["reason"] == "not_allowlisted"


async def test_a_desktop_that_drops_the_connection_is_a_disconnect(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, listener):
        call = asyncio.create_task(world.interactive("true"))
        await until(lambda: desktop.arrived, "the card")
        await listener.aclose()
        answer = await call
        assert answer["error"]["code"] == "PM_TERM_DISCONNECTED"
        assert answer["error"]["details"]["request_state"] == "unknown"
        assert answer["fallback"]["strategy"] == "suggest_reconnect_retry"


async def test_a_drop_in_midstream_keeps_the_identity_and_a_read_finds_it_again(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, listener):
        call = asyncio.create_task(world.interactive("sh", "-c", "echo one; read x; echo two; exit 5"))
        await until(lambda: b"one" in _printed(listener), "the first line")
        for peer in list(listener._peers):
            peer.stream.abort()
        answer = await call
        assert answer["error"]["code"] == "PM_TERM_DISCONNECTED"
        assert answer["error"]["details"]["request_state"] == "started"
        again = await world.follow("read_output", answer)
        assert again["success"] and again["result"]["stdout"] == "one\n" and again["status"] == "accepted"
        desktop.type_text(answer["identity"]["terminal_id"], "")
        done = await world.ask(
            {
                "action": "read_output",
                "target": answer["identity"] | {"cursor": again["result"]["next_cursor"]},
                "runtime": {"timeout_ms": 5000},
            }
        )
        while done["result"]["running"]:
            done = await world.follow("read_output", answer)
        whole = await world.follow("read_output", answer)
        assert whole["result"]["stdout"].endswith("two\n") and whole["result"]["exit_code"] == 5


def _printed(listener: BridgeListener) -> bytes:
    return b"".join(terminal.buffer.read().data for terminal in listener.terminals.list_running())


async def test_a_long_command_is_accepted_read_by_cursor_and_terminated(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await world.interactive("sh", "-c", "echo one; sleep 1000", timeout_ms=700)
        assert answer["status"] == "accepted" and answer["result"]["running"] is True
        assert answer["result"]["stdout"] == "one\n"
        cursor = answer["result"]["next_cursor"]
        nothing = await world.follow("read_output", answer, cursor=cursor)
        assert nothing["result"]["stdout"] == "" and nothing["result"]["next_cursor"] == cursor
        items = (await world.ask({"action": "list", "invocation": {"mode": "interactive"}}))["result"]["items"]
        assert [item["terminal_id"] for item in items] == [answer["identity"]["terminal_id"]]
        assert (await world.ask({"action": "list", "invocation": {"mode": "headless"}}))["result"]["items"] == []
        ended = await world.ask({"action": "terminate", "target": {"terminal_id": items[0]["terminal_id"]}})
        assert ended["success"] and ended["result"]["terminated"] is True and ended["result"]["running"] is False
        assert desktop.running == {}
        kept = await world.follow("read_output", answer)
        assert kept["result"]["stdout"] == "one\n" and kept["status"] == "completed"


async def test_an_opened_terminal_takes_typed_commands_each_with_its_own_approval(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        opened_ = await world.ask({"action": "execute", "invocation": OPEN, "compat": {"name": "build"}})
        assert opened_["success"] and opened_["status"] == "completed" and opened_["result"]["running"] is True
        assert desktop.orders[0].title == "build" and desktop.orders[0].kind == "open"
        asked = len(desktop.arrived)
        sent = await world.ask(
            {
                "action": "execute",
                "invocation": INTERACTIVE,
                "execution": {"command": "echo $((6*7))"},
                "target": {"terminal_id": opened_["identity"]["terminal_id"]},
            }
        )
        assert sent["success"] and sent["status"] == "accepted" and "42" in sent["result"]["stdout"]
        assert sent["identity"] == opened_["identity"] and len(desktop.arrived) == asked + 1
        assert desktop.typed == [(opened_["identity"]["terminal_id"], "echo $((6*7))")]
        desktop.script = decline
        no = await world.ask({"action": "send", "command": "ls", "terminal_id": opened_["identity"]["terminal_id"]})
        assert no["error"]["code"] == "PM_TERM_DECLINED" and len(desktop.typed) == 1
        closed = await world.ask({"action": "close", "terminal_id": opened_["identity"]["terminal_id"]})
        assert closed["success"] and closed["resolved"]["alias_applied"] is True
        gone = await world.ask({"action": "send", "command": "ls", "terminal_id": opened_["identity"]["terminal_id"]})
        assert gone["error"]["code"] == "PM_TERM_NOT_FOUND"


async def test_the_legacy_terminal_tool_creates_sends_lists_and_closes(tmp_path: Path) -> None:
    async with meeting(tmp_path, ScriptedDesktop()) as (world, _):
        tool = "memory_terminal_vscode"
        made = await world.ask({"action": "create", "name": "dev", "cwd": str(tmp_path)}, tool=tool)  # type: ignore[arg-type]
        assert made["success"] and made["resolved"]["legacy_action"] == "create"
        terminal = made["identity"]["terminal_id"]
        sent = await world.ask({"action": "send", "terminal_id": terminal, "command": "pwd"}, tool=tool)  # type: ignore[arg-type]
        assert str(tmp_path) in sent["result"]["stdout"]
        listed = await world.ask({"action": "list"}, tool=tool)  # type: ignore[arg-type]
        assert [item["terminal_id"] for item in listed["result"]["items"]] == [terminal]
        assert (await world.ask({"action": "list"}, tool="memory_terminal"))["result"]["items"] == []
        closed = await world.ask({"action": "close", "terminal_id": terminal}, tool=tool)  # type: ignore[arg-type]
        assert closed["success"] and closed["resolved"]["canonical_action"] == "terminate"


async def test_a_destructive_command_runs_only_approved_and_says_so(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    desktop = ScriptedDesktop(script=decline)
    policy = make_policy(interactive=["rm *"])
    async with meeting(tmp_path, desktop, policy) as (world, _):
        no = await world.interactive("rm -r victim")
        assert no["error"]["code"] == "PM_TERM_DECLINED" and victim.exists()
        assert desktop.arrived[0].judgement.risk == "destructive" and desktop.arrived[0].judgement.reasons
        desktop.script = lambda pending: pending.approve()
        yes = await world.interactive("rm -r victim")
        assert yes["result"]["authorization"] == "allowed_with_warning" and yes["result"]["warning"]
        assert not victim.exists()


@pytest.mark.parametrize("command", ["rm -rf /", ":(){ :|:& };:", "dd if=/dev/zero of=/dev/sda"])
async def test_what_nothing_could_bring_back_is_refused_without_asking_anybody(command: str, tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        for invocation in (INTERACTIVE, HEADLESS):
            answer = await world.ask({"action": "execute", "invocation": invocation, "execution": {"command": command}})
            assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
            assert answer["error"]["details"]["reason"] == "irrecoverable"
        assert desktop.arrived == [] and desktop.orders == []


async def test_an_allow_rule_for_interactive_mode_runs_at_once_and_visibly(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=decline)
    async with meeting(tmp_path, desktop, make_policy(interactive=["echo *"])) as (world, _):
        answer = await world.interactive("echo hi")
        assert answer["result"]["stdout"] == "hi\n" and answer["result"]["approval_scope"] == "rule"
        assert desktop.arrived == [] and len(desktop.orders) == 1


async def test_a_rule_for_headless_mode_allows_nothing_in_interactive_mode(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=decline)
    async with meeting(tmp_path, desktop) as (world, _):
        assert (await world.interactive("ls"))["error"]["code"] == "PM_TERM_DECLINED"


async def test_an_edited_command_runs_as_edited_and_the_answer_tells(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=lambda pending: pending.approve(argv=["echo", "safer"]))
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await world.interactive("echo risky")
        assert answer["result"]["stdout"] == "safer\n" and answer["result"]["edited_argv"] == ["echo", "safer"]
        assert "edited" in answer["result"]["warning"]


async def test_the_desktops_own_policy_has_the_last_word(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(judgement=lambda *_: Judgement("refuse", reasons=["not on this machine"]))
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await world.interactive("ls")
        assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        assert answer["error"]["details"]["reason"] == "desktop_policy"


async def test_a_missing_program_or_cwd_is_an_invalid_payload(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        program = await world.interactive("no-such-program-here")
        assert program["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert program["error"]["details"]["fields"][0]["field"] == "execution.command"
        cwd = await world.interactive("ls", cwd="nowhere")
        assert cwd["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert cwd["error"]["details"]["fields"][0]["field"] == "runtime.cwd"
        assert desktop.arrived == []


async def test_a_program_swapped_after_it_was_shown_is_blocked(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    def swap(pending: Pending) -> object:
        tool.write_text("#!/bin/sh\ntouch harm\n")
        return pending.approve()

    async with meeting(tmp_path, ScriptedDesktop(script=swap)) as (world, _):
        answer = await world.interactive("./tool")
        assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        assert answer["error"]["details"]["reason"] == "changed_since_shown" and not (tmp_path / "harm").exists()


async def test_a_cancelled_request_is_withdrawn_before_the_call_ends(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        call = asyncio.create_task(world.interactive("true"))
        await until(lambda: desktop.arrived, "the card")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert desktop.closed[0][1:] == ("withdrawn", "cancelled")
        assert desktop.arrived[0].approve() is False and desktop.orders == []


async def test_a_call_cancelled_while_its_command_runs_ends_the_command(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        call = asyncio.create_task(world.interactive("sleep", "1000"))
        await until(lambda: desktop.running, "the command")
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert desktop.running == {}


async def test_another_callers_terminal_does_not_exist(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        mine = await world.ask({"action": "execute", "invocation": OPEN})
        other = Caller("agent", "caller-2", "token", connection="caller-2", cwd=str(tmp_path))
        target = {"terminal_id": mine["identity"]["terminal_id"]}
        for request in (
            {"action": "read_output", "target": target},
            {"action": "terminate", "target": target},
            {"action": "execute", "invocation": INTERACTIVE, "execution": {"command": "ls"}, "target": target},
        ):
            answer = await world.ask(request, other)
            assert answer["error"]["code"] == "PM_TERM_NOT_FOUND"
        assert (await world.ask({"action": "list"}, other))["result"]["items"] == []
        assert desktop.typed == [] and len(desktop.running) == 1


async def test_a_restarted_desktop_knows_nothing_and_what_was_seen_stays_readable(tmp_path: Path) -> None:
    first, second = ScriptedDesktop(), ScriptedDesktop()
    async with opened(tmp_path) as world:
        async with listening(first) as (_, endpoint):
            write_endpoint(world.info, endpoint)
            answer = await world.interactive("sh", "-c", "echo seen; sleep 1000", timeout_ms=700)
            other = await world.interactive("sleep", "1000", timeout_ms=300)
        unreachable = await world.follow("read_output", answer)
        assert unreachable["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        assert unreachable["error"]["details"]["request_state"] == "started", "it ran, whatever becomes of this read"
        async with listening(second) as (_, endpoint):
            write_endpoint(world.info, endpoint)
            kept = await world.follow("read_output", answer)
            assert kept["success"] and kept["result"]["stdout"] == "seen\n" and kept["status"] == "completed"
            assert "not known" in kept["result"]["warning"]
            gone = await world.follow("terminate", other)
            assert gone["error"]["code"] == "PM_TERM_NOT_FOUND"
            assert (await world.interactive("true"))["success"]


async def test_more_requests_than_the_person_can_face_are_told_that_the_window_is_not_available(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop, options=ListenerOptions(port=0, max_pending=1)) as (world, _):
        first = asyncio.create_task(world.interactive("true", timeout_ms=20_000))
        await until(lambda: desktop.arrived, "the first card")
        second = await world.interactive("true")
        assert second["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        assert second["error"]["details"]["bridge_error"] == "queue_full"
        desktop.arrived[0].decline()
        assert (await first)["error"]["code"] == "PM_TERM_DECLINED"


async def test_a_command_too_large_for_the_bridge_is_an_invalid_payload(tmp_path: Path) -> None:
    options = ListenerOptions(port=0, max_frame_bytes=8192)
    async with meeting(tmp_path, ScriptedDesktop(), options=options) as (world, _):
        answer = await world.interactive("echo", "x" * 9000)
        assert answer["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert answer["error"]["details"]["reason"] == "frame_too_large"
        assert (await world.interactive("true"))["success"]


async def test_one_trace_id_is_in_the_answer_every_frame_the_trail_and_the_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def traced() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "wsh.bridge.trace"]

    with caplog.at_level(logging.DEBUG):
        desktop = ScriptedDesktop()
        async with opened(tmp_path, environ={"PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE": "1"}) as world:
            async with listening(desktop) as (_, endpoint):
                write_endpoint(world.info, endpoint)
                trace = "trace_01J9ZZ"
                answer = await world.ask(
                    {
                        "action": "execute",
                        "invocation": INTERACTIVE,
                        "correlation": {"trace_id": trace},
                        "execution": {"command": "echo traced"},
                    }
                )
        assert answer["correlation"]["trace_id"] == trace
        frames = [json.loads(record.getMessage().split(" ", 2)[2]) for record in traced()]
        kinds = [frame["type"] for frame in frames if frame["type"] != "heartbeat"]
        assert kinds == ["hello", "ready", "request", "card", "decision", "output", "exit"]
        assert {frame["trace_id"] for frame in frames if frame["type"] != "heartbeat"} == {trace}
        assert desktop.arrived[0].request.trace_id == desktop.orders[0].trace_id == trace
        assert [entry["kind"] for entry in world.trail.of(trace)] == ["decision", "approval", "result"]
        assert any(trace in record.getMessage() for record in caplog.records if record.name == "wsh.contract")
        assert endpoint.token not in caplog.text
