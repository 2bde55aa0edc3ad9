"""Listeners: their order, their end, and what many of them cost."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from wsh.session.event import Listeners


def test_listeners_hear_in_their_order_until_they_are_removed() -> None:
    listeners: Listeners[str] = Listeners()
    heard: list[str] = []
    one = listeners.add(lambda event: heard.append(f"one {event}"))
    listeners.add(lambda event: heard.append(f"two {event}"))
    listeners.tell("a")
    one()
    one()
    listeners.tell("b")
    assert heard == ["one a", "two a", "two b"]


def test_the_same_callback_may_listen_twice_and_each_end_is_its_own() -> None:
    listeners: Listeners[str] = Listeners()
    heard: list[str] = []
    first, _ = listeners.add(heard.append), listeners.add(heard.append)
    first()
    listeners.tell("a")
    assert heard == ["a"]


def test_what_changes_while_an_event_is_told_counts_from_the_next_one_on() -> None:
    listeners: Listeners[str] = Listeners()
    heard: list[str] = []
    ends: list[Callable[[], None]] = []

    def change(event: str) -> None:
        listeners.add(lambda event: heard.append(f"late {event}"))
        ends[0]()

    listeners.add(change)
    ends.append(listeners.add(lambda event: heard.append(f"last {event}")))
    listeners.tell("a")
    assert heard == ["last a"]
    listeners.tell("b")
    assert heard == ["last a", "late b"]


def test_a_listener_that_fails_leaves_the_others_alone() -> None:
    listeners: Listeners[str] = Listeners()
    heard: list[str] = []

    def fail(event: str) -> None:
        raise ValueError(event)

    listeners.add(fail)
    listeners.add(heard.append)
    listeners.tell("a")
    assert heard == ["a"]


def test_coming_and_going_of_many_listeners_grows_with_their_number() -> None:
    def take(count: int) -> float:
        listeners: Listeners[str] = Listeners()
        began = time.thread_time()
        ends = [listeners.add(lambda event: None) for _ in range(count)]
        for end in ends:
            end()
        return time.thread_time() - began

    gc.disable()  # the collector has a growth of its own
    try:
        few, many = zip(*((take(1_000), take(16_000)) for _ in range(7)), strict=True)
    finally:
        gc.enable()
    assert min(many) < 80 * min(few), "sixteen times as long, not two hundred and fifty"
