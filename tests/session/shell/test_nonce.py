"""The nonce of the shell's marks leaves by no door: zeros stand in its place, as many, so that offsets hold."""

from __future__ import annotations

import pytest

from tests.support.session.shells import each_shell, run, text_of, with_shell
from wsh.session.record.playback import read_output_page
from wsh.session.session import Session
from wsh.session.shell.mark import NonceMask
from wsh.session.wait.wait import WaitSpec
from wsh.visual.export.format import export
from wsh.wire.system.place import Places

NONCE = "1234567890123456789.987654321098765432"


def test_zeros_stand_in_its_place_however_the_stream_is_cut() -> None:
    stream = f"\x1b]133;A;wsh={NONCE};n=1\x07plain 12345 1234 {NONCE[:5]} bare {NONCE} end\x1b]133;D;0;wsh={NONCE};n=2\x07".encode()
    expected = stream.replace(NONCE.encode(), b"0" * len(NONCE))
    assert NonceMask(NONCE).hide(stream) == expected
    for cut in range(len(stream) + 1):
        mask = NonceMask(NONCE)
        got = mask.hide(stream[:cut]) + mask.hide(stream[cut:])
        assert len(got) == len(stream) and NONCE.encode() not in got
    mask = NonceMask(NONCE)
    single = b"".join(mask.hide(stream[i : i + 1]) for i in range(len(stream)))
    assert len(single) == len(stream) and NONCE.encode()[:13] not in single


def test_other_output_is_left_alone() -> None:
    mask = NonceMask(NONCE)
    for piece in (b"1", b"12", b"wsh", b"=", b"123456", b".", b"9", b"1234567890"):
        assert mask.hide(piece) == piece


@each_shell
def test_no_door_shows_the_nonce(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        assert session.commands is not None
        secret = session.commands.nonce.encode()
        heard: list[tuple[int, bytes]] = []
        session.output.tap(lambda offset, data: heard.append((offset, data)))
        await run(session, "echo one")
        copy = session.folder.path / "copy"
        copy.write_bytes(session.commands.nonce.encode())
        shown = await run(session, f"cat {copy}")
        assert text_of(shown) == "0" * len(secret)
        await session.wait(WaitSpec(quiet_ms=100, max_wait_ms=60_000))
        seen = b"".join(data for _, data in heard)
        assert b"wsh=0000" in seen and secret not in seen
        assert secret not in session.output.read_recent(0) and b"wsh=0000" in session.output.read_recent(0)
        at, end = heard[0][0], heard[-1][0] + len(heard[-1][1])
        assert session.output.read_recent(0)[at:end] == seen
        for format in ("asciicast-v2", "asciicast-v3", "txt", "html"):
            film = export(session.folder.path, 24, 80, format, nonces=session.nonces)
            assert secret not in film and film
        page = await read_output_page(session, session.history.list_commands()[-1])
        assert page.lines == ["0" * len(secret)]
        assert secret.decode() not in str(session.terminal.scrollback(limit=1000).lines)

    with_shell(places, shell, work)


@pytest.mark.parametrize("shell", ["zsh"])
def test_not_even_a_command_that_prints_it(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "print -r -- $__wsh[1]")
        assert set(text_of(outcome)) == {"0"}

    with_shell(places, shell, work)
