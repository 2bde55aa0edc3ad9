"""Text that UTF-8 cannot carry: halves of surrogate pairs, which JSON can spell and names of files can smuggle in.

Refused where it comes in, replaced where it goes out. Pure.
"""

from __future__ import annotations

from typing import Any


def is_sound(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def mend(text: str) -> str:
    """`text` with U+FFFD for what cannot be encoded."""
    return text if is_sound(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find_unsound(value: object) -> str | None:
    """Where in JSON-like `value` such a text is: the path to it with dots, or None."""
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        path, here = stack.pop()
        if isinstance(here, str):
            if not is_sound(here):
                return path
        elif isinstance(here, dict):
            for key, inner in here.items():
                if not is_sound(str(key)):
                    return path
                stack.append((f"{path}.{key}" if path else str(key), inner))
        elif isinstance(here, list):
            stack.extend((f"{path}.{at}" if path else str(at), inner) for at, inner in enumerate(here))
    return None


def mend_all(value: Any) -> Any:
    """JSON-like `value` with every text mended."""
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, dict):
        return {mend(key) if isinstance(key, str) else key: mend_all(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mend_all(inner) for inner in value]
    return value
