"""Lines typed into an opened terminal, and text as results have it: the window's own end, real shells, a real bridge."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.contract.windowed import Desk, desk
from tests.support.contract.world import INTERACTIVE, make_policy, opened
from tests.support.waiting import until
from wsh.bridge.frame import LineFrame
from wsh.bridge.terminal import BridgeTerminal
from wsh.contract.ask.asked import AskedRequest
from wsh.contract.identity import Identity
from wsh.contract.output.log import OutputLog
from wsh.contract.output.observer import OutputObserver
from wsh.contract.output.text import find_whole
from wsh.session.command.output import render_printed
from wsh.session.event import Actor
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places

OPEN: dict[str, Any] = {"mode": "interactive", "intent": "open_only"}
SHELLS = [name for name in ("bash", "zsh", "fish") if shutil.which(name)]


async def open_terminal(table: Desk) -> dict[str, str]:
    made = await table.world.ask({"action": "execute", "invocation": OPEN})
    assert made["success"] and made["status"] == "completed", made
    session = table.sessions[-1]
    await until(
        lambda: session.at_prompt == "yes", "the prompt", seen=lambda: session.terminal.screen(styled=False).lines
    )
    identity: dict[str, str] = made["identity"]
    return identity


async def type_line(table: Desk, identity: dict[str, str], command: str, **runtime: Any) -> dict[str, Any]:
    return await table.world.ask(
        {
            "action": "execute",
            "invocation": INTERACTIVE,
            "execution": {"command": command},
            "target": {"terminal_id": identity["terminal_id"]},
            "runtime": {"timeout_ms": 60_000} | runtime,
        }
    )


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_line_is_completed_with_its_own_output_and_status(tmp_path: Path, places: Places, shell: str) -> None:
    async with desk(tmp_path, places, shell) as table:
        identity = await open_terminal(table)
        told = await type_line(table, identity, "printf '\\033[31mred\\033[0m\\n'; sh -c 'echo two >&2; exit 3'")
        result = told["result"]
        assert (told["status"], result["exit_code"], result["running"]) == ("completed", 3, False), told
        assert (result["stdout"], result["stderr"]) == ("red\ntwo", "")
        assert result["finished_by"] == "command" and result["terminal_running"] is True
        assert result["authorization"] == "allowed" and told["identity"] == identity
        again = await type_line(table, identity, "true")
        assert (again["status"], again["result"]["exit_code"], again["result"]["stdout"]) == ("completed", 0, "")
        assert again["result"]["cursor"] >= result["next_cursor"]
        rest = await table.world.ask(
            {"action": "read_output", "target": identity | {"cursor": again["result"]["next_cursor"]}}
        )
        assert "red" not in rest["result"]["stdout"]


async def test_whatever_is_read_of_a_terminal_is_text_without_control_characters(
    tmp_path: Path, places: Places
) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        await type_line(table, identity, "printf '\\033[1;32mgreen\\033[0m\\ttab\\n'; seq 3")
        session = table.sessions[-1]
        assert session.commands is not None
        whole = await table.world.ask({"action": "read_output", "target": identity})
        text = whole["result"]["stdout"]
        assert "green   tab\n1\n2\n3\n" in text
        assert "\x1b" not in text and "\r" not in text and "133;" not in text and "\x07" not in text


async def test_a_line_whose_end_is_not_known_is_accepted(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        asks = await type_line(table, identity, "read -p 'Sure? ' x; echo got $x; (exit 4)")
        assert (asks["status"], asks["result"]["finished_by"]) == ("accepted", "prompt")
        assert asks["result"]["running"] is True and asks["result"]["exit_code"] is None
        assert asks["result"]["stdout"].rstrip() == "Sure?"
        answered = await type_line(table, identity, "yes")
        assert (answered["status"], answered["result"]["exit_code"]) == ("completed", 4)
        assert "got yes" in answered["result"]["stdout"]


async def test_a_line_that_outlives_the_wait_is_accepted_and_its_end_is_read_later(
    tmp_path: Path, places: Places
) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        gate = tmp_path / "gate"
        told = await type_line(
            table, identity, f"until [ -e {gate} ]; do sleep 0.05; done; echo late; (exit 9)", timeout_ms=700
        )
        assert told["status"] == "accepted" and told["result"]["running"] is True
        assert "finished_by" not in told["result"]
        gate.touch()

        async def ended() -> dict[str, Any]:
            read = await table.world.ask({"action": "read_output", "target": identity})
            line: dict[str, Any] = read["result"]["line"]
            return line

        line = await ended()
        while line["running"]:
            await asyncio.sleep(0.05)
            line = await ended()
        assert (line["exit_code"], line["finished_by"]) == (9, "command") and "late" in line["command"]


async def test_a_line_that_ends_the_terminal_is_completed_with_its_status(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        told = await type_line(table, identity, "echo bye; exit 7")
        result = told["result"]
        assert (told["status"], result["exit_code"], result["running"]) == ("completed", 7, False), told
        assert result["finished_by"] == "exit" and "bye" in result["stdout"]
        gone = await type_line(table, identity, "true")
        assert gone["error"]["code"] == "PM_TERM_NOT_FOUND"


async def test_a_new_line_does_not_wait_for_one_that_still_runs(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        first = await type_line(table, identity, "cat", timeout_ms=700)
        assert first["status"] == "accepted"
        second = await type_line(table, identity, "echoed back")
        assert second["status"] == "accepted" and "echoed back" in second["result"]["stdout"]


async def test_an_approved_line_that_waits_for_its_turn_is_taken_back_with_its_call(
    tmp_path: Path, places: Places
) -> None:
    async with desk(tmp_path, places) as table:
        target = await open_terminal(table)
        identity = table.world.contract.registry.list_all()[-1]
        gate, made = tmp_path / "gate", tmp_path / "made"
        first = await type_line(table, target, f"until [ -e {gate} ]; do sleep 0.05; done", timeout_ms=300)
        assert first["status"] == "accepted"
        call = asyncio.create_task(type_line(table, target, f"touch {made}"))
        (peer,) = table.listener._peers
        line = identity.facts["line"].request

        def waits_for_its_turn() -> bool:
            now = identity.facts["line"].request
            return now != line and peer.queue.find_state(now) == "started"

        await until(waits_for_its_turn, "the yes")
        asked = identity.facts["line"].asked
        call.cancel()
        await asyncio.wait({call})
        assert asked.outcome == "withdrawn" and list(table.listener._peers) == [peer]
        gate.touch()
        after = await type_line(table, target, "echo after")
        assert after["result"]["stdout"] == "after" and not made.exists()


async def test_of_two_lines_that_wait_for_one_terminal_only_the_first_is_typed_with_the_first(
    tmp_path: Path, places: Places
) -> None:
    async with desk(tmp_path, places) as table:
        target = await open_terminal(table)
        identity = table.world.contract.registry.list_all()[-1]
        gates, made = [tmp_path / "first", tmp_path / "second"], tmp_path / "made"
        (peer,) = table.listener._peers

        async def ask(command: str) -> tuple[asyncio.Task[dict[str, Any]], AskedRequest]:
            """The line is approved and waits for its turn."""
            before = identity.facts["line"].request
            call = asyncio.create_task(type_line(table, target, command))

            def waits_for_its_turn() -> bool:
                now = identity.facts["line"].request
                return now != before and peer.queue.find_state(now) == "started"

            await until(waits_for_its_turn, "the yes")
            asked: AskedRequest = identity.facts["line"].asked
            return call, asked

        loops = [f"until [ -e {gate} ]; do sleep 0.05; done" for gate in gates]
        assert (await type_line(table, target, loops[0], timeout_ms=300))["status"] == "accepted"
        second, second_asked = await ask(loops[1])
        third, third_asked = await ask(f"touch {made}")
        gates[0].touch()
        await until(lambda: second_asked.is_approved, "the second line to be typed")
        assert third_asked.is_pending
        third.cancel()
        await asyncio.wait({third})
        assert third_asked.outcome == "withdrawn"
        gates[1].touch()
        assert (await second)["status"] == "completed"
        assert (await type_line(table, target, "echo after"))["result"]["stdout"] == "after" and not made.exists()


async def test_a_terminal_that_a_person_has_taken_is_busy_and_nothing_is_typed(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        table.sessions[-1].input.taken_by = "ann"
        told = await type_line(table, identity, "true")
        assert told["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE", told
        assert told["error"]["details"]["reason"] == "session_taken"
        assert "recommended_mode" not in told["fallback"] and "in use" in told["fallback"]["user_message"]


async def test_a_drop_while_a_line_runs_names_the_desktop(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        identity = await open_terminal(table)
        call = asyncio.create_task(type_line(table, identity, "echo up; cat"))
        await until(lambda: "up" in table.sessions[-1].terminal.screen(styled=False).lines, "the line")
        for peer in list(table.listener._peers):
            peer.stream.abort()
        told = await call
        details = told["error"]["details"]
        assert told["error"]["code"] == "PM_TERM_DISCONNECTED", told
        assert details["request_state"] == "started"
        assert (details["alias"], details["host"]) == ("127.0.0.1", "127.0.0.1") and details["port"] > 0


async def drop(table: Desk) -> Identity:
    """End the connection under the newest terminal."""
    identity = table.world.contract.registry.list_all()[-1]
    for peer in list(table.listener._peers):
        peer.stream.abort()
    await until(lambda: identity.handle.ear.is_lost, "the drop")
    return identity


async def test_a_line_after_a_drop_is_completed_as_any_other(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        target = await open_terminal(table)
        for word in ("one", "two"):
            identity = await drop(table)
            told = await type_line(table, target, f"echo {word}")
            assert told["success"] and told["status"] == "completed", told
            assert (told["result"]["exit_code"], told["result"]["stdout"]) == (0, word)
        session = table.sessions[-1]
        await session.input.type(b"echo later\n", Actor("person", "ann"))
        (terminal,) = table.listener.terminals.list_running()
        await until(lambda: b"later\r\n" in terminal.buffer.read(0, 1 << 20).data, "the echo")
        await until(lambda: identity.log.end == terminal.buffer.end, "what was printed without a call")
        assert identity.log.raw.read(0, 1 << 20).data == terminal.buffer.read(0, 1 << 20).data


@pytest.mark.parametrize("ends", ["before the next connection", "after it"])
async def test_the_end_of_a_line_that_ran_when_the_connection_dropped_is_told_over_the_next_one(
    tmp_path: Path, places: Places, ends: str
) -> None:
    async with desk(tmp_path, places) as table:
        target = await open_terminal(table)
        gate = tmp_path / "gate"

        async def read_line() -> dict[str, Any]:
            read = await table.world.ask({"action": "read_output", "target": target})
            line: dict[str, Any] = read["result"]["line"]
            return line

        call = asyncio.create_task(
            type_line(table, target, f"echo up; until [ -e {gate} ]; do sleep 0.05; done; (exit 9)")
        )
        session = table.sessions[-1]
        await until(lambda: "up" in session.terminal.screen(styled=False).lines, "the line")
        await drop(table)
        assert (await call)["error"]["code"] == "PM_TERM_DISCONNECTED"
        if ends == "after it":
            assert (await read_line())["running"] is True
        gate.touch()
        await until(lambda: session.at_prompt == "yes", "the end of the line")
        (terminal,) = table.listener.terminals.list_running()
        await until(lambda: any(line.exit_code == 9 for line in terminal.lines.values()), "what came of it")

        async def has_ended() -> bool:
            return (await read_line())["running"] is False

        await until(has_ended, "the end over the next connection")
        line = await read_line()
        assert (line["exit_code"], line["finished_by"]) == (9, "command")


def test_only_what_came_of_the_newest_lines_is_kept() -> None:
    def tell(number: int, **more: Any) -> LineFrame:
        return LineFrame(request=f"br_{number}", terminal_id="t", trace_id="trace_1", offset=0, **more)

    log = OutputLog(1024)
    identity = Identity(
        "sess_1", "term_1", "interactive", "ann", None, None, None, (), None, trace_id="trace_1", started=0.0, log=log
    )
    observer = OutputObserver(identity, lambda ended: None)
    terminal = BridgeTerminal("sess_1", "term_1", "rt_1", "trace_1", 1024)
    for number in range(1000):
        for take in (observer.take_line, terminal.keep_line):
            take(tell(0))  # one that goes on all the time
            take(tell(number, output="x" * 1000))
    for kept in (observer.lines, terminal.lines):
        assert len(kept) < 20 and {"br_0", "br_999"} <= kept.keys()
    assert all(line.output is None for line in terminal.lines.values())


async def test_the_end_of_a_terminal_is_heard_after_a_drop_without_asking(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        target = await open_terminal(table)
        identity = await drop(table)
        read = await table.world.ask({"action": "read_output", "target": target})
        assert read["result"]["running"] is True
        await table.sessions[-1].input.type(b"exit 5\n", Actor("person", "ann"))
        await until(lambda: not identity.running, "the end")
        assert identity.exit_code == 5
        gone = await type_line(table, target, "true")
        assert gone["error"]["code"] == "PM_TERM_NOT_FOUND", gone


async def test_a_command_in_a_terminal_of_its_own_gives_text(tmp_path: Path, places: Places) -> None:
    async with desk(tmp_path, places) as table:
        told = await table.world.interactive(
            "sh", "-c", "printf '10%%\\r50%%\\r100%%\\n\\033[1mbold\\033[0m\\nno newline'", timeout_ms=60_000
        )
        assert (told["status"], told["result"]["exit_code"]) == ("completed", 0), told
        assert told["result"]["stdout"] == "100%\nbold\nno newline" and told["result"]["stderr"] == ""


_PIECES = st.sampled_from(
    [
        b"word",
        b"\r\n",
        b"\n",
        b"\x1b[31m",
        b"\x1b[0m",
        b"\x1b]0;title\x07",
        b"\x1b]133;C;a=b\x1b\\",
        b"\x1b(B",
        "ä…".encode(),
    ]
)


@given(st.lists(_PIECES, max_size=12), st.integers(0, 200))
async def test_two_readings_never_share_a_sequence(pieces: list[bytes], at: int) -> None:
    """What is rendered in two parts, split where a reading may end, is what is rendered at once."""
    data = b"".join(pieces)
    cut = find_whole(data[:at].decode("utf-8", "ignore").encode())
    assert find_whole(data) >= cut

    one = await render_printed(data[:cut], 24, 200) if cut else ""
    other = await render_printed(data[cut:], 24, 200) if data[cut:] else ""
    parts, whole = one + other, await render_printed(data, 24, 200)
    assert parts.split() == whole.split() or "".join(parts.split()) == "".join(whole.split())
    assert "\x1b" not in parts and "[31m" not in parts and "133;" not in parts


@pytest.mark.parametrize(
    ("request_", "allowed", "why"),
    [
        ({"invocation": INTERACTIVE, "execution": {"command": "ls"}}, True, "allow it in headless"),
        ({"invocation": INTERACTIVE, "execution": {"command": "wget x"}}, False, "Headless mode would refuse it"),
        ({"invocation": INTERACTIVE, "execution": {"command": "ls | wc"}}, False, "Headless mode would refuse it"),
        ({"invocation": OPEN}, False, "no terminals to open"),
        ({"invocation": INTERACTIVE, "execution": {"command": "rm -rf /"}}, False, "neither mode runs it"),
    ],
)
async def test_headless_mode_is_recommended_only_where_the_policy_would_allow_the_same(
    tmp_path: Path, request_: dict[str, Any], allowed: bool, why: str
) -> None:
    async with opened(tmp_path, policy=make_policy(["ls"])) as world:
        told = await world.ask({"action": "execute", **request_})
        assert told["success"] is False
        assert told["fallback"].get("recommended_mode") == ("headless" if allowed else None)
        assert allowed or "recommended_mode" not in told["fallback"]
        assert why in told["fallback"]["user_message"], told["fallback"]


async def test_a_list_waits_for_silent_desktops_as_long_as_it_may(tmp_path: Path, places: Places) -> None:
    silent: set[asyncio.StreamWriter] = set()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent.add(writer)
        await reader.read()

    async with desk(tmp_path, places) as table:
        port = table.port
        environ = {
            "PM_TERM_ADAPTER_MODE": "container_bridge",
            "PM_INTERACTIVE_TERMINAL_TOKEN": table.listener.token,
            "PM_INTERACTIVE_TERMINAL_HOST_ALIAS": "127.0.0.1",
            "PM_INTERACTIVE_TERMINAL_HOST_PORT": str(port),
            "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "600000",
        }
        caller = Caller("agent", "caller-2", "token", connection="caller-2", cwd=str(tmp_path), environ=environ)
        made = await table.world.ask({"action": "execute", "invocation": OPEN}, caller)
        assert made["success"], made
        (fresh,) = (await table.world.ask({"action": "list"}, caller))["result"]["items"]
        assert fresh["reachable"] is True
        await table.listener.aclose()
        server = await asyncio.start_server(say_nothing, "127.0.0.1", port)
        identity = table.world.contract.registry.list_all()[-1]
        await until(lambda: identity.handle.ear.is_lost, "the drop")
        (item,) = (await table.world.ask({"action": "list", "runtime": {"timeout_ms": 200}}, caller))["result"]["items"]
        assert item["reachable"] is False and silent
        for writer in silent:
            writer.close()
        server.close()


@pytest.mark.parametrize(
    ("tool", "own"),
    [("memory_terminal", "run, read_output, kill or list"), ("memory_terminal_vscode", "create, send, close or list")],
)
async def test_a_legacy_tool_speaks_of_its_own_actions(tmp_path: Path, tool: Any, own: str) -> None:
    async with opened(tmp_path) as world:
        unknown = await world.ask({"action": "explode"}, tool=tool)
        assert unknown["error"]["code"] == "PM_TERM_INVALID_ACTION"
        assert own in unknown["fallback"]["user_message"]
        first = own.split(",")[0]
        failed = await world.ask({"action": first, "cwd": "/no/such/folder", "command": "ls"}, tool=tool)
        assert failed["success"] is False and failed["fallback"]["next_action"] == first
