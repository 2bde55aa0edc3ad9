"""JSON in and out for short commands: the interpreter's own scanner and encoder without the package around them.

`json` imports `re` and `enum`, which take a command longer than all the rest of it. What is read and written is the same; an interpreter
that has no such scanner gets the package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\n\r"


class _Reading:
    """What the scanner asks about how to read; these are the ways of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  # only the scanner of some interpreters has a use for it

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf"))


def read_json(data: str | bytes | bytearray) -> Any:
    """What the text says. Raises ValueError where it is not JSON."""
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
    try:
        from _json import make_scanner
    except ImportError:
        from json import loads

        return loads(text)
    text = text.strip(_BLANK)
    try:
        value, end = make_scanner(_Reading)(text, 0)  # type: ignore[arg-type]  # typeshed names the scanner itself
    except StopIteration:
        raise ValueError("this is not JSON") from None
    if end != len(text):
        raise ValueError(f"there is more than one JSON value, from character {end} on")
    return value


def write_json(value: object, *, ascii_only: bool = True) -> str:
    """The text that `json.dumps` makes of it. Raises TypeError for what JSON has no word for."""
    try:
        from _json import encode_basestring, encode_basestring_ascii, make_encoder
    except ImportError:
        from json import dumps

        return dumps(value, ensure_ascii=ascii_only)
    encode = encode_basestring_ascii if ascii_only else encode_basestring
    made = make_encoder({}, _refuse, encode, None, ": ", ", ", False, False, True)
    return "".join(made(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"JSON has no word for {type(value).__name__}")
