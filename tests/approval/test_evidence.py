from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.bridge.talk import ask
from wsh.approval.always import propose
from wsh.approval.escape import escape_argument, escape_text, is_hidden
from wsh.approval.evidence import CannotRun, resolve, resolve_typing
from wsh.approval.judgement import Judgement, take_stricter
from wsh.approval.request import Badge

BASE = {"PATH": "/usr/bin:/bin", "LANG": "C"}


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("ls", "ls"),
        ("", "''"),
        ("two words", "'two words'"),
        ("$HOME", "'$HOME'"),
        ("it's", "$'it\\'s'"),
        ("a\nb", "$'a\\nb'"),
        ("x\x1b[2Jy", "$'x\\e[2Jy'"),
        ("nul\x00", "$'nul\\0'"),
        ("safe\u202egnp.exe", "$'safe\\u202egnp.exe'"),
        ("zero\u200bwidth", "$'zero\\u200bwidth'"),
        ("no\u00a0break", "$'no\\u00a0break'"),
        ("hangul\u3164filler", "$'hangul\\u3164filler'"),
        ("tag\U000e0041", "$'tag\\U000e0041'"),
        ("selected\U000e0100", "$'selected\\U000e0100'"),
        ("mongolian\u180b", "$'mongolian\\u180b'"),
        ("note\U0001d159", "$'note\\U0001d159'"),
        ("schön€", "'schön€'"),
        ("back\\slash\n", "$'back\\\\slash\\n'"),
        ("many    spaces", "'many    spaces'"),
    ],
)
def test_nothing_in_an_argument_can_hide(argument: str, shown: str) -> None:
    assert escape_argument(argument) == shown
    assert not any(is_hidden(char) for char in shown)


def test_no_rule_is_offered_for_words_that_do_not_show_whole() -> None:
    assert propose(("echo", "schön")) is not None
    assert propose(("echo", "selected\U000e0100")) is None


def test_text_for_people_keeps_its_words_and_shows_its_tricks() -> None:
    assert escape_text("it's fine\r\u202e!") == "it's fine\\r\\u202e!"


def test_what_the_asking_side_says_of_a_command_shows_its_tricks() -> None:
    claim = Badge(name="x", title="Safe\u202e", sentence="It is\x1b[2J fine.")
    (badge,) = take_stricter(ask("true").model_copy(update={"badges": [claim]}), Judgement("ask")).badges
    assert (badge.title, badge.sentence) == ("Safe\\u202e", "It is\\e[2J fine.")


def test_the_same_request_resolves_to_the_same_binding(tmp_path: Path) -> None:
    first = resolve(["ls", "-l"], str(tmp_path), {"A": "1"}, BASE, "s")
    assert first == resolve(["ls", "-l"], str(tmp_path), {"A": "1"}, BASE, "s")
    assert first.executable == "/usr/bin/ls" and first.shown_env == ("A=1",)
    assert first.executable_sha256 is not None and len(first.executable_sha256) == 64


def test_any_change_of_argv_cwd_environment_or_session_is_another_binding(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    bindings = {
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "s").binding,
        resolve(["ls", "-a"], str(tmp_path), {}, BASE, "s").binding,
        resolve(["ls", "-l", ""], str(tmp_path), {}, BASE, "s").binding,
        resolve(["ls", "-l"], str(other), {}, BASE, "s").binding,
        resolve(["ls", "-l"], str(tmp_path), {"A": "1"}, BASE, "s").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, {**BASE, "LANG": "de"}, "s").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "t").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "s", "workspace").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "s", "read-only").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "s", None, "workspace").binding,
        resolve(["ls", "-l"], str(tmp_path), {}, BASE, "s", None, "read-only").binding,
    }
    assert len(bindings) == 11


def test_a_program_that_was_replaced_is_another_binding(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho one\n")
    program.chmod(0o755)
    before = resolve(["./tool"], str(tmp_path), {}, BASE, "s")
    program.write_text("#!/bin/sh\necho two\n")
    assert resolve(["./tool"], str(tmp_path), {}, BASE, "s").binding != before.binding


def test_a_program_that_is_endlessly_long_is_known_by_which_file_it_is(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.touch(0o755)
    os.truncate(program, 2**31)
    before = resolve(["./tool"], str(tmp_path), {}, BASE, "s")
    assert before.executable_sha256 is not None and before.executable_sha256.startswith("inode:")
    assert resolve(["./tool"], str(tmp_path), {}, BASE, "s").binding == before.binding
    with program.open("r+b") as file:
        file.write(b"#!/bin/sh\n")
    assert resolve(["./tool"], str(tmp_path), {}, BASE, "s").binding != before.binding


def test_a_cwd_that_was_replaced_by_another_folder_is_another_binding(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    before = resolve(["ls"], str(place), {}, BASE, "s")
    place.rename(tmp_path / "moved")
    place.mkdir()
    assert resolve(["ls"], str(place), {}, BASE, "s").binding != before.binding


def test_a_cwd_behind_a_link_is_shown_as_what_it_is(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert resolve(["ls"], str(tmp_path / "link"), {}, BASE, "s").cwd == os.path.realpath(real)


def test_a_path_of_the_request_decides_which_program_is_found(tmp_path: Path) -> None:
    fake = tmp_path / "ls"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert resolve(["ls"], "/", {"PATH": str(tmp_path)}, BASE, "s").executable == str(fake)


@pytest.mark.parametrize(
    ("argv", "cwd", "code"),
    [
        (["no-such-program-here"], "/", "program_not_found"),
        (["/etc/passwd"], "/", "program_not_found"),
        (["/usr"], "/", "program_not_found"),
        (["nul\x00"], "/", "program_not_found"),
        (["ls"], "/no/such/folder", "cwd_not_found"),
        (["ls"], "/etc/passwd", "cwd_not_found"),
        (["ls"], "nul\x00", "cwd_not_found"),
    ],
)
def test_what_cannot_run_is_said_before_anybody_is_asked(argv: list[str], cwd: str, code: str) -> None:
    with pytest.raises(CannotRun) as caught:
        resolve(argv, cwd, {}, BASE, "s")
    assert caught.value.code == code


def test_typing_is_bound_to_its_text_terminal_and_session() -> None:
    bindings = {
        resolve_typing(text, terminal, session).binding
        for text, terminal, session in [("ls", "t", "s"), ("ls ", "t", "s"), ("ls", "u", "s"), ("ls", "t", "r")]
    }
    assert len(bindings) == 4
