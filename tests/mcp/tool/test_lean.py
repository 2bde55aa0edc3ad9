"""The lean tools: few tokens, texts alone, and no word of a tool that the client does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.mcp.tokens import count_exactly
from wsh.mcp.budget import count_tokens
from wsh.mcp.tool.lean import TOOLS

NAMES = ["run", "type", "look", "wait", "sessions", "ask"]


class Lean:
    def __init__(self, host: StdioHost) -> None:
        self.host = host

    def result(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.host.call(tool, arguments)["result"]
        return found

    def text(self, tool: str, /, **arguments: Any) -> str:
        found = self.result(tool, **arguments)
        assert set(found) - {"isError", "resultType"} == {"content"}, "a lean result is a text alone"
        return str(found["content"][0]["text"])

    def run(self, command: str, **more: Any) -> str:
        return self.text("run", command=command, **more)


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lean]:
    with (
        live_server(tmp_path_factory.mktemp("lean")),
        StdioHost(args=["--toolsets", "lean"], cwd=str(tmp_path_factory.mktemp("cwd"))) as host,
    ):
        host.initialize()
        lean = Lean(host)
        lean.run("true")  # the first run names the session that it opened
        yield lean


@pytest.mark.timeout(900)
def test_the_list_of_tools_costs_at_most_2500_tokens(lean: Lean) -> None:
    listed = lean.host.request("tools/list")["result"]
    assert [tool["name"] for tool in listed["tools"]] == NAMES
    assert not any("outputSchema" in tool for tool in listed["tools"])
    assert all("xample: {" in tool["description"] for tool in listed["tools"])
    assert count_exactly([json.dumps(listed)])[0] <= 2500
    assert lean.host.request("prompts/list")["result"]["prompts"] == []


def test_a_command_gives_its_output_and_exit_code_with_little_around(lean: Lean) -> None:
    assert lean.run("echo one; echo two") == "one\ntwo\n[exit 0]"
    assert lean.run("false") == "[exit 1]"
    extra = count_tokens(json.dumps(lean.result("run", command="echo one"))) - count_tokens("one")
    assert extra <= 60


def test_a_deadline_in_the_meta_is_that_of_a_run_and_of_a_wait(lean: Lean) -> None:
    meta = {"wsh/timeoutMs": 300}
    ran = lean.host.call("run", {"command": "sleep 3"}, **meta)["result"]["content"][0]["text"]
    assert "still running after 300 ms" in ran
    waited = lean.host.call("wait", {"match": "zzz"}, **meta)["result"]["content"][0]["text"]
    assert "did not come within" in waited
    assert "[exit 0" in lean.text("wait")


def test_it_keeps_folder_and_variables_between_calls(lean: Lean, tmp_path: Path) -> None:
    lean.run(f"cd {tmp_path}; word=kept")
    assert lean.run("pwd; echo $word") == f"{tmp_path}\nkept\n[exit 0]"


def test_long_output_keeps_to_the_budget_and_the_handle_reads_the_rest(lean: Lean) -> None:
    text = lean.run("seq 20000")
    assert count_tokens(text) <= 4000
    assert text.startswith("1\n2\n") and text.endswith("20000\n[exit 0]")
    handle = re.search(r"lines (\d+)-(\d+) left out: look\(command=(\d+), from_line=(\d+)\)", text)
    assert handle is not None
    first, command = int(handle[4]), int(handle[3])
    rest = lean.text("look", command=command, from_line=first, max_tokens=200)
    assert rest.startswith(f"{first}\n{first + 1}\n") and "go on with from_line=" in rest
    assert count_tokens(rest) <= 200
    found = lean.text("look", command=command, search="1999", max_tokens=300)
    assert "11999: 11999" in found and found.endswith("[12 of 20000 lines, exit 0]")


def test_found_lines_keep_to_the_budget_with_their_numbers(lean: Lean) -> None:
    lean.run("yes x | head -20000")
    text = lean.text("look", command=0, search="x")
    assert text.startswith("1: x\n2: x\n") and "go on with from_line=" in text
    assert count_tokens(text) <= 4000


def test_a_page_that_ends_before_the_output_says_where_to_go_on(lean: Lean) -> None:
    lean.run("yes : | head -6000")
    for text in (
        lean.text("look", command=0, from_line=1, max_tokens=50_000),
        lean.text("look", from_line=1, max_tokens=50_000),
    ):
        more = re.search(r"go on with from_line=(\d+)\]", text)
        assert more is not None and int(more[1]) > 5000, text[-200:]


def test_a_search_goes_on_from_a_line_behind_thousands_of_matches(lean: Lean) -> None:
    lean.run("yes x | head -20000")
    text = lean.text("look", command=0, search="x", from_line=15_000, max_tokens=200)
    assert text.startswith("15000: x\n15001: x\n"), text
    assert text.endswith("[20000 of 20000 lines, exit 0]")
    last = lean.text("look", command=0, search="x", from_line=20_001, max_tokens=200)
    assert last == "[20000 of 20000 lines, exit 0]"


def test_a_search_shows_the_part_of_a_long_line_that_was_found(lean: Lean) -> None:
    lean.run("python3 -c \"print('a' * 50000 + 'NeedLe' + 'b' * 50000)\"")
    text = lean.text("look", command=0, search="NeedLe", max_tokens=200)
    assert re.match(r"1: \[… \d+ characters …\]a+NeedLeb+\[… \d+ characters …\]\n\[1 of 1 lines, exit 0\]", text), text
    assert count_tokens(text) <= 200


def test_colours_are_no_part_of_what_a_search_finds(lean: Lean) -> None:
    lean.run("printf 'on\\033[31mly\\033[0m this\\n'")
    assert "only" not in lean.text("look", search="<fg", color=True)
    assert "on<fg=" in lean.text("look", search="only this", color=True)


def test_what_matched_keeps_to_the_budget(lean: Lean) -> None:
    lean.run("python3 -c \"print(' '.join(map(str, range(1500))))\"")
    text = lean.text("wait", match="(?s).*1499", max_tokens=100)
    assert text.startswith("[matched: ") and "characters" in text
    assert count_tokens(text) <= 100


def test_a_long_failure_keeps_its_end_and_the_lines_that_name_errors(lean: Lean) -> None:
    script = "for i in $(seq 3000); do echo part $i is built; [ $i = 1500 ] && echo 'foo.c:3: error: bad'; done; exit 2"
    text = lean.run(f"( {script} )", max_tokens=500)
    assert "1501: foo.c:3: error: bad" in text and text.endswith("part 3000 is built\n[exit 2]")
    assert count_tokens(text) <= 500


def test_progress_is_what_it_ended_as(lean: Lean) -> None:
    text = lean.run("for i in $(seq 100); do printf '\\r%d%% loaded' $i; done; echo; yes | head -500")
    assert text == "100% loaded\ny  [lines 2-501: the same line]\n[exit 0]"


def test_a_question_is_answered_with_type(lean: Lean) -> None:
    assert lean.run("read -p 'Deploy? ' a; echo chosen: $a").endswith("Deploy?\n[waits for input: answer with type]")
    assert "chosen: y" in lean.text("type", text="y\r")


_MENU = """
import os, sys, tty
at = 0
print("> one\\n  two\\n  three")
print("choose: ", end="", flush=True)
tty.setcbreak(0)
while os.read(0, 16) != b"q":
    at += 1
    rows = "".join(("> " if at == row else "  ") + word + "\\r\\n" for row, word in enumerate(("one", "two", "three")))
    print("\\0337\\033[3A\\r" + rows + "\\0338", end="", flush=True)
