"""Cancels that arrive around the very moment a call ends: each call is answered once, or not at all, as promised."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

from tests.support.mcp.door import RunningDoor
from tests.support.mcp.host import HttpHost, StdioHost, envelope
from tests.support.waiting import wait_until

WORK_MS = 40
SPREAD_MS = 10


def make_plan(count: int, seed: int) -> list[tuple[Any, str, float]]:
    """(id, way of cancelling, delay in seconds after the call): ids as numbers and as texts, delays around the end."""
    rng = random.Random(seed)
    plan = []
    for number in range(count):
        id: Any = 1000 + number if number % 2 else f"call-{number}"
        way = rng.choice(["$/cancelRequest", "notifications/cancelled"])
        plan.append((id, way, (WORK_MS + rng.uniform(-SPREAD_MS, SPREAD_MS)) / 1000))
    return plan


def cancel_params(way: str, id: Any) -> dict[str, Any]:
    if way == "notifications/cancelled":
        return {"requestId": id}
    return {"id": str(id) if isinstance(id, int) and id % 3 else id}


@pytest.mark.torture
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_cancels_around_the_end_of_a_call_over_stdio(door: RunningDoor, torture: bool, modern: bool) -> None:
    plan = make_plan(600 if torture else 120, seed=4)
    with StdioHost() as host:
        if not modern:
            host.initialize()
        at_once = 20
        for start in range(0, len(plan), at_once):
            part = plan[start : start + at_once]
            began = time.monotonic()
            for id, _, _ in part:
                params: dict[str, Any] = {"name": "slow", "arguments": {"ms": WORK_MS, "key": str(id)}}
                message = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
                host.send(message | {"params": envelope(params) if modern else params})
            for id, way, delay in sorted(part, key=lambda entry: entry[2]):
                time.sleep(max(0.0, began + delay - time.monotonic()))
                host.notify(way, cancel_params(way, id))
        for id, way, _ in plan:
            if way == "$/cancelRequest" and not any(message.get("id") == id for message in host.seen):
                host.seen.append(host.wait_answer(id))
        # On a busy machine the last calls may arrive only now: nothing is under way before they do either. With the answer
        # to one behind all of them, they have; with the answer to one behind their end, whatever was to come has come.
        ping = {"name": "echo", "arguments": {"text": "end"}}
        for id in ("arrived", "the-end"):
            host.start_request("tools/call", envelope(ping) if modern else ping, id=id)
            host.seen.append(host.wait_answer(id))
            wait_until(lambda: door.under_way() == 0, "the end of every call", seen=door.under_way)
        answers = Counter(str(message["id"]) for message in host.seen if "id" in message)
        judge(plan, answers, host.seen, door)


@pytest.mark.torture
def test_cancels_around_the_end_of_a_call_over_http(door: RunningDoor, torture: bool) -> None:
    plan = make_plan(600 if torture else 60, seed=5)
    seen: list[dict[str, Any]] = []
    with HttpHost(door.url) as host:
        host.initialize()
        for start in range(0, len(plan), 10):
            threads = []
            for id, way, delay in plan[start : start + 10]:
                threads.append(threading.Thread(target=call_and_cancel, args=(host, id, way, delay, seen)))
                threads[-1].start()
            for thread in threads:
                thread.join(60)
        wait_until(lambda: door.under_way() == 0)
        answers = Counter(str(message["id"]) for message in seen if "id" in message)
        judge(plan, answers, seen, door)


def call_and_cancel(host: HttpHost, id: Any, way: str, delay: float, seen: list[dict[str, Any]]) -> None:
    with HttpHost(host.url) as mine:
        mine.session, mine.version = host.session, host.version
        timer = threading.Timer(delay, mine.notify, args=(way, cancel_params(way, id)))
        timer.start()
        params = {"name": "slow", "arguments": {"ms": WORK_MS, "key": str(id)}}
        response = mine.post({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        for line in response.text.split("\n"):
            if line.startswith("data:") and line[5:].strip():
                seen.append(json.loads(line[5:]))
        timer.join(60)
        mine.session = None


def judge(plan: list[tuple[Any, str, float]], answers: Counter[str], seen: list[Any], door: RunningDoor) -> None:
    results = {str(message["id"]): message["result"] for message in seen if "result" in message}
    for id, way, _ in plan:
        count = answers[str(id)]
        if way == "$/cancelRequest":
            assert count == 1, (id, count)
            result = results[str(id)]
            if result.get("isError"):
                assert json.loads(result["content"][0]["text"])["code"] == "CANCELLED"
        else:
            assert count <= 1, (id, count)
            assert count == 0 or not results[str(id)].get("isError")
    log = door.log
    assert sorted(log.started) == sorted(log.stopped + log.finished), "work was left running"
    # A cancel that overtakes the start of the work is one as well: then there is none.
    assert len(log.started) == len(set(log.started)) and set(log.started) <= {str(id) for id, _, _ in plan}
    for key in {str(id) for id, _, _ in plan} - set(log.started):
        assert not results.get(key) or results[key].get("isError"), "no success without work"
    for key in log.stopped:
        assert not results.get(key) or results[key].get("isError"), "stopped work is never a success"
    # On a busy machine all of them may fall on one side of the end; what counts is that each has a side.
    assert log.stopped or log.finished
