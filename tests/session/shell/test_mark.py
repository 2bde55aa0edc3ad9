"""The scanner: every split of the stream gives the same marks, and no program can print one by accident."""

from __future__ import annotations

import random

from wsh.session.shell.mark import Mark, MarkScanner, read_fields

NONCE = "123456789.987654321"


def mark(kind: str, number: int, *rest: str, status: int | None = None) -> bytes:
    head = f"\x1b]133;{kind}" + ("" if status is None else f";{status}")
    return ";".join([head, f"wsh={NONCE}", f"n={number}", *rest]).encode() + b"\x07"


def scan_in_pieces(data: bytes, cuts: list[int], at: int = 0) -> list[Mark]:
    scanner = MarkScanner(NONCE)
    found: list[Mark] = []
    for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True):
        found += scanner.scan(at + first, data[first:last])
    return found


STREAM = (
    b"welcome\r\n"
    + mark("A", 0, "d='/home/me'")
    + b"$ \x1b]133;B;wsh\x07ls\r\n"
    + mark("C", 1, "h='   12  echo '\\''a;b'\\'''", "t=17.5")
    + b"some \x1b[31moutput\x1b[0m\r\n\x1b]133;D;0\x07\x1b]133;D;7;wsh=1.2;n=9\x07"
    + mark("D", 2, "c=1", "p=0|3", status=3)
    + mark("A", 3)
    + b"\x1b]133;B;wsh\x07"
)


def test_every_split_of_the_stream_gives_the_same_marks() -> None:
    whole = scan_in_pieces(STREAM, [])
    assert [m.kind for m in whole] == ["A", "B", "C", "D", "A", "B"]
    for cut in range(len(STREAM) + 1):
        assert scan_in_pieces(STREAM, [cut]) == whole
    dice = random.Random(5)
    for _ in range(200):
        assert scan_in_pieces(STREAM, sorted(dice.choices(range(len(STREAM)), k=12))) == whole
    assert scan_in_pieces(STREAM, list(range(1, len(STREAM)))) == whole


def test_offsets_are_absolute_and_enclose_the_output() -> None:
    base = 10**12
    found = scan_in_pieces(STREAM, [40], at=base)
    began, ended = found[2], found[3]
    output = STREAM[began.end - base : ended.start - base]
    assert output.startswith(b"some ") and output.endswith(b"n=9\x07")
    assert STREAM[began.start - base :].startswith(b"\x1b]133;C;")
    assert ended.status == 3
    assert ended.fields["p"] == "0|3"


def test_marks_without_the_nonce_or_with_an_old_number_are_nothing() -> None:
    scanner = MarkScanner(NONCE)
    scanner.scan(0, mark("A", 5))
    assert scanner.scan(100, b"\x1b]133;D;0\x07\x1b]133;C\x07" + mark("D", 5, status=0) + mark("D", 4, status=0)) == []
    assert scanner.scan(900, b"\x1b]133;Z;wsh=" + NONCE.encode() + b";n=9\x07") == []
    assert [m.kind for m in scanner.scan(1000, mark("C", 6))] == ["C"]


def test_the_end_of_a_prompt_is_believed_only_after_its_beginning() -> None:
    scanner = MarkScanner(NONCE)
    assert scanner.scan(0, b"\x1b]133;B;wsh\x07") == []
    assert [m.kind for m in scanner.scan(50, mark("A", 1) + b"\x1b]133;B;wsh\x07\x1b]133;B;wsh\x07")] == ["A", "B", "R"]
    assert [m.kind for m in scanner.scan(300, mark("C", 2) + b"\x1b]133;B;wsh\x07")] == ["C"]


def test_a_request_for_more_is_believed_only_while_a_line_is_read() -> None:
    more = b"\x1b]133;P;k=s;wsh\x07"
    scanner = MarkScanner(NONCE)
    assert scanner.scan(0, more) == []
    assert [m.kind for m in scanner.scan(50, mark("A", 1) + more + b"\x1b]133;B;wsh\x07" + more)] == ["A", "B", "P"]
    assert [m.kind for m in scanner.scan(300, more[:9])] == []
    assert [m.kind for m in scanner.scan(309, more[9:] + mark("C", 2) + more)] == ["P", "C"]


def test_a_scanner_continues_in_the_middle_of_a_mark_after_a_restart() -> None:
    cut = STREAM.index(b"echo")
    first = MarkScanner(NONCE)
    found = first.scan(0, STREAM[:cut])
    second = MarkScanner(NONCE)
    second.restore(first.state())
    assert found + second.scan(cut, STREAM[cut:]) == scan_in_pieces(STREAM, [])


def test_an_unfinished_mark_is_held_back_only_so_long() -> None:
    scanner = MarkScanner(NONCE)
    scanner.scan(0, mark("C", 1)[:-1])
    for step in range(40):
        scanner.scan(100 + step * 65536, b"x" * 65536)
    assert scanner.open_bytes == 0
    assert [m.kind for m in scanner.scan(10**9, mark("D", 2, status=0))] == ["D"]


def test_quoted_values_of_all_shells_are_read_back() -> None:
    cases = {
        rb"h='plain'": "plain",
        rb"h='it'\''s; a=b'": "it's; a=b",
        rb"h=$'two\nlines\t\033[0m \'q\' \\ \303\251'": "two\nlines\t\x1b[0m 'q' \\ é",
        rb"h=$'\x41\u00e9\cA\C-b'": "Aé\x01\x02",
        rb"h=$'\M-C\M-)'": "é",
        rb"h=a%20b%3Bc%0A": "a b;c\n",
        rb"h=''": "",
    }
    for raw, text in cases.items():
        assert read_fields(b"x=1;" + raw + b";y=2") == {"x": "1", "h": text, "y": "2"}, raw
    for junk in (b"", b"h", b"h='", b"h=$'\\", b"h=$'\\x", b";;=;", b"h=$'\\M-", b"h=\\"):
        read_fields(junk)
