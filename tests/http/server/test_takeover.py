"""A server that finds the lock taken by one that ends a moment later."""

from __future__ import annotations

import json
import subprocess

import pytest

from wsh.http.server.listen import Doors, open_doors
from wsh.http.server.takeover import take_over
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places, ensure_private


def open_now(places: Places) -> Doors:
    return open_doors(places, "127.0.0.1:0")


def test_the_doors_of_a_server_that_has_ended_meanwhile_are_opened_at_once(places: Places) -> None:
    """It had the lock when we looked, and has taken its record away with it."""
    doors = take_over(places, lambda: open_now(places))
    assert doors.port
    doors.close()


@pytest.mark.parametrize("record", ["none", "damaged", "of a dead one"])
def test_the_doors_are_tried_again_while_nobody_alive_says_what_it_is(places: Places, record: str) -> None:
    ensure_private(places.runtime)
    if record == "damaged":
        places.runtime_info.write_text("{")
    elif record == "of a dead one":
        dead = subprocess.Popen(["true"])
        dead.wait()
        places.runtime_info.write_text(json.dumps({"pid": dead.pid, "ephemeral": False}))
    held = take_lock(places.lock, wait=False)
    assert held is not None
    tries = 0

    def open_again() -> Doors:
        nonlocal tries
        tries += 1
        if tries == 2:
            drop_lock(places.lock, held)
        return open_now(places)

    doors = take_over(places, open_again)
    assert tries == 2
    doors.close()
