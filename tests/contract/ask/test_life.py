"""A request's life, apart from the call that made it: pending, read, withdrawn, kept, expired."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_interactive import meeting
from tests.support.bridge.scripted import ScriptedDesktop, ignore
from tests.support.contract.world import INTERACTIVE, World
from tests.support.waiting import until
from wsh.approval.approver import Order, OutputSink
from wsh.contract.interactive import InteractiveOptions
from wsh.wire.caller import TAKEN_BACK, Caller


async def ask_briefly(world: World, *argv: str, caller: Caller | None = None, **runtime: Any) -> dict[str, Any]:
    """A call that gives up waiting long before anybody answers."""
    return await world.ask(
        {
            "action": "execute",
            "invocation": INTERACTIVE,
            "execution": {"command": argv[0], "args": list(argv[1:])},
            "runtime": {"timeout_ms": 50, **runtime},
        },
        caller,
    )


async def test_a_call_that_ends_first_says_pending_and_read_output_tells_what_became_of_it(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await ask_briefly(world, "sh", "-c", "echo late; exit 3")
        assert (answer["status"], answer["result"]["approval"]) == ("accepted", "pending")
        assert answer["result"]["running"] is False and "authorization" not in answer["result"]
        assert answer["result"]["approval_left_ms"] > 60_000
        again = await world.follow("read_output", answer)
        assert (again["status"], again["result"]["approval"]) == ("accepted", "pending")
        (item,) = (await world.ask({"action": "list"}))["result"]["items"]
        assert (item["running"], item["approval"]) == (False, "pending")
        await until(lambda: desktop.arrived, "the card")
        assert desktop.arrived[0].approve()
        end = await world.ask(
            {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 20_000}}
        )
        while end["status"] == "accepted":
            end = await world.follow("read_output", answer)
        assert end["result"]["exit_code"] == 3 and end["result"]["approval"] == "approved"
        whole = await world.follow("read_output", answer, cursor=0)
        assert "late" in whole["result"]["stdout"]


async def test_what_was_declined_later_is_told_as_declined(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await ask_briefly(world, "true")
        await until(lambda: desktop.arrived, "the card")
        desktop.arrived[0].decline("not now")
        await until(lambda: desktop.closed, "the end")
        end = await world.ask(
            {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 20_000}}
        )
        assert end["error"]["code"] == "PM_TERM_DECLINED" and "not now" in end["error"]["message"]
        assert end["identity"] == answer["identity"]


async def test_a_life_that_ended_is_a_timeout(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop, interactive=InteractiveOptions(max_approval_ms=2000)) as (world, _):
        answer = await ask_briefly(world, "true")
        assert answer["result"]["approval"] == "pending"
        await until(lambda: desktop.arrived, "the card")
        end = await world.ask(
            {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 20_000}}
        )
        assert end["error"]["code"] == "PM_TERM_TIMEOUT" and end["error"]["details"]["ran"] is False
        assert desktop.closed[0][1] == "expired" and desktop.orders == []


async def test_terminate_withdraws_what_waits(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        answer = await ask_briefly(world, "true")
        await until(lambda: desktop.arrived, "the card")
        end = await world.follow("terminate", answer)
        assert end["status"] == "completed" and end["result"]["approval"] == "withdrawn"
        assert desktop.arrived[0].approve() is False and desktop.orders == []
        after = await world.follow("read_output", answer)
        assert after["result"]["approval"] == "withdrawn" and after["status"] == "completed"
        assert world.contract.interactive.waiting.list_entries()[0].state == "withdrawn"


async def test_a_call_that_is_taken_back_while_its_command_starts_waits_for_that_and_keeps_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, wait = asyncio.Event(), asyncio.wait

    async def wait_hastily(tasks: Any, *, timeout: float | None = None) -> Any:
        """As if any time that is given were over at once."""
        return await wait(tasks, timeout=None if timeout is None else 0)

    class SlowDesktop(ScriptedDesktop):
        async def run(self, order: Order, sink: OutputSink) -> None:
            self.orders.append(order)
            await started.wait()
            await super().run(order, sink)

    desktop = SlowDesktop()
    async with meeting(tmp_path, desktop) as (world, listener):
        call = asyncio.create_task(ask_briefly(world, "cat", timeout_ms=60_000))
        await until(lambda: desktop.orders, "the start")
        (peer,) = listener._peers
        told: list[str] = []
        withdraw = peer.queue.withdraw

        def note(id: str, reason: str) -> None:
            told.append(reason)
            withdraw(id, reason)

        with monkeypatch.context() as patch:
            patch.setattr(peer.queue, "withdraw", note)
            patch.setattr(asyncio, "wait", wait_hastily)
            call.cancel()
            await until(lambda: told, "the withdrawal")
            started.set()
            await wait({call})
        assert list(listener._peers) == [peer]
        await until(lambda: not desktop.running, "the end of what ran for nobody")
        assert (await ask_briefly(world, "true", timeout_ms=60_000))["status"] == "completed"


@pytest.mark.parametrize("keep", [True, False])
async def test_a_caller_that_goes_away_takes_its_requests_with_it_unless_it_asked_to_keep_them(
    tmp_path: Path, keep: bool
) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        await ask_briefly(world, "true", keep_pending=keep)
        route = world.contract.interactive
        assert route.holds_server is keep
        await until(lambda: desktop.arrived, "the card")
        route.caller_gone("stdio:somebody else")
        route.caller_gone("stdio:caller-1")
        if keep:
            assert desktop.arrived[0].approve()
            await until(lambda: desktop.orders, "what was kept")
        else:
            await until(lambda: desktop.closed, "the withdrawal")
            assert desktop.closed[0][1:] == ("withdrawn", "caller_gone")
        await until(lambda: not route.holds_server, "nothing waits")


@pytest.mark.parametrize(
    ("connection", "message", "withdrawn"),
    [
        ("stdio:a", None, True),
        ("mcp:a", None, True),
        ("token:a", None, False),
        ("", None, False),
        ("token:a", TAKEN_BACK, True),
    ],
)
async def test_a_call_that_breaks_off_takes_its_request_back_where_that_means_its_caller_is_gone(
    tmp_path: Path, connection: str, message: str | None, withdrawn: bool
) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        caller = Caller("agent", "a", "token", connection=connection, cwd=str(tmp_path))
        call = asyncio.create_task(ask_briefly(world, "true", caller=caller, timeout_ms=60_000))
        await until(lambda: desktop.arrived, "the card")
        call.cancel(message)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert bool(desktop.closed) is withdrawn
        assert desktop.arrived[0].approve() is not withdrawn


async def test_a_note_is_carried_to_the_person_and_refused_where_nobody_is_asked(tmp_path: Path) -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with meeting(tmp_path, desktop) as (world, _):
        await world.ask(
            {
                "action": "execute",
                "invocation": INTERACTIVE,
                "execution": {"command": "true", "note": "to see \u202eit"},
                "runtime": {"timeout_ms": 50},
            }
        )
        await until(lambda: desktop.arrived, "the card")
        assert desktop.arrived[0].request.note == "to see \u202eit"
        await until(lambda: world.contract.interactive.waiting.list_entries()[0].card, "its card")
        shown = world.contract.interactive.waiting.list_entries()[0].to_wire()
        assert shown["note"] == "to see \\u202eit" == shown["evidence"]["note"]
        refused = await world.ask(
            {
                "action": "execute",
                "invocation": {"mode": "headless", "intent": "execute_command"},
                "execution": {"command": "ls", "note": "x"},
                "runtime": {"keep_pending": True},
            }
        )
        fields = {each["field"] for each in refused["error"]["details"]["fields"]}
        assert fields == {"execution.note", "runtime.keep_pending"}


async def test_a_line_that_waits_says_so_and_goes_with_its_terminal(tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with meeting(tmp_path, desktop) as (world, _):
        terminal = await world.ask({"action": "execute", "invocation": {"mode": "interactive", "intent": "open_only"}})
        desktop.script = ignore
        line = await world.ask(
            {
                "action": "execute",
                "invocation": INTERACTIVE,
                "execution": {"command": "echo typed"},
                "target": {"terminal_id": terminal["identity"]["terminal_id"]},
                "runtime": {"timeout_ms": 50},
            }
        )
        assert (line["status"], line["result"]["approval"]) == ("accepted", "pending")
        assert line["result"]["terminal_running"] is True
        seen = await world.follow("read_output", terminal)
        assert seen["result"]["line"]["approval"] == "pending"
        end = await world.follow("terminate", terminal)
        assert end["result"]["terminated"] is True and desktop.typed == []
        await until(lambda: [each for each in desktop.closed if each[1] == "withdrawn"], "the line's end")
