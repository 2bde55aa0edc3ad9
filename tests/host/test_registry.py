"""Hosts of which several names lead to one server, and the sessions that a host told last."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.support.host.carrier import StillCarrier
from wsh.host.carrier import HostState
from wsh.host.registry import HostRegistry
from wsh.operation.forward import _remember


def _make(*states: HostState) -> HostRegistry:
    registry = HostRegistry()
    for state in states:
        registry.add(StillCarrier(state))
    return registry


def test_of_two_names_of_one_server_the_one_in_reach_has_its_sessions() -> None:
    registry = _make(
        HostState("lan", "ssh", "gpu1.lab", online=False, server_id="s1"),
        HostState("other", "ssh", "gpu2", online=True, server_id="s2"),
        HostState("vpn", "ssh", "gpu1", online=True, server_id="s1"),
        HostState("web", "ssh", "gpu1.example", online=True, server_id="s1"),
    )
    same = {state.name: state.same_as for state in registry.list_hosts()}
    assert same == {"lan": "vpn", "other": None, "vpn": None, "web": "vpn"}
    assert list(same) == sorted(same)


def test_a_host_that_leads_back_here_is_the_same_as_here_also_when_it_is_away() -> None:
    registry = _make(HostState("me", "ssh", "localhost", online=False, server_id="s0"))
    registry.here = ("s0", "laptop")
    assert [state.same_as for state in registry.list_hosts()] == ["laptop"]


def test_sessions_of_a_host_that_is_only_slow_are_not_told_as_out_of_reach() -> None:
    registry = _make(
        HostState("away", "ssh", "away", online=False, since=7.0),
        HostState("slow", "ssh", "slow", online=True, since=7.0),
    )
    for name in ("away", "slow"):
        registry.last_sessions[name] = [{"name": f"{name}/job", "tags": []}]
    found = dict(_remember(cast(Any, SimpleNamespace(hosts=registry)), [], None))
    since = {name: cast(Any, sessions)[0]["unreachable_since"] for name, sessions in found.items()}
    assert since == {"away": 7.0, "slow": None}
