"""What becomes of keys at `wsh attach`: which reach the program, and which do not."""

from __future__ import annotations

import pytest

from wsh.client.attach.person import Person
from wsh.client.attach.prefix import Bindings
from wsh.wire.bracketed_paste import PASTE_BEGIN, PASTE_END


class FakeServer:
    def __init__(self) -> None:
        self.typed = b""
        self.told: list[dict[str, object]] = []

    def send_bytes(self, data: bytes) -> None:
        self.typed += data

    def send_json(self, message: dict[str, object]) -> None:
        self.told.append(message)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def person(server: FakeServer) -> Person:
    made = Person("work", Bindings())
    made.connect(server)
    return made


@pytest.mark.parametrize("cut", range(1, len(PASTE_END)))
def test_a_long_paste_at_a_page_presses_no_key_and_reaches_no_program(
    person: Person, server: FakeServer, cut: int
) -> None:
    person.type(b"\x1c?")
    assert server.told[-1]["type"] == "hint", "the help is open"
    person.type(PASTE_BEGIN + b"one\n")
    person.type(b"two\nq\x1cd" + PASTE_END[:cut])
    assert (server.typed, person.is_leaving, person.types_plainly) == (b"", False, False)
    person.type(PASTE_END[cut:] + b"ls")
    assert (server.typed, person.types_plainly) == (b"ls", True)
    person.type(b"\x1cd")
    assert person.is_leaving, "the prefix is one again"


@pytest.mark.parametrize("pieces", [(b"\x1c?", PASTE_BEGIN + b"q\n" + PASTE_END), (PASTE_BEGIN + b"q\n", PASTE_END)])
def test_a_paste_in_a_session_that_has_ended_presses_no_key(
    person: Person, server: FakeServer, pieces: tuple[bytes, ...]
) -> None:
    person.hear({"type": "exit", "exit_code": 0, "ended_before": True})
    for piece in pieces:
        person.type(piece)
    assert (person.is_leaving, server.typed) == (False, b"")
    person.type(b"q")
    assert person.is_leaving


def test_what_is_typed_while_a_server_fails_to_come_reaches_the_one_that_does(
    person: Person, server: FakeServer
) -> None:
    person.wait_for_server()
    person.type(b"echo ")
    person.wait_for_server()
    person.type(b"kept")
    person.connect(server)
    assert server.typed == b"echo kept"
