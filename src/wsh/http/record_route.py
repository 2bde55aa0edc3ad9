"""Routes about what a session looked like: a picture of it now, and its recording."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from wsh.http.rooms import ApiCall
from wsh.http.route import Answer, Query, Route
from wsh.visual.export import MEDIA_TYPES, Format, compose_lines, draw_still, export
from wsh.visual.still import Theme

GROUP = "recordings"


class PictureQuery(Query):
    theme: Theme = "dark"


class RecordingQuery(Query):
    format: Format = "asciicast-v2"
    at_s: Annotated[float, Field(ge=0, description="Seconds since the start, for svg and png.")] | None = None
    theme: Theme = "dark"


async def _screenshot(call: ApiCall, format: Literal["svg", "png"]) -> Answer:
    session = call.rooms.session(call.session_name)
    # With panels and overlays, as everybody sees it who looks.
    stage = call.rooms.stages.of(session)
    lines = compose_lines(session.terminal, stage)
    body = await asyncio.to_thread(draw_still, lines, stage.cols, format, session.name, call.query.theme)
    return Answer(body, media_type=MEDIA_TYPES[format])


async def get_svg(call: ApiCall) -> Answer:
    return await _screenshot(call, "svg")


async def get_png(call: ApiCall) -> Answer:
    return await _screenshot(call, "png")


async def get_recording(call: ApiCall) -> Answer:
    session = call.rooms.session(call.session_name)
    asked: RecordingQuery = call.query
    body = await asyncio.to_thread(
        export,
        session.folder.path,
        *session.first_size,
        asked.format,
        title=session.title or session.name,
        command=session.command,
        at_s=asked.at_s,
        theme=asked.theme,
    )
    return Answer(body, media_type=MEDIA_TYPES[asked.format])


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/sessions/{name}/screenshot.svg",
        get_svg,
        "Its screen as a picture.",
        GROUP,
        query=PictureQuery,
        answer="A picture.",
        media_type="image/svg+xml",
        errors=("session_not_found",),
    ),
    Route(
        "GET",
        "/sessions/{name}/screenshot.png",
        get_png,
        "Its screen as a picture.",
        GROUP,
        query=PictureQuery,
        answer="A picture.",
        media_type="image/png",
        errors=("session_not_found", "capability_missing"),
    ),
    Route(
        "GET",
        "/sessions/{name}/recording",
        get_recording,
        "What it printed, from the journal, in a file format.",
        GROUP,
        query=RecordingQuery,
        answer="A file.",
        media_type=", ".join(dict.fromkeys(kind.partition(";")[0] for kind in MEDIA_TYPES.values())),
        errors=("session_not_found", "capability_missing"),
    ),
)
