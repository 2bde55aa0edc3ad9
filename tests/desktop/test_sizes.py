"""The window small and at twice the scale: everything that may be pressed stands on the screen, and the ring follows J and K."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.support.desktop.window import Asking, Desk, desk, execute, virtual_screen
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places, find_places

PRESSES = ("runOnce", "runSession", "runAlways", "edit", "decline", "declineWhy")


@dataclass(frozen=True)
class Sized:
    window: Desk
    places: Places
    width: int
    """As the window counts it, at its scale."""
    ask_size: Callable[[], None]


@pytest.fixture(scope="module", params=[(620, 460, ""), (1240, 780, "2")], ids=["small", "scale 2"])
def sized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sized]:
    width, height, scale = request.param
    root = tmp_path_factory.mktemp("sized")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            patch.setenv(variable, str(root / name))
        places = find_places()
        environ = {"QT_SCALE_FACTOR": scale} if scale else {}
        with virtual_screen() as display, desk(places, display, environ=environ) as opened:

            def ask_size() -> None:
                """Again where it has another one: the window may give itself its own after ours."""
                found = opened._tool("search", "--onlyvisible", "--name", "interactive-terminal").split()[-1]
                if f"{width}x{height}" not in opened._tool("getwindowgeometry", found):
                    opened._tool("windowmove", found, "0", "0")
                    opened._tool("windowsize", found, str(width), str(height))

            ask_size()
            yield Sized(opened, places, width // int(scale or 1), ask_size)


@pytest.fixture(scope="module")
def server(sized: Sized) -> Iterator[RunningServer]:
    with running_server(sized.places, check_left=False) as running:
        yield running


def test_every_button_stands_on_the_screen_and_keys_answer_the_card_with_the_ring(
    sized: Sized, server: RunningServer
) -> None:
    window, width = sized.window, sized.width
    first = Asking(server, execute("true", "first"))
    window.wait_for_pending(1)
    second = Asking(server, execute("true", "second"))
    window.wait_for_pending(2)

    def boxes() -> dict[str, tuple[int, int, int, int]]:
        return {name: window.box(name) for name in PRESSES}

    def are_inside() -> bool:
        sized.ask_size()
        return all(left >= 0 and left + wide <= width for left, _, wide, _ in boxes().values())

    wait_until(are_inside, f"every button within {width} pixels, when the window has its size", seen=boxes)
    window.press("j", "ctrl+BackSpace")
    assert second.answer()["error"]["code"] == "PM_TERM_DECLINED"
    window.wait_for_pending(1)
    window.press("ctrl+BackSpace")
    assert first.answer()["error"]["code"] == "PM_TERM_DECLINED"
    window.wait_for_pending(0)
    wait_until(lambda: window.shows("recent_declined"), "what became of them")


def test_what_is_longer_than_the_window_must_be_seen_before_it_can_be_run(sized: Sized, server: RunningServer) -> None:
    window = sized.window
    asking = Asking(server, execute("true", *(f"argument-{number}" for number in range(400))))
    window.wait_for_pending(1)
    wait_until(lambda: window.shows("scrollFirst"), "the word that all must be seen")
    window.press("ctrl+Return", unseen=True)
    assert window.shows("scrollFirst")

    def scrolled() -> bool:
        window.press("space")
        return not window.shows("scrollFirst")

    wait_until(scrolled, "the end of the evidence")
    window.press("ctrl+Return")
    assert asking.answer()["result"]["exit_code"] == 0
