"""Short messages are read past the WebSocket library only where one may begin, and mean the same there."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from wsh.http.server.frame_boundary import FrameBoundary, read_short

PAYLOADS = st.one_of(st.binary(max_size=130), st.integers(0, 70_000).map(lambda size: b"x" * size))
MESSAGES = st.lists(
    st.tuples(st.sampled_from((Opcode.BINARY, Opcode.TEXT)), st.lists(PAYLOADS, min_size=1, max_size=3), st.booleans()),
    max_size=5,
)


def write(opcode: Opcode, parts: list[bytes], pinged: bool) -> bytes:
    """A message in as many frames as it has parts, with a ping before each further one."""
    frames = [Frame(opcode if not at else Opcode.CONT, part, at == len(parts) - 1) for at, part in enumerate(parts)]
    ping = Frame(Opcode.PING, b"there").serialize(mask=True) if pinged else b""
    return ping.join(frame.serialize(mask=True) for frame in frames)


@settings(deadline=None)
@given(MESSAGES, st.lists(st.integers(0, 150_000), max_size=8))
def test_a_boundary_is_told_exactly_where_messages_end(
    messages: list[tuple[Opcode, list[bytes], bool]], cuts: list[int]
) -> None:
    stream, ends = b"", {0}
    for message in messages:
        stream += write(*message)
        ends.add(len(stream))
    # Every cut lies somewhere; those at the ends of messages are the interesting ones.
    cuts = sorted({*(cut for cut in cuts if cut < len(stream)), *ends})
    boundary = FrameBoundary()
    for at, end in zip([0, *cuts], cuts, strict=False):
        boundary.follow(stream[at:end])
        assert boundary.is_between_messages == (end in ends)


def test_nothing_follows_a_goodbye() -> None:
    boundary = FrameBoundary()
    boundary.follow(Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True))
    assert not boundary.is_between_messages


@given(
    st.sampled_from((Opcode.CONT, Opcode.TEXT, Opcode.BINARY)), st.binary(max_size=130), st.booleans(), st.booleans()
)
def test_a_short_message_is_read_as_the_library_reads_it(
    opcode: Opcode, payload: bytes, fin: bool, masked: bool
) -> None:
    data = Frame(opcode, payload, fin).serialize(mask=masked)
    plain = masked and fin and opcode is Opcode.BINARY and 0 < len(payload) < 126
    assert read_short(data) == (payload if plain else None)
    if plain:
        assert read_short(data + b"\x82") is None
        assert read_short(data[:-1]) is None
        assert read_short(data[:2] + bytes(4) + payload) == payload
