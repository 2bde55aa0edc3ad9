from __future__ import annotations

import pytest

from wsh.contract.identity import Identity, IdentityRegistry
from wsh.contract.output.log import OutputLog
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.model import ContractRequest, RequestTarget
from wsh.wire.caller import Caller

READ = ContractRequest(action="read_output", target=RequestTarget(session_id="s"))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def add(registry: IdentityRegistry, name: str, size: int = 0, ended: float | None = None) -> Identity:
    identity = Identity(name, None, "headless", "c", None, None, "x", ("x",), "/", "t", 0.0, OutputLog(10_000))
    identity.log.append("stdout", b"x" * size)
    registry.add(identity)
    if ended is not None:
        identity.end(0)
        identity.ended = ended
    return identity


def known(registry: IdentityRegistry) -> list[str]:
    registry.list_active(Caller("agent", "c", "token", connection="c"), ContractRequest(action="list"))
    return [identity.session_id for identity in registry.list_all()]


def test_what_ended_is_kept_until_its_retention() -> None:
    clock = Clock()
    registry = IdentityRegistry(retention_s=10, clock=clock)
    add(registry, "old", ended=clock.now - 11)
    add(registry, "new", ended=clock.now - 9)
    add(registry, "running")
    assert known(registry) == ["new", "running"]
    clock.now += 2
    assert known(registry) == ["running"]


def test_the_oldest_make_room_when_there_are_too_many_or_they_print_too_much() -> None:
    clock = Clock()
    registry = IdentityRegistry(max_ended=3, max_kept_bytes=1000, clock=clock)
    for number in range(5):
        add(registry, f"few-{number}", 10, clock.now + number)
    assert known(registry) == ["few-2", "few-3", "few-4"]
    add(registry, "big", 990, clock.now + 9)
    assert known(registry) == ["few-4", "big"]


def test_more_than_may_run_at_once_is_refused() -> None:
    registry = IdentityRegistry(max_active=2)
    add(registry, "a")
    add(registry, "b")
    with pytest.raises(ContractFault) as caught:
        add(registry, "c")
    assert caught.value.details["reason"] == "too_many_active"


def test_session_and_terminal_must_name_the_same_thing() -> None:
    registry = IdentityRegistry()
    identity = add(registry, "s")
    identity.terminal_id = "t"
    caller = Caller("agent", "c", "token", connection="c")
    assert registry.get(RequestTarget(session_id="s", terminal_id="t"), caller, READ) is identity
    assert registry.get(RequestTarget(terminal_id="t"), caller, READ) is identity
    for target in (
        RequestTarget(session_id="s", terminal_id="u"),
        RequestTarget(session_id="x"),
        RequestTarget(terminal_id="s"),
    ):
        with pytest.raises(ContractFault) as caught:
            registry.get(target, caller, READ)
        assert caught.value.code == "PM_TERM_NOT_FOUND"
