"""What stands around a viewer's picture: its status line, and the banner over keys that go elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsh.visual.picture.painter import ViewShape
from wsh.visual.viewer.size import SizePolicy
from wsh.visual.viewer.window import is_window

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage


def status_line(session: Session, stage: Stage, shape: ViewShape, viewers: int, policy: SizePolicy) -> str:
    """Name, sandbox, how many look, who has the keyboard, sizes that differ, and hints where there is room."""
    parts = [session.name]
    if session.holding is not None:
        parts.append(f"sandbox {session.holding.profile.name}")
    if viewers > 1:
        parts.append(f"{viewers} viewers")
    if not session.running:
        parts.append(f"exited {session.exit_code}")
    if session.input.taken_by:
        keys = f"{shape.prefix} t" if shape.prefix else "Ctrl+\\ Ctrl+T"
        parts.append(f"taken over by {session.input.taken_by}, {keys} hands back")
    if session.input.run_waits is not None:
        actor, command = session.input.run_waits
        parts.append(f"{actor.id} wants to run `{one_line(command, 32)}`")
    if is_window(shape, stage):
        parts.append(f"{shape.cols}×{shape.picture_rows} of {_size_in_words(session, stage, shape, policy)}")
    elif (shape.picture_rows, shape.cols) != (stage.rows, stage.cols):
        parts.append(_size_in_words(session, stage, shape, policy))
    text = " " + " · ".join(parts)
    hints = ["Ctrl+\\ twice to detach"]
    if shape.prefix:
        hints = [f"{shape.prefix} ? help", f"{shape.prefix} twice to detach"]
    for hint in hints:
        if len(text) + len(hint) + 3 <= shape.cols:
            text += f" · {hint}"
    return text


def _size_in_words(session: Session, stage: Stage, shape: ViewShape, policy: SizePolicy) -> str:
    """The session's own size, told where the viewer's differs, and what changes it."""
    size = f"{stage.cols}×{stage.rows}"
    if policy == "typed" and session.created_by.kind == "agent":
        return f"{size} (the agent's)"
    return f"{size} (until you type)" if policy == "typed" and not shape.read_only else size


def banner(session: Session, stage: Stage, shape: ViewShape) -> str:
    """Why keys do not go to the program as usual; empty if they do."""
    if session.input.run_waits is not None:
        actor, command = session.input.run_waits
        return f"{actor.id} wants to run `{one_line(command, 48)}` and waits until the line is empty"
    owner = stage.input.owner
    if owner is None:
        return ""
    kind, _, name = owner.partition(":")
    who = name if kind == name else f"{kind} {name}".rstrip()
    return f"keys captured by {who} · {shape.prefix or 'Ctrl+' + chr(92)} to take them back"


def one_line(text: str, most: int) -> str:
    """First line of `text`, without control characters, cut to `most` characters."""
    line = "".join(c for c in text.split("\n")[0].split("\r")[0] if c.isprintable())
    whole = line == text.strip() and len(line) <= most
    return line if whole else line[: most - 1].rstrip() + "…"
