from __future__ import annotations

import pytest

from wsh.session.command.output import HALF_BYTES, KEEP_BYTES, Capture


@pytest.mark.parametrize("step", [1000, 65_536, 3 * KEEP_BYTES])
async def test_a_long_output_keeps_its_head_and_its_tail_and_counts_the_rest(step: int) -> None:
    whole = b"".join(b"line %06d\r\n" % number for number in range(400_000))
    capture = Capture(7)
    for at in range(0, len(whole), step):
        capture.append(memoryview(whole)[at : at + step])
    capture.append(b"$ ")
    capture.truncate(capture.end - 2)
    assert not capture.complete and capture.held_bytes <= 2 * HALF_BYTES and capture.end == 7 + len(whole)
    text = await capture.render(24, 80, 100)
    assert text.text.startswith("line 000000\n") and text.text.endswith("line 399999")
    assert abs(text.total_lines - 400_000) <= 2 and text.omitted_lines > 399_000
