"""Requests over real sockets with real programs: each is answered once, and what was withdrawn never runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.bridge.mirror import SeenTerminal
from tests.support.bridge.scripted import ScriptedDesktop, decline, ignore, listening
from tests.support.bridge.talk import RawPeer, ask, connected
from tests.support.waiting import until
from wsh.approval.answer import Pending
from wsh.approval.judgement import Judgement
from wsh.bridge.fault import Dropped, PeerError
from wsh.bridge.listener import ListenerOptions


async def test_an_approved_command_runs_and_its_output_and_exit_arrive_in_order() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        mirror = SeenTerminal(10_000)
        request = ask("sh", "-c", "echo hello; echo $A; exit 3", env={"A": "value"})
        decision = await client.submit(request, mirror)
        assert (decision.outcome, decision.by, decision.scope) == ("approved", "script", "once")
        assert decision.trace_id == request.trace_id and decision.evidence is not None
        assert decision.evidence.argv == ["sh", "-c", "'echo hello; echo $A; exit 3'"]
        await until(lambda: not mirror.running, "the exit frame")
        assert mirror.buffer.read().data == b"hello\r\nvalue\r\n" and mirror.exit_code == 3
        assert desktop.closed == [(request.id, "approved", None)]


async def test_output_streams_while_the_command_runs() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        mirror = SeenTerminal(10_000)
        request = ask("sh", "-c", "echo first; read line; echo got $line")
        await client.submit(request, mirror)
        await until(lambda: b"first" in mirror.buffer.read().data, "output of a running command")
        assert mirror.running
        desktop.type_text(request.terminal_id, "it")
        await until(lambda: not mirror.running, "the exit")
        assert b"got it" in mirror.buffer.read().data


async def test_a_declined_command_does_not_run_and_the_reason_is_passed_on() -> None:
    desktop = ScriptedDesktop(script=decline)
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("true"))
        assert (decision.outcome, decision.reason) == ("declined", "not today")
        assert desktop.orders == []


async def test_a_withdrawn_request_disappears_and_can_no_longer_be_approved() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        request = ask("true")
        future = client.submit(request)
        await until(lambda: desktop.arrived, "the card")
        client.withdraw(request, "cancelled")
        assert (await future).outcome == "withdrawn"
        assert desktop.closed == [(request.id, "withdrawn", "cancelled")]
        assert desktop.arrived[0].approve() is False and desktop.arrived[0].decline() is False
        assert desktop.orders == []


async def test_a_withdrawal_that_overtakes_the_evidence_still_counts() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        request = ask("true")
        future = client.submit(request)
        client.withdraw(request, "cancelled")
        decision = await future
        assert (decision.outcome == "withdrawn") == (desktop.orders == [])


async def test_an_unanswered_request_expires_and_a_late_yes_does_not_count() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("true", deadline_ms=700))
        assert decision.outcome == "expired"
        assert desktop.arrived[0].approve() is False and desktop.arrived[0].remaining_s == 0
        assert desktop.orders == []


async def test_a_caller_that_vanishes_takes_its_cards_along() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (_, endpoint):
        async with connected(endpoint) as client:
            client.submit(ask("true"))
            await until(lambda: desktop.arrived, "the card")
        await until(lambda: desktop.closed, "the card to be taken away")
        assert desktop.closed[0][1] == "withdrawn"
        assert desktop.arrived[0].approve() is False


async def test_a_desktop_that_goes_away_fails_whoever_waits() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (listener, endpoint), connected(endpoint) as client:
        future = client.submit(ask("true"))
        await until(lambda: desktop.arrived, "the card")
        await listener.aclose()
        with pytest.raises(Dropped):
            await future
        with pytest.raises(Dropped):
            client.submit(ask("true"))


async def test_an_answer_from_another_thread_counts() -> None:
    def from_a_window(pending: Pending) -> object:
        thread = threading.Thread(target=pending.approve)
        thread.start()
        return thread

    async with listening(ScriptedDesktop(script=from_a_window)) as (_, endpoint), connected(endpoint) as client:
        assert (await client.submit(ask("true"))).outcome == "approved"


async def test_a_program_swapped_between_showing_and_yes_does_not_run(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def swap(pending: Pending) -> object:
        program.write_text("#!/bin/sh\ntouch harm\n")
        return pending.approve()

    desktop = ScriptedDesktop(script=swap)
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("./tool", cwd=str(tmp_path)))
        assert (decision.outcome, decision.code) == ("refused", "changed")
        assert desktop.orders == []


async def test_a_cwd_swapped_between_showing_and_yes_does_not_run(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()

    def swap(pending: Pending) -> object:
        place.rename(tmp_path / "away")
        place.mkdir()
        return pending.approve()

    async with listening(ScriptedDesktop(script=swap)) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("true", cwd=str(place)))
        assert (decision.outcome, decision.code) == ("refused", "changed")


@pytest.mark.parametrize(
    ("argv", "cwd", "code"),
    [(("no-such-program",), "/", "program_not_found"), (("true",), "/no/such/place", "cwd_not_found")],
)
async def test_what_cannot_run_is_refused_without_asking(argv: tuple[str, ...], cwd: str, code: str) -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask(*argv, cwd=cwd))
        assert (decision.outcome, decision.code) == ("refused", code)
        assert desktop.arrived == []


async def test_an_allow_that_both_ends_agree_on_runs_without_a_card() -> None:
    desktop = ScriptedDesktop(script=decline, judgement=lambda *_: Judgement("allow", rule="true"))
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("true", effect="allow"))
        assert (decision.outcome, decision.scope, decision.by) == ("approved", "rule", "true")
        assert desktop.arrived == []


async def test_a_server_that_claims_an_allow_cannot_talk_the_desktop_out_of_asking() -> None:
    desktop = ScriptedDesktop(script=decline, judgement=lambda *_: Judgement("ask"))
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        assert (await client.submit(ask("true", effect="allow"))).outcome == "declined"
        desktop.judgement = lambda *_: Judgement("refuse", reasons=["no"])
        decision = await client.submit(ask("true", effect="allow"))
        assert (decision.outcome, decision.code) == ("refused", "forbidden")
        desktop.judgement = lambda *_: Judgement("allow")
        assert (await client.submit(ask("true", effect="allow", risk="destructive"))).outcome == "declined"
        decision = await client.submit(ask("true", effect="allow", risk="irrecoverable"))
        assert (decision.outcome, decision.code) == ("refused", "forbidden")
        assert desktop.orders == []


async def test_approved_for_the_session_asks_once_for_that_exact_command_and_caller() -> None:
    def for_session(pending: Pending) -> object:
        return pending.approve(scope="session", by="ann")

    desktop = ScriptedDesktop(script=for_session)
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        for request in (ask("echo", "a"), ask("echo", "a")):
            assert (await client.submit(request)).scope == "session"
        assert len(desktop.arrived) == 1
        await client.submit(ask("echo", "b"))
        await client.submit(ask("echo", "a", cwd="/tmp"))
        await client.submit(ask("echo", "a", caller="another"))
        assert len(desktop.arrived) == 4


async def test_an_approval_once_asks_again_next_time() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        await client.submit(ask("true"))
        await client.submit(ask("true"))
        assert len(desktop.arrived) == 2


async def test_an_edited_command_runs_as_edited_and_the_caller_is_told() -> None:
    desktop = ScriptedDesktop(script=lambda pending: pending.approve(argv=["echo", "safer"]))
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        mirror = SeenTerminal(1000)
        decision = await client.submit(ask("echo", "risky"), mirror)
        assert decision.edited and decision.evidence is not None and decision.evidence.argv == ["echo", "safer"]
        await until(lambda: not mirror.running, "the exit")
        assert mirror.buffer.read().data == b"safer\r\n"


async def test_an_edited_command_is_judged_anew() -> None:
    desktop = ScriptedDesktop(
        script=lambda pending: pending.approve(argv=["rm", "-rf", "/"]),
        judgement=lambda request, _: Judgement("refuse" if request.argv[0] == "rm" else "ask"),
    )
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        decision = await client.submit(ask("true"))
        assert (decision.outcome, decision.code) == ("refused", "forbidden")
        assert desktop.orders == []


async def test_an_opened_terminal_takes_typed_lines_one_approval_each() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        mirror = SeenTerminal(10_000)
        opened = ask(kind="open", command="")
        assert (await client.submit(opened, mirror)).outcome == "approved"
        sent = ask("echo", "$((6*7))", kind="send", terminal_id=opened.terminal_id)
        assert (await client.submit(sent)).outcome == "approved"
        await until(lambda: b"42" in mirror.buffer.read().data, "what the shell printed")
        assert len(desktop.arrived) == 2
        gone = await client.terminate(opened.terminal_id, "trace_t")
        assert gone.terminated and gone.trace_id == "trace_t"
        decision = await client.submit(ask("ls", kind="send", terminal_id=opened.terminal_id))
        assert (decision.outcome, decision.code) == ("refused", "terminal_ended")


async def test_reads_go_on_from_a_cursor_also_over_a_new_connection() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (listener, endpoint):
        async with connected(endpoint) as client:
            request = ask("sh", "-c", "printf abc; read x; printf def")
            await client.submit(request)
            await until(lambda: desktop.running, "the program")
        async with connected(endpoint) as client:
            terminal = request.terminal_id
            await until(lambda: listener.terminals.list_running()[0].buffer.end >= 3, "the first bytes")
            first = await client.read(terminal, None, "t")
            assert (first.data, first.running) == ("abc", True)
            desktop.type_text(terminal, "")
            await until(lambda: not desktop.running, "the end")
            rest = await client.read(terminal, 3, "t")
            assert rest.data.endswith("def") and rest.exit_code == 0 and rest.offset == 3
            assert (await client.read(terminal, 10_000, "t")).data == ""


async def test_another_runtime_session_cannot_read_type_or_end_a_terminal() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as mine:
        request = ask(kind="open")
        await mine.submit(request)
        async with connected(endpoint, "runtime-2") as other:
            for call in (
                other.read(request.terminal_id, None, "t"),
                other.terminate(request.terminal_id, "t"),
            ):
                with pytest.raises(PeerError) as caught:
                    await call
                assert caught.value.code == "unknown_terminal"
            decision = await other.submit(ask("ls", kind="send", terminal_id=request.terminal_id))
            assert (decision.outcome, decision.code) == ("refused", "unknown_terminal")
            with pytest.raises(PeerError) as caught:
                await other.submit(ask("true", terminal_id=request.terminal_id))
            assert caught.value.code == "duplicate_id"
        assert len(desktop.running) == 1


async def test_terminate_ends_the_program_and_twice_is_the_same() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop) as (_, endpoint), connected(endpoint) as client:
        mirror = SeenTerminal(1000)
        request = ask("sleep", "1000")
        await client.submit(request, mirror)
        first = await client.terminate(request.terminal_id, "t")
        again = await client.terminate(request.terminal_id, "t")
        assert first.exit_code == again.exit_code == -9 and first.terminated
        await until(lambda: not mirror.running, "the mirror to know")
        assert desktop.running == {}


async def test_a_flood_reaches_a_slow_reader_bounded_with_the_loss_counted() -> None:
    desktop = ScriptedDesktop()
    options = ListenerOptions(port=0, buffer_bytes=200_000)
    async with listening(desktop, options) as (_, endpoint):
        peer = await RawPeer.open(endpoint, limit=2**18)
        await peer.hello(endpoint)
        request = ask("sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x")
        peer.say(request.model_dump(exclude_none=True))
        await until(lambda: desktop.orders and not desktop.running, "the flood to end")
        seen = dropped = 0
        while (frame := await peer.hear())["type"] != "exit":
            if frame["type"] == "output":
                assert frame["offset"] == seen + dropped + frame.get("dropped", 0)
                seen += len(frame["data"])
                dropped += frame.get("dropped", 0)
        assert seen + dropped == 30_000_000 and dropped > 0
        await peer.aclose()


async def test_output_of_control_characters_fits_through_a_small_frame() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop, ListenerOptions(port=0, max_frame_bytes=4096)) as (_, endpoint):
        async with connected(endpoint) as client:
            mirror = SeenTerminal(100_000)
            await client.submit(ask("head", "-c", "50000", "/dev/zero"), mirror)
            await until(lambda: not mirror.running, "the exit")
            assert mirror.buffer.read().data == bytes(50_000)
            assert (await client.read(desktop.orders[0].terminal_id, 0, "t", max_bytes=10**6)).payload()


async def test_more_requests_than_a_person_can_face_are_told_so() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop, ListenerOptions(port=0, max_pending=3)) as (_, endpoint):
        async with connected(endpoint) as client:
            waiting = [client.submit(ask("true")) for _ in range(3)]
            with pytest.raises(PeerError) as caught:
                await client.submit(ask("true"))
            assert caught.value.code == "queue_full" and caught.value.details["max_pending"] == 3
            await until(lambda: len(desktop.arrived) == 3, "three cards")
            for pending in list(desktop.arrived):
                pending.decline()
            assert {(await future).outcome for future in waiting} == {"declined"}


async def test_a_request_id_cannot_be_used_twice() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint), connected(endpoint) as client:
        request = ask("true")
        assert (await client.submit(request)).outcome == "approved"
        again = request.model_copy(update={"terminal_id": "term_other"})
        with pytest.raises(PeerError) as caught:
            await client.submit(again)
        assert caught.value.code == "duplicate_id"


async def test_a_request_is_withdrawn_over_its_own_connection_only() -> None:
    """A server may have two for a moment; the card must not outlive its request."""
    desktop = ScriptedDesktop(script=ignore)
    async with listening(desktop) as (listener, endpoint), connected(endpoint, session="twice") as client:
        other = await RawPeer.open(endpoint)
        await other.hello(endpoint, runtime_session_id="twice")
        request = ask("true")
        decision = client.submit(request)
        await until(lambda: desktop.arrived, "the card")
        other.say({"type": "withdraw", "id": request.id, "trace_id": "x", "reason": "cancelled"})
        answer = await other.hear()
        assert (answer.get("code"), answer.get("reply_to")) == ("unknown_request", request.id)
        assert len(listener.clients) == 2 and desktop.closed == []
        assert desktop.arrived[0].approve()
        assert (await decision).outcome == "approved"
        await other.aclose()


async def test_a_frame_that_belongs_to_the_other_end_is_an_error() -> None:
    async with listening(ScriptedDesktop()) as (_, endpoint):
        peer = await RawPeer.open(endpoint)
        await peer.hello(endpoint)
        peer.say({"type": "exit", "terminal_id": "t", "trace_id": "x", "exit_code": 0})
        assert (await peer.hear())["code"] == "unexpected_frame"
        peer.say({"type": "withdraw", "id": "never", "trace_id": "x", "reason": "timeout"})
        answer = await peer.hear()
        assert (answer["code"], answer["reply_to"]) == ("unknown_request", "never")
        await peer.aclose()


async def test_a_program_that_cannot_be_started_is_refused_after_all(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    async with listening(ScriptedDesktop()) as (listener, endpoint), connected(endpoint) as client:
        request = ask("./broken", cwd=str(tmp_path))
        decision = await client.submit(request)
        assert (decision.outcome, decision.code) == ("refused", "start_failed")
        assert not listener.terminals.knows(request.terminal_id)
