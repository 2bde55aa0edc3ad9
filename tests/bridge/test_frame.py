from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsh.bridge.fault import FrameTooLarge, Malformed
from wsh.bridge.frame import FRAME_TYPES, Heartbeat, OutputFrame, carry, decode, encode

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_is_read_and_written_back_unchanged(path: Path) -> None:
    document = json.loads(path.read_text())
    frame = decode(json.dumps(document).encode())
    again = json.loads(encode(frame))
    assert {key: again[key] for key in document} == document
    assert decode(encode(frame)) == frame


def test_every_kind_of_frame_has_a_fixture() -> None:
    kinds = {str(kind.model_fields["type"].default) for kind in FRAME_TYPES}
    assert kinds == {json.loads(path.read_text())["type"] for path in FIXTURES}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"", ""),
        (b"not json", ""),
        (b"[]", ""),
        (b"7", ""),
        (b"{}", ""),
        (b'{"type":"greeting"}', ""),
        (b'{"type":"heartbeat"}', "heartbeat.seq"),
        (b'{"type":"heartbeat","seq":"1"}', "heartbeat.seq"),
        (b'{"type":"heartbeat","seq":1,"extra":2}', "heartbeat.extra"),
        (b'{"type":"heartbeat","seq":1', ""),
        (b'{"type":"heartbeat","seq":1}{"type":"heartbeat","seq":2}', ""),
        (b"\xff\xfe", ""),
        (
            b'{"type":"output","terminal_id":"t","trace_id":"x","offset":0,"data":"!","encoding":"base64"}',
            "output.data",
        ),
    ],
)
def test_a_line_that_is_no_frame_is_malformed_and_says_where(line: bytes, field: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode(line)
    assert caught.value.details["field"].endswith(field)


def test_a_malformed_frame_keeps_the_id_it_named_so_that_its_sender_can_be_answered() -> None:
    with pytest.raises(Malformed) as caught:
        decode(b'{"type":"request","id":"r7"}')
    assert caught.value.details["reply_to"] == "r7"


def test_a_frame_over_the_limit_is_not_sent() -> None:
    with pytest.raises(FrameTooLarge):
        encode(Heartbeat(seq=1), max_bytes=10)


@pytest.mark.parametrize("data", [b"plain", "schön €".encode(), b"\xff\x00broken", b"", bytes(range(256))])
def test_output_of_any_bytes_survives(data: bytes) -> None:
    text, encoding = carry(data)
    frame = OutputFrame(terminal_id="t", trace_id="x", offset=0, data=text, encoding=encoding)
    back = decode(encode(frame))
    assert isinstance(back, OutputFrame) and back.payload() == data
