"""What a session looked like: a picture of it now, and its recording."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from wsh.operation.context import OnSession
from wsh.operation.operation import File, operation
from wsh.visual.export.format import MEDIA_TYPES, Format, compose_lines, draw_still, export_aside
from wsh.visual.export.screenshot import Theme
from wsh.wire.model.base import Model


class PictureParams(Model):
    theme: Theme = "dark"


class RecordingParams(Model):
    format: Format = "asciicast-v2"
    at_s: Annotated[float, Field(ge=0, description="Seconds since the start, for svg and png.")] | None = None
    from_s: (
        Annotated[
            float,
            Field(
                ge=0,
                description="Seconds since the start at which it begins, with the screen of that moment; not for svg and png.",
            ),
        ]
        | None
    ) = None
    theme: Theme = "dark"


async def _draw(on: OnSession, format: Literal["svg", "png"], theme: Theme) -> File:
    # With panels and overlays, as everybody sees it who looks.
    stage = on.stage
    lines = compose_lines(on.session.terminal, stage)
    body = await asyncio.to_thread(draw_still, lines, stage.cols, format, on.session.name, theme)
    return File(body, MEDIA_TYPES[format])


@operation(manner="reads", errors=("session_not_found",))
async def get_screenshot_svg(on: OnSession, params: PictureParams) -> Annotated[File, "A picture."]:
    """The screen as a picture."""
    return await _draw(on, "svg", params.theme)


@operation(manner="reads", errors=("session_not_found", "capability_missing"))
async def get_screenshot_png(on: OnSession, params: PictureParams) -> Annotated[File, "A picture."]:
    """The screen as a picture."""
    return await _draw(on, "png", params.theme)


@operation(manner="reads", errors=("session_not_found", "capability_missing"))
async def get_recording(on: OnSession, params: RecordingParams) -> Annotated[File, "A file."]:
    """What it printed, from the journal, in a file format."""
    body = await export_aside(on.session, params.format, params.at_s, params.theme, params.from_s)
    return File(body, MEDIA_TYPES[params.format])
