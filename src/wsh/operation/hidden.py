"""Agents at hidden prompts: their text is typed there only after a person's yes, once, and at that very prompt.

One request stands for one text of one caller in one session; the same call again waits for the same answer. The text is held in memory
until the request ends, and nowhere else.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from wsh.operation.sandbox import is_agent
from wsh.session.event import SessionEvent
from wsh.session.input.hidden import HiddenPrompt, answers, consent_to, find_hidden_prompt, get_consent
from wsh.session.session import Session
from wsh.wire.caller import Actor
from wsh.wire.error import HiddenInputRefused, WshError

if TYPE_CHECKING:
    from wsh.contract.ask.asked import AskedRequest
    from wsh.contract.dispatch import Contract
    from wsh.operation.context import OnSession

T = TypeVar("T")
_Key: TypeAlias = tuple[str, str, str, bytes]
_QUIET_S = 0.15
_QUIET_LOOKS = 40
_LOOK_S = 0.05
_KEPT_S = 600.0
"""How long an answer is kept for a caller that was told to ask again."""


@dataclass(eq=False)
class _HiddenAsk:
    session: Session
    prompt: HiddenPrompt
    asked: AskedRequest
    task: asyncio.Task[object] = field(init=False)
    waiters: int = 0

    @property
    def left_ms(self) -> int:
        return max(0, int((self._ends - time.monotonic()) * 1000))

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.asked.request.deadline_ms / 1000


class HiddenInputs:
    """`asks` says whether the setting is on."""

    def __init__(self, asks: bool, get_contract: Callable[[], Awaitable[Contract]]) -> None:
        self._on = asks
        self._get_contract = get_contract
        self._asks: dict[_Key, _HiddenAsk] = {}

    def check(self, session: Session, actor: Actor, data: bytes) -> None:
        """A session's gate: raises HiddenInputRefused where an agent types without consent, or the prompt has changed."""
        if not self._on:
            return
        consent = get_consent()
        if consent is not None:
            if find_hidden_prompt(session) != consent:
                raise HiddenInputRefused(session.name, "gone")
        elif (actor.kind == "agent" or actor.connection) and answers(data) and find_hidden_prompt(session) is not None:
            raise HiddenInputRefused(session.name, "refused")

    async def type(self, on: OnSession, call: str, data: bytes, wait_ms: int, type: Callable[[], Awaitable[T]]) -> T:
        """`type()` at once where nothing is hidden, else when a person has allowed it. Raises HiddenInputRefused.

        `call` tells calls apart whose results differ.
        """
        session, caller = on.session, on.caller
        if not self._on or not is_agent(caller) or not answers(data):
            return await type()
        key = (call, session.sid, caller.id, hashlib.sha256(data).digest())
        ask = self._asks.get(key)
        if ask is None:
            if find_hidden_prompt(session) is None:
                return await type()
            ask = await self._ask(on, key, data, type)
        return await self._wait(key, ask, wait_ms)  # type: ignore[return-value]  # the same call has the same result

    async def _ask(self, on: OnSession, key: _Key, data: bytes, type: Callable[[], Awaitable[object]]) -> _HiddenAsk:
        from wsh.contract.ask.hidden import HiddenQuestion, ask_hidden

        session = on.session
        prompt = await _settle(session)
        program = (await session.look(jobs=False)).foreground
        words = " ".join(program.argv)[:200] if program is not None else ""
        route = (await self._get_contract()).interactive
        length = len(data.decode("utf-8", "replace").rstrip("\r\n"))
        asked = await ask_hidden(route, HiddenQuestion(session.name, words, prompt.line, length), on.governed)
        if asked is None:
            raise HiddenInputRefused(session.name, "refused")
        ask = self._asks.setdefault(key, _HiddenAsk(session, prompt, asked))
        if ask.asked is not asked:  # the same call came twice at once
            await asked.withdraw("cancelled")
            return ask
        ask.task = asyncio.create_task(self._follow(ask, type), name=f"hidden prompt {asked.request.id}")
        ask.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        ask.task.add_done_callback(lambda _: asyncio.get_running_loop().call_later(_KEPT_S, self._asks.pop, key, None))
        return ask

    async def _wait(self, key: _Key, ask: _HiddenAsk, wait_ms: int) -> object:
        ask.waiters += 1
        try:
            await asyncio.wait({ask.task}, timeout=wait_ms / 1000)
        except asyncio.CancelledError:
            if ask.waiters == 1:
                self._asks.pop(key, None)
                ask.task.cancel()
            raise
        finally:
            ask.waiters -= 1
        if not ask.task.done():
            facts = {"approval_id": ask.asked.request.id, "approval_left_ms": ask.left_ms, "prompt": ask.prompt.line}
            raise HiddenInputRefused(ask.session.name, "pending", **facts)
        self._asks.pop(key, None)
        return ask.task.result()

    async def _follow(self, ask: _HiddenAsk, type: Callable[[], Awaitable[object]]) -> object:
        """Until it is answered or the prompt has gone; then type, or raise why not."""
        from wsh.contract.ask.hidden import record_typing

        session, asked = ask.session, ask.asked
        try:
            await _wait_while_there(session, ask.prompt, asked)
        finally:
            await asyncio.shield(asked.withdraw("cancelled"))  # nothing, if it is settled
        decision = asked.decision
        route = (await self._get_contract()).interactive
        if asked.is_approved:
            try:
                with consent_to(ask.prompt):
                    result = await type()
            except WshError as problem:
                record_typing(route, asked, problem.code)
                raise
            record_typing(route, asked, "typed")
            return result
        facts = {"approval_id": asked.request.id}
        if decision is not None and decision.outcome == "declined":
            raise HiddenInputRefused(session.name, "declined", reason=decision.reason, **facts)
        if asked.outcome == "expired":
            raise HiddenInputRefused(session.name, "expired", **facts)
        typed = session.input.last
        answered = typed != ask.prompt.typed and typed is not None and typed[0].kind == "person"
        raise HiddenInputRefused(session.name, "answered" if answered else "gone", **facts)


async def _settle(session: Session) -> HiddenPrompt:
    """The prompt, once it is printed whole: programs hide what is typed before they say what they want."""
    for _ in range(_QUIET_LOOKS):
        if time.monotonic() - session.last_activity > _QUIET_S:
            break
        await asyncio.sleep(_LOOK_S)
    prompt = find_hidden_prompt(session)
    if prompt is None:
        raise HiddenInputRefused(session.name, "gone")
    return prompt


async def _wait_while_there(session: Session, prompt: HiddenPrompt, asked: AskedRequest) -> None:
    changed = asyncio.Event()

    def hear(event: SessionEvent) -> None:
        changed.set()

    stop = session.listeners.add(hear)
    try:
        while not asked.task.done() and session.running and find_hidden_prompt(session) == prompt:
            waking = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait({asked.task, waking}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waking.cancel()
            changed.clear()
            if not asked.task.done():
                await asyncio.sleep(_LOOK_S)  # a program that prints all the time would have us look all the time
    finally:
        stop()
