"""Who gets which sandbox: agents what the policy names, narrower if they ask, never wider; people what they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.sandbox.profile import OFF, Profile, is_within
from wsh.sandbox.section import SandboxPolicy
from wsh.session.session import Session
from wsh.wire.caller import Actor, Caller
from wsh.wire.error import InvalidRequest, SandboxRefused, SessionTaken

if TYPE_CHECKING:
    from wsh.policy.file.store import PolicyStore


class SandboxPolicies:
    """`[sandbox]` of the policy file as it stands now. The policy's room is imported with the first file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: PolicyStore | None = None

    async def load(self) -> SandboxPolicy:
        """As `current`; the import happens beside the event loop."""
        if self._is_needed():
            await asyncio.to_thread(_import_store)
        return self.current()

    def current(self) -> SandboxPolicy:
        if self._is_needed():
            self._store = _import_store()(self._path)
        return SandboxPolicy() if self._store is None else self._store.current().sandbox

    def _is_needed(self) -> bool:
        if self._store is not None:
            return False
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass  # the store says what that means
        return True


def _import_store() -> type[PolicyStore]:
    from wsh.policy.file.store import PolicyStore

    return PolicyStore


def is_agent(caller: Caller) -> bool:
    """Whether the call is a model's, also under a person's token."""
    return caller.for_model or not caller.is_owner


def choose_profile(caller: Caller, asked: str | None, policy: SandboxPolicy) -> Profile | None:
    """The profile for a session that `caller` opens; None for an open one. Raises SandboxRefused for a wider one than agents get."""
    most = policy.agents if is_agent(caller) else None
    if asked is None:
        return most
    try:
        profile = policy.find(asked)
    except KeyError:
        known = ", ".join([OFF, *policy.profiles])
        raise InvalidRequest(f"There is no sandbox profile {asked[:64]!r}.", hint=f"There are: {known}.") from None
    if not is_within(profile, most):
        assert most is not None
        raise SandboxRefused(
            f"The sandbox {asked!r} allows more than {most.name!r}, which agents get here; they may ask for a narrower one only.",
            hint="Leave `sandbox` out, or ask the person for a session that you need.",
            profile=asked,
            agents=most.name,
        )
    return profile


def refuse_taken(session: Session) -> None:
    """Raises SessionTaken while a person has taken the session over: for what an agent would do to them beside typing."""
    if session.input.taken_by is not None:
        raise SessionTaken(session.name, session.input.taken_by)


def admit(session: Session, policy: SandboxPolicy, outcome: str = "nothing was typed") -> None:
    """Raises SandboxRefused where an agent would act outside what agents get. `outcome` says what was not done."""
    profile = None if session.holding is None else session.holding.profile
    if not is_within(profile, policy.agents):
        assert policy.agents is not None
        raise SandboxRefused(
            f"Session {session.name!r} has the sandbox {OFF if profile is None else profile.name!r}; agents work in "
            f"{policy.agents.name!r} or narrower here, so {outcome}.",
            hint="Open a session of your own, or ask the person to type it.",
            session=session.name,
            agents=policy.agents.name,
        )


def make_gate(policies: SandboxPolicies) -> Callable[[Session, Actor, bytes], None]:
    """For sessions: refuses the input of agents."""

    def gate(session: Session, actor: Actor, data: bytes) -> None:
        if actor.kind == "agent":
            admit(session, policies.current())

    return gate
