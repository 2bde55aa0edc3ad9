"""Recordings and pictures of sessions, of running and ended ones, in every format."""

from __future__ import annotations

import asyncio
import json
import re
import struct
from xml.etree import ElementTree

import pytest

from tests.support.session.running import run_with_registry
from tests.support.waiting import until
from wsh.process.ring import Ring
from wsh.session.record.playback import journal_up_to
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.visual.export import animation
from wsh.visual.export.format import FORMATS, Format, compose_lines, export, export_aside
from wsh.visual.export.screenshot import Palette, draw_svg_row
from wsh.visual.stage import Stage
from wsh.wire.model.element import OverlayCreate, PanelCreate
from wsh.wire.system.place import Places

PROGRAM = "printf '\\033[1;31mred words\\033[0m \\342\\200\\250 \\346\\227\\245\\n'; sleep 0.4; printf '\\033[2J\\033[Hlast <words>\\n'"


def film(session: Session, format: Format, at_s: float | None = None, from_s: float | None = None) -> bytes:
    where = session.folder.path, *session.first_size, format
    return export(*where, title="a title", command="x", at_s=at_s, from_s=from_s)


def check_all(session: Session) -> None:
    films = {format: film(session, format) for format in FORMATS}
    casts: dict[int, Format] = {2: "asciicast-v2", 3: "asciicast-v3"}
    for version, format in casts.items():
        header, *events = [json.loads(line) for line in films[format].decode().strip().split("\n")]
        size = (header["width"], header["height"]) if version == 2 else (header["term"]["cols"], header["term"]["rows"])
        assert header["version"] == version and size == (60, 10)
        text = "".join(data for _, code, data in events if code == "o")
        assert "red words" in text and "\u2028" in text and text.rstrip().endswith("last <words>")
        times = [at for at, _, _ in events]
        assert (times[-1] if version == 2 else sum(times)) >= 0.3
    assert films["txt"].decode() == "last <words>\n"
    assert "last &lt;words&gt;" in films["html"].decode() and "<words>" not in films["html"].decode()
    drawn = "".join(ElementTree.fromstring(films["svg"].decode()).itertext())
    assert "last" in drawn and "red" not in drawn
    between = find_pause(session)
    earlier = "".join(ElementTree.fromstring(film(session, "svg", between).decode()).itertext())
    assert "red" in earlier and "last" not in earlier
    check_animation(films["svg-animated"])
    check_later(session, between)
    assert films["png"].startswith(b"\x89PNG")
    width, height = struct.unpack(">II", films["png"][16:24])
    assert width > 60 * 4 and height > 10 * 8


def find_pause(session: Session) -> float:
    """The second between the first words and the last ones, wherever a busy machine has put it."""
    _, *events = [json.loads(line) for line in film(session, "asciicast-v2").decode().strip().split("\n")]
    last = next(number for number, (_, _, data) in enumerate(events) if "\x1b[2J" in data)
    return float(events[last - 1][0] + events[last][0]) / 2


def check_later(session: Session, between: float) -> None:
    """From the second before the last words on: the screen of that moment, then what came."""
    header, opening, *events = [
        json.loads(line) for line in film(session, "asciicast-v2", from_s=between).decode().strip().split("\n")
    ]
    assert (header["width"], header["height"]) == (60, 10)
    assert opening[:2] == [0, "o"] and "red words" in opening[2] and "last" not in opening[2]
    text = "".join(data for _, code, data in events if code == "o")
    assert "red words" not in text and text.rstrip().endswith("last <words>") and 0 < events[-1][0] < 30
    assert film(session, "txt", from_s=between).decode() == "last <words>\n"
    gone = film(session, "asciicast-v2", from_s=1000).decode()
    assert "red words" not in gone and "last <words>" in gone, "past the end: the last screen"
    assert film(session, "svg", from_s=between) == film(session, "svg")


SVG = "{http://www.w3.org/2000/svg}"


