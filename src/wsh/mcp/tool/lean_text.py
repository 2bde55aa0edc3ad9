"""What the lean tools say: texts within a budget, and failures in words that name the lean tools alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wsh.mcp.budget import NumberedLine, clip, clip_around, count_tokens, fit_head, fit_rows, number_lines
from wsh.wire.tool import ToolOutcome

_HINTS = {
    "session_not_found": 'sessions lists what there is; sessions(action="open") makes one.',
    "session_exited": 'Read it with look, or go on in another: sessions(action="open").',
    "session_name_conflict": "Choose another name, or close that session first.",
    "session_taken": "A person has the keyboard: read with look, and try again when they are done.",
    "hidden_prompt": "While it is pending, send the same text again to go on waiting. Never try another way to type it.",
    "command_not_found": "Old commands are forgotten; look(scrollback=true) may still have its lines.",
    "invalid_key": 'Keys are names such as "enter", "ctrl+c", "up", separated by blanks; for text give `text`.',
    "resource_limit_reached": "Wait for calls that are under way, or make fewer at once.",
    "max_sessions_reached": 'Close sessions that are no longer needed: sessions(action="close").',
    "idle_timeout": 'Nothing was stopped. wait(until="command") waits on; type(keys="ctrl+c") interrupts.',
}
_OWN_LINE = 'It is yours: complete it with type(keys="enter"), or clear it with type(keys="ctrl+c").'
_OTHER_LINE = 'Wait until it is completed, or work in another session: sessions(action="open").'
# Words of other doors: what is said there helps nobody here.
_FOREIGN = re.compile(r"wsh_\w+|\b(?:GET|POST|PUT|DELETE) |clear_line|max_wait_ms|\bwsh [a-z]+\b|config\.toml")


def spell_failure(outcome: ToolOutcome) -> ToolOutcome:
    """A failure as a text; whatever else came stays as it is."""
    told = outcome.structured
    if not outcome.is_error or not isinstance(told, Mapping):
        return outcome
    return ToolOutcome(None, text=_spell(told), is_error=True)


def _spell(told: Mapping[str, Any]) -> str:
    lines = [f"{told.get('code', 'INTERNAL')}: {told.get('message', '')}"]
    lines += [f"- {one.get('path')}: {one.get('message')}" for one in told.get("errors", ())[1:6]]
    reason = str(told.get("reason", ""))
    if reason == "line_in_use":
        lines.append(_OWN_LINE if told.get("own") else _OTHER_LINE)
    elif reason in _HINTS:
        lines.append(_HINTS[reason])
    elif told.get("hint") and not _FOREIGN.search(str(told["hint"])):
        lines.append(str(told["hint"]))
    return "\n".join(lines)


def show_output(rows: Sequence[NumberedLine], budget: int, read: str) -> str:
    """A command's output within the budget; `read` is the call that reads more of it."""

    def explain(first: int, last: int, wrong: int) -> str:
        those = f"; {wrong} of them name an error:" if wrong else ""
        return f'[lines {first}-{last} left out: {read}, from_line={first}) or search="…"{those}]'

    return "\n".join(fit_rows(rows, budget, explain))


def show_page(rows: Sequence[NumberedLine], budget: int, *, more: bool, found: str = "") -> str:
    """Lines from one on, as many as fit, and where to go on; `more` if others follow `rows`. With `found`, each with its number."""
    room = max(16, budget - 40)
    if found:
        rows = [NumberedLine(row.number, f"{row.number}: {clip_around(row.text, found, room - 8)}") for row in rows]
    taken = fit_head(rows, room)
    lines = [row.text for row in taken]
    if taken and (more or len(taken) < len(rows)):
        lines.append(f"[go on with from_line={taken[-1].end + 1}]")
    return "\n".join(lines)


def show_screen(lines: Sequence[str], budget: int) -> str:
    """A screen without the blank rows at its end."""
    rows = number_lines(lines)
    while rows and not rows[-1].text:
        rows.pop()
    return show_rows(rows, budget)


def show_rows(rows: Sequence[NumberedLine], budget: int) -> str:
    return "\n".join(fit_rows(rows, budget, lambda first, last, _: f"[rows {first}-{last} left out]"))


def say_where(screen: Mapping[str, Any]) -> str:
    cursor = screen["cursor"]
    return f"cursor row {cursor['row'] + 1} col {cursor['col'] + 1}"


def paint(line: Any) -> str:
    """A styled line, with its colours and attributes in front of each run."""
    if isinstance(line, str):
        return line
    return "".join(_paint_span(span) for span in line)


def unpaint(line: Any) -> str:
    return line if isinstance(line, str) else "".join(str(span["text"]) for span in line)


def _paint_span(span: Mapping[str, object]) -> str:
    looks = [name for name, value in span.items() if value is True]
    looks += [f"{side}={_name_color(span[side])}" for side in ("fg", "bg") if span.get(side) is not None]
    text = str(span["text"])
    return f"<{' '.join(looks)}>{text}</>" if looks and text.strip() else text


def _name_color(color: object) -> str:
    if isinstance(color, Mapping):
        color = color.get("rgb", color.get("indexed", color))
        if isinstance(color, Mapping):
            return "#" + "".join(f"{int(color.get(part, 0)):02x}" for part in "rgb")
    return str(color)


_NAMED = re.compile(r'^(\[[^\n]*(?:left out: look\(session="|, in your new session ))(?=[\w.-]+["\],:])', re.MULTILINE)
_NAMED_FIRST = re.compile(r"^\[(?=[\w.-]+[\] :])")


def adopt_text(text: str, tool: str, host: str) -> str:
    """What a lean tool said at another machine, with its sessions by their addresses."""
    if tool == "sessions":
        return _NAMED_FIRST.sub(f"[{host}/", text)
    return _NAMED.sub(rf"\g<1>{host}/", text)


def join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


__all__ = [
    "adopt_text",
    "clip",
    "count_tokens",
    "join",
    "paint",
    "say_where",
    "show_output",
    "show_page",
    "show_rows",
    "show_screen",
    "spell_failure",
    "unpaint",
]
