"""A forwarded call is made once, whatever happens to the connection that brought it."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.waiting import until
from wsh.host.address import parse_address
from wsh.host.carrier import ForwardedAnswer, ForwardedCall, ForwardedCaller, ProgressListener
from wsh.host.receive import Receiver
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidHostName, SessionNotFound

CALLER = ForwardedCaller("owner", "owner", "laptop", "ws:1")
CALL = ForwardedCall("call-0001", "run_command", {"input": "make"}, "train", CALLER, 5.0)


def test_the_first_slash_of_an_address_ends_the_host() -> None:
    assert parse_address("train") == (None, "train")
    assert parse_address("gpu1/train") == ("gpu1", "train")
    assert parse_address("gpu1/") == ("gpu1", "")
    assert str(parse_address("gpu1/a/b")) == "gpu1/a/b"
    for bad in ("/train", "../train", "gpu 1/train", "-x/train"):
        with pytest.raises(InvalidHostName):
            parse_address(bad)


def test_calls_and_answers_survive_json() -> None:
    assert ForwardedCall.from_wire(CALL.to_wire()) == CALL
    file = ForwardedAnswer(body=b"\x00\xff", media_type="image/png")
    assert ForwardedAnswer.from_wire(file.to_wire()) == file
    failed = ForwardedAnswer.from_wire(ForwardedAnswer.of_error(SessionNotFound("train")).to_wire())
    with pytest.raises(SessionNotFound) as raised:
        failed.unwrap()
    assert raised.value.facts == {"session": "train"}


def test_a_forwarded_caller_gets_the_lesser_of_two_roles() -> None:
    owner, agent = Caller("owner", "owner", "unix"), Caller("agent", "inside", "unix")
    asked = ForwardedCaller("agent", "claude", "laptop", "mcp:1")
    assert asked.to_caller(owner).role == "agent"
    assert asked.to_caller(owner).name == "claude@laptop"
    assert CALLER.to_caller(agent).role == "agent"
    assert CALLER.to_caller(owner).role == "owner"


async def test_a_call_goes_on_through_a_cut_and_is_made_once() -> None:
    made: list[str] = []
    release = asyncio.Event()

    async def make(call: ForwardedCall, on_progress: ProgressListener) -> ForwardedAnswer:
        made.append(call.id)
        await release.wait()
        return ForwardedAnswer(result={"exit_code": 0})

    receiver = Receiver(make)
    first = asyncio.ensure_future(receiver.answer(CALL))
    await until(lambda: made)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    again = asyncio.ensure_future(receiver.answer(CALL))
    release.set()
    assert (await again).unwrap() == {"exit_code": 0}
    assert (await receiver.answer(CALL)).unwrap() == {"exit_code": 0}
    assert made == ["call-0001"]
    receiver.cancel(CALL.id)
    assert CALL.id not in receiver
    await receiver.aclose()


async def test_a_call_that_is_taken_back_ends() -> None:
    ended = asyncio.Event()

    async def make(call: ForwardedCall, on_progress: ProgressListener) -> ForwardedAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    receiver = Receiver(make)
    waiting = asyncio.ensure_future(receiver.answer(CALL))
    await until(lambda: CALL.id in receiver)
    await asyncio.sleep(0)
    receiver.cancel(CALL.id)
    await asyncio.gather(waiting, return_exceptions=True)
    assert ended.is_set()
    await receiver.aclose()