def check_animation(film: bytes) -> None:
    """The rows of every frame, as the references of its strip say: the first words, then the last ones."""
    picture = ElementTree.fromstring(film.decode())
    rows = {f"#{row.get('id')}": "".join(row.itertext()) for row in picture.iter(f"{SVG}g") if row.get("id") != "strip"}
    strip = next(group for group in picture.iter(f"{SVG}g") if group.get("id") == "strip")
    frames = ["".join(rows[str(use.get("href"))] for use in frame.iter(f"{SVG}use")) for frame in strip]
    assert len(frames) == len(set(frames))
    seen = "".join(frames)
    assert seen.index("red words") < seen.index("last <words>") and frames[-1] == "last <words>"
    style = "".join(next(picture.iter(f"{SVG}style")).itertext())
    assert style.count("translateX(") == len(frames) + 2 and "prefers-reduced-motion" in style


def test_an_animation_shortens_pauses_and_leaves_out_what_xml_cannot_hold(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="printf 'one\\357\\277\\276'; sleep 0.2; printf two", rows=3, cols=20)
        )
        # The journal is written beside the session's end.
        await until(lambda: b'"x", "0"' in film(session, "asciicast-v3"), "the end in the journal")
        for longest, shortest_s in ((0.05, 0.0), (2.0, 0.15)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(animation, "LONGEST_PAUSE_S", longest)
                picture = ElementTree.fromstring(film(session, "svg-animated").decode())
            assert "one\ufffdtwo" in "".join(picture.itertext()).replace("\n", "")
            style = "".join(next(picture.iter(f"{SVG}style")).itertext())
            found = re.search(r"animation:play ([\d.]+)s", style)
            assert found is not None
            lasts_s = float(found[1]) - animation.LAST_FRAME_S
            assert lasts_s >= shortest_s and (longest > 1 or lasts_s <= 0.11)  # two pauses

    run_with_registry(places, work)


def test_every_format_tells_the_same_of_a_running_and_of_an_ended_session(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        running = await registry.open_session(SessionSpec(command=f"{PROGRAM}; cat", rows=10, cols=60))
        ended = await registry.open_session(SessionSpec(command=PROGRAM, rows=10, cols=60))
        await running.wait(WaitSpec(text="words>", generation=0))
        await journal_up_to(running, running.generation)
        await until(lambda: b'"x", "0"' in film(ended, "asciicast-v3"), "the end in the journal")
        check_all(running)
        check_all(ended)
        last = json.loads(film(ended, "asciicast-v3").decode().strip().split("\n")[-1])
        assert last[1:] == ["x", "0"]

    run_with_registry(places, work)


def test_a_recording_has_all_that_the_screen_showed_when_it_was_asked_for(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper writes the journal a little later than it reads the terminal."""

    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="printf words; cat"))
        await session.wait(WaitSpec(text="words", generation=0))
        is_written = False
        whole = session.generation
        monkeypatch.setattr(Ring, "journaled", property(lambda ring: whole if is_written else 0))
        asked = asyncio.ensure_future(export_aside(session, "asciicast-v2", None, "dark"))
        await asyncio.sleep(0.05)
        assert not asked.done(), "it did not wait for the journal"
        await until(lambda: b"words" in film(session, "asciicast-v2"), "the journal")
        is_written = True
        assert b"words" in await asked

    run_with_registry(places, work)


@pytest.mark.parametrize("canvas", [False, True])
def test_a_picture_has_panels_and_overlays_in_it(places: Places, canvas: bool) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="printf program; cat", rows=6, cols=30))
        await session.wait(WaitSpec(text="program", generation=0))
        stage = Stage(session)
        if canvas:
            stage.enter_alternate()
        stage.panels.create(PanelCreate.model_validate({"position": "top", "height": 1, "spans": [{"text": "panel"}]}))
        body = {"x": 2, "y": 1, "width": 4, "height": 1, "spans": [{"text": "over"}]}
        stage.overlays.create(OverlayCreate.model_validate(body))
        lines = ["".join(span["text"] for span in line) for line in compose_lines(session.terminal, stage)]
        assert lines[:2] == ["panel", "  over" if canvas else "proverm"]
        assert len(lines) == 6

    run_with_registry(places, work)


def test_blanks_of_a_row_are_kept_in_a_picture() -> None:
    row = draw_svg_row([{"text": " two  blanks"}, {"text": "none", "bold": True}], 0, Palette("dark"))
    texts = [ElementTree.fromstring(element) for element in row]
    keeps = [text.get("{http://www.w3.org/XML/1998/namespace}space") for text in texts]
    assert keeps == ["preserve", None] and texts[0].text == " two  blanks"