"""


def test_a_menu_that_is_drawn_in_place_shows_its_new_choice(lean: Lean, tmp_path: Path) -> None:
    (tmp_path / "menu.py").write_text(_MENU)
    assert "> one" in lean.run(f"python3 {tmp_path}/menu.py")
    assert lean.text("type", keys="down") == "  one\n> two\n  three\nchoose:"
    lean.text("type", text="q")
    lean.text("wait")


_PAINTED = """
import os, tty
tty.setcbreak(0)
print("\\033[?1049h", end="", flush=True)
count = 0
while os.read(0, 16) != b"q":
    count += 1
    print("".join(f"\\033[{row};1Hrow {row} word {count} of many" for row in range(5, 24)), end="", flush=True)
print("\\033[?1049l", end="", flush=True)
"""


def test_rows_of_a_full_screen_program_that_are_left_out_are_named_as_they_stand(lean: Lean, tmp_path: Path) -> None:
    (tmp_path / "painted.py").write_text(_PAINTED)
    lean.run(f"python3 {tmp_path}/painted.py")
    text = lean.text("type", text="x", max_tokens=150)
    left_out = re.search(r"\[rows (\d+)-(\d+) left out\]", text)
    shown = [int(number) for number in re.findall(r"^(\d+): ", text, re.MULTILINE)]
    assert left_out is not None and shown
    assert not set(shown) & set(range(int(left_out[1]), int(left_out[2]) + 1)), text
    lean.text("type", text="q")
    lean.text("wait")


def test_a_full_screen_program_shows_its_screen_and_then_what_changed(lean: Lean) -> None:
    text = lean.run("vim -u NONE -n -i NONE lean.txt")
    assert "[full-screen program" in text and count_tokens(text) < 100
    changed = lean.text("type", text="ihello world")
    assert changed.startswith("1: hello world")
    lean.text("type", keys="escape")
    left = lean.text("type", text=":q!\r")
    assert "hello world" not in left


def test_a_command_that_goes_on_is_waited_for(lean: Lean) -> None:
    text = lean.run("echo begun; read -t 600 gone; echo over", timeout_ms=300)
    assert 'wait(until="command")' in text
    lean.text("type", text="x\r")
    assert "over" in lean.text("wait")


def test_colour_comes_only_if_it_is_asked_for(lean: Lean) -> None:
    assert lean.run("printf '\\033[31mred\\033[m\\n'") == "red\n[exit 0]"
    assert "<fg=1>red</>" in lean.text("look", command=0, color=True)


def test_sessions_are_opened_named_and_closed(lean: Lean) -> None:
    assert lean.text("sessions", action="open", session="second", command="bash --norc") == "[second is open]"
    assert lean.run("echo there", session="second").endswith("there\n[exit 0]")
    assert lean.text("sessions", action="rename", session="second", new_name="third") == "[third]"
    assert "third: bash --norc" in lean.text("sessions")
    assert lean.text("sessions", action="close", session="third") == "[third is closed]"
    assert "third" not in lean.text("sessions")


def test_a_list_of_sessions_is_one_short_line_each_within_the_budget(lean: Lean) -> None:
    lean.text("sessions", action="open", session="long", command="sleep 1000 #" + "z " * 50_000)
    lean.text("sessions", action="open", session="lines", command="bash -c 'sleep 1000\necho two'")
    text = lean.text("sessions")
    assert count_tokens(text) <= 4000
    listed = text.split("\n")
    assert sum(line.startswith("long: sleep 1000 #z") for line in listed) == 1
    assert sum(line.startswith("lines: bash -c 'sleep 1000 echo two'") for line in listed) == 1
    few = lean.text("sessions", max_tokens=100)
    assert "more; max_tokens gives more of them]" in few
    assert count_tokens(few) <= 100
    for name in ("long", "lines"):
        lean.text("sessions", action="close", session=name)


def test_a_value_that_nothing_takes_is_refused_as_the_callers_mistake(lean: Lean) -> None:
    for tool, arguments in (
        ("look", {"command": 2**63}),
        ("look", {"from_line": 2**63}),
        ("sessions", {"action": "open", "cwd": "/" + "x" * 5000}),
        ("sessions", {"action": "open", "command": "x" * 200_000}),
    ):
        assert lean.text(tool, **arguments).startswith("INVALID_REQUEST: ")


def test_only_what_reads_is_answered_beside_a_full_queue() -> None:
    assert [tool.name for tool in TOOLS if tool.reads] == ["look"]


def test_no_failure_names_a_tool_that_is_not_there(lean: Lean) -> None:
    lean.text("type", text="unfinished")
    failures = [
        lean.result("run", command="ls"),
        lean.result("run", command="ls", session="nowhere"),
        lean.result("run"),
        lean.result("type"),
        lean.result("type", keys="no-such-key"),
        lean.result("look", command=987654),
        lean.result("sessions", action="rename"),
        lean.result("sessions", action="open", command="/no/such/program"),
    ]
    lean.text("type", keys="ctrl+c")
    assert all(found["isError"] for found in failures)
    assert not [found for found in failures if re.search(r"wsh_|GET |clear_line|structured", json.dumps(found))]
    assert "complete it with type" in failures[0]["content"][0]["text"]
    unknown = lean.host.call("wsh_run_command", {})["error"]
    assert "wsh_" not in unknown["data"]["hint"]


def test_where_nobody_can_be_asked_that_is_said(lean: Lean) -> None:
    found = lean.result("ask", command="echo hello", timeout_ms=60_000)
    assert found["isError"] and "Nobody can be asked here" in found["content"][0]["text"]


def test_every_lean_tool_is_an_operation_of_the_terminal_tools_or_the_contract() -> None:
    assert [tool.name for tool in TOOLS] == NAMES
    assert all(tool.calls for tool in TOOLS)
