"""What is typed into the page arrives once, also when the server dies with keys on their way."""

from __future__ import annotations

import signal
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.serving import running_server, start_server
from tests.support.waiting import wait_until
from tests.support.web.browser import Watched, own_page
from tests.web.test_page import link, make, until
from wsh.wire.system.place import Places


def take_down(path: Path) -> str:
    """A program that writes every byte that it is given to a file, at once."""
    return f"sh -c 'stty raw -echo; printf ready; exec cat > {path}'"


def open_at(watched: Watched, url: str) -> None:
    watched.page.goto(url)
    until(watched, lambda text: "ready" in text, "the program")


def test_keys_on_their_way_to_a_server_that_dies_arrive_at_the_next_one(
    places: Places, browser: Browser, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    server = start_server(places)
    make(server, "sink", take_down(taken))
    with own_page(browser) as watched:
        page = watched.page
        open_at(watched, link(server))
        page.keyboard.type("first ")
        wait_until(lambda: taken.read_text() == "first ", "the first word", seen=taken.read_text)
        server.process.send_signal(signal.SIGSTOP)  # the connection takes keys, and nobody reads them
        page.keyboard.type("second ")
        server.process.kill()
        server.process.wait()
        expect(page.locator(".notice.banner")).to_be_visible()
        page.keyboard.type("third ")
        with running_server(places, bind=f"127.0.0.1:{server.port}"):
            wait_until(lambda: taken.read_text() == "first second third ", "all of them, once", seen=taken.read_text)
            page.keyboard.type("fourth")
            wait_until(lambda: taken.read_text().endswith(" third fourth"), "what follows", seen=taken.read_text)


def test_nothing_is_typed_twice_when_servers_die_while_somebody_types(
    places: Places, browser: Browser, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    server = start_server(places)
    port = server.port
    make(server, "sink", take_down(taken))
    with own_page(browser) as watched:
        page = watched.page
        open_at(watched, link(server))
        words = [f"{number:03d};" for number in range(60)]
        for number, word in enumerate(words):
            page.keyboard.type(word)
            if number == 30:
                server.process.kill()
                server.process.wait()
                server = start_server(places, bind=f"127.0.0.1:{port}")
        server.process.kill()
        server.process.wait()
        whole, told = "".join(words), page.locator(".toast.bad", has_text="may be missing")
        with running_server(places, bind=f"127.0.0.1:{port}"):
            wait_until(lambda: taken.read_text() == whole or told.count() > 0, "every word, once", seen=taken.read_text)
