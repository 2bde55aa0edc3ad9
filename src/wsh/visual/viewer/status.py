"""What stands around a viewer's picture: its status line, and the banner over keys that go elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wsh.visual.picture.painter import ViewShape
from wsh.visual.viewer.size import SizePolicy
from wsh.visual.viewer.viewer import PresentViewers
from wsh.visual.viewer.window import is_window

if TYPE_CHECKING:
    from wsh.session.event import Actor
    from wsh.session.session import Session
    from wsh.visual.stage import Stage

_TYPED_S = 8.0
"""How long it is told who typed."""


def status_line(session: Session, stage: Stage, shape: ViewShape, present: PresentViewers, policy: SizePolicy) -> str:
    """Name, whether one may only look, sandbox, how many look, who has the keyboard, who typed, sizes that differ, and hints where there is room."""
    parts = [session.name]
    if shape.read_only:
        parts.append("read only")
    if session.holding is not None:
        parts.append(f"sandbox {session.holding.profile.name}")
    if len(present) > 1:
        parts.append(f"{len(present)} viewers")
    if not session.running:
        parts.append("exited" if session.exit_code is None else f"exited {session.exit_code}")
    if session.input.taken_by:
        keys = f"{shape.prefix} t" if shape.prefix else "Ctrl+\\ Ctrl+T"
        who = "another terminal" if session.input.taken_by in present else session.input.taken_by
        told = f"you, {keys} hands back" if shape.has_taken else f"{who}, {keys} takes over"
        parts.append(f"taken over by {told}")
    if session.input.run_waits is not None:
        actor, command = session.input.run_waits
        parts.append(f"{actor.id} wants to run `{one_line(command, 32)}`")
    elif typed_ago(session, present) < _TYPED_S and session.input.last is not None:
        parts.append(f"typed by {_name(session.input.last[0])}")
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


def typed_ago(session: Session, present: PresentViewers) -> float:
    """Seconds since somebody who is no viewer typed; infinite if a viewer was the last, also one that has left."""
    last = session.input.last
    return float("inf") if last is None or present.has_seen(last[0].id) else time.monotonic() - last[1]


def typed_fades_in(session: Session, present: PresentViewers) -> float:
    """In how many seconds the status line stops telling who typed; 0 if it does not."""
    return max(0.0, _TYPED_S - typed_ago(session, present))


def _name(actor: Actor) -> str:
    return f"agent {one_line(actor.id.removeprefix('agent:'), 32)}" if actor.kind == "agent" else "a command of yours"


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
