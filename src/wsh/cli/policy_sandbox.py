"""The sandbox that `wsh policy init` offers for agents: what stands in the policy now, and what this machine can hold."""

from __future__ import annotations

from wsh.cli.declare import Failure
from wsh.policy import Policy
from wsh.sandbox.hold import Sandboxes
from wsh.sandbox.profile import OFF, WORKSPACE
from wsh.wire.error import SandboxUnavailable
from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import Places


def offer_sandbox(places: Places, policy: Policy, wanted: str | None) -> JsonObject:
    """`agents` as it stands, the profile on offer, and either what holds it or what is missing. Raises Failure for an unknown one."""
    now = policy.sandbox
    name = WORKSPACE.name if wanted is None else wanted
    told: JsonObject = {"agents": OFF if now.agents is None else now.agents.name, "offered": name}
    try:
        profile = now.find(name)
    except KeyError:
        raise Failure(f"there is no sandbox profile {name!r}; there are {', '.join([OFF, *now.profiles])}") from None
    if profile is None:
        return told | {"backend": None, "missing": None, "not_held": []}
    try:
        backend, short = Sandboxes(places).choose(profile, now)
    except SandboxUnavailable as problem:
        return told | {"backend": None, "missing": problem.message, "not_held": []}
    return told | {"backend": backend, "missing": None, "not_held": sorted(claim.value for claim in short)}


def say_sandbox(offer: JsonObject) -> list[str]:
    """The offer as a person reads it."""
    agents, offered = offer["agents"], offer["offered"]
    if agents == offered:
        return [f"Agents get the sandbox {agents}."]
    if offered == OFF:
        return [f"Agents get the sandbox {agents}; with --sandbox off they get none."]
    now = "no sandbox" if agents == OFF else f"the sandbox {agents}"
    if offer["missing"] is not None:
        return [
            f"Agents get {now}. The sandbox {offered} cannot be held here, and their sessions would be refused:",
            f"  {offer['missing']}",
        ]
    short = f", without {', '.join(offer['not_held'])}" if offer["not_held"] else ""
    return [
        f"Agents get {now}. {offer['backend']} would hold their sessions in {offered}{short}: the kernel refuses what it does not",
        f"allow, and one command gets out by a card. To turn it on: wsh policy init --sandbox {offered} --write",
    ]
