"""One connected server, seen from the desktop: handshake, its requests, its terminals.

A connection's requests die with it; its terminals do not, and are found again by the same `runtime_session_id`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsh.bridge.desktop import Answer, Judgement, Order, Pending, StartFailed
from wsh.bridge.evidence import CannotRun, Evidence, resolve, resolve_typing
from wsh.bridge.fault import Dropped, FrameTooLarge, Malformed
from wsh.bridge.frame import (
    CHUNK_BYTES,
    VERSIONS,
    AnyFrame,
    Decision,
    Error,
    Exit,
    Frame,
    Heartbeat,
    Hello,
    Outcome,
    Output,
    Read,
    Ready,
    Request,
    Scope,
    Terminate,
    Withdraw,
    carry,
)
from wsh.bridge.ledger import DuplicateId, QueueFull
from wsh.bridge.stream import FrameStream
from wsh.bridge.terminal import BridgeTerminal

if TYPE_CHECKING:
    from wsh.bridge.listener import BridgeListener

log = logging.getLogger("wsh.bridge")

CAPABILITIES = ["run", "open", "send", "read", "terminate", "policy", "withdraw"]
_STRICTNESS = {"allow": 0, "ask": 1, "refuse": 2}
_RISK = {"none": 0, "destructive": 1, "irrecoverable": 2}


@dataclass
class _Asked:
    """A request that is not settled yet, and its card once the person sees it."""

    request: Request
    deadline: float
    timer: asyncio.TimerHandle
    card: Pending | None = None


class Peer:
    """Serves one connection from `serve` until it ends."""

    def __init__(self, listener: BridgeListener, stream: FrameStream) -> None:
        self.listener = listener
        self.stream = stream
        self.name = "?"
        self.runtime_session_id = ""
        self.is_ready = False
        self.is_gone = False
        self._loop = asyncio.get_running_loop()
        self._asked: dict[str, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # the connection

    async def serve(self) -> None:
        if not await self._shake_hands():
            return
        self.stream.start_heartbeats(self.listener.options.heartbeat_s, self.stream.abort)
        self.send_policy()
        while True:
            try:
                frame = await self.stream.read()
            except Dropped as end:
                log.info("bridge %s: %s", self.name, end.message)
                return
            except FrameTooLarge as bad:
                await self.stream.refuse("frame_too_large", bad.message, **bad.details)
                return
            except Malformed as bad:
                reply_to = bad.details.pop("reply_to", None)
                self.send(Error(code="malformed", message=bad.message, reply_to=reply_to, details=bad.details))
                continue
            self._take(frame)

    async def _shake_hands(self) -> bool:
        options = self.listener.options
        try:
            async with asyncio.timeout(options.hello_timeout_s):
                hello = await self.stream.read()
        except TimeoutError:
            await self.stream.refuse("hello_timeout", "No hello came in time.")
            return False
        except Dropped:
            return False
        except (FrameTooLarge, Malformed) as bad:
            code = "frame_too_large" if isinstance(bad, FrameTooLarge) else "malformed"
            await self.stream.refuse(code, bad.message, **bad.details)
            return False
        if not isinstance(hello, Hello):
            await self.stream.refuse("hello_expected", f"The first frame must be hello, not {hello.type}.")
            return False
        if not hmac.compare_digest(hello.token.encode(), self.listener.token.encode()):
            log.warning("bridge %s: wrong token from %r (trace %s)", self.stream.label, hello.name, hello.trace_id)
            await self.stream.refuse("bad_token", "The token does not match this desktop's.")
            return False
        common = set(hello.versions) & set(VERSIONS)
        if not common:
            await self.stream.refuse(
                "unsupported_version", "No protocol version in common.", supported=list(VERSIONS), given=hello.versions
            )
            return False
        self.name = hello.name
        self.runtime_session_id = hello.runtime_session_id
        log.info("bridge %s: %r connected, trace %s", self.stream.label, hello.name, hello.trace_id)
        self.send(
            Ready(
                version=max(common),
                capabilities=CAPABILITIES,
                trace_id=hello.trace_id,
                runtime_session_id=hello.runtime_session_id,
                name=options.name,
                heartbeat_ms=max(1, int(options.heartbeat_s * 1000)),
                max_frame_bytes=options.max_frame_bytes,
            )
        )
        self.is_ready = True
        return True

    def send(self, frame: Frame) -> None:
        """To whoever is still there; a connection that is gone needs no answer."""
        try:
            self.stream.send(frame)
        except Dropped:
            pass

    def send_policy(self) -> None:
        policy = self.listener.end.policy()
        if self.is_ready and policy is not None:
            self.send(policy)

    async def aclose(self) -> None:
        """The caller vanished: what waits can no longer be approved."""
        self.is_gone = True
        for key in self.listener.ledger.withdraw_all(self):
            self._close_card(key, "withdrawn", "the connection ended")
        tasks = list(self._tasks)
        for task in tasks:
            if task.get_name() != "bridge-start":  # a start past its point of no return is finished, not torn
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.stream.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, frame: AnyFrame) -> None:
        match frame:
            case Request():
                self._admit(frame)
            case Withdraw():
                self._withdraw(frame)
            case Read():
                self._read(frame)
            case Terminate():
                self._spawn(self._terminate(frame), "bridge-terminate")
            case Heartbeat():
                pass
            case Error():
                log.warning("bridge %s: peer says %s: %s", self.name, frame.code, frame.message)
            case _:
                message = f"A {frame.type} frame is not expected here."
                self.send(Error(code="unexpected_frame", message=message, reply_to=getattr(frame, "id", None)))

    # requests

    def _key(self, request_id: str) -> str:
        return f"{self.runtime_session_id}/{request_id}"

    def _admit(self, request: Request) -> None:
        key = self._key(request.id)
        if request.kind != "send" and self.listener.terminals.knows(request.terminal_id):
            self._reject(request, "duplicate_id", f"There is a terminal {request.terminal_id!r} already.")
            return
        try:
            self.listener.ledger.open(key, self, request.deadline_ms / 1000)
        except DuplicateId:
            self._reject(request, "duplicate_id", f"The request id {request.id!r} was used before.")
            return
        except QueueFull:
            limit = self.listener.ledger.max_pending
            self._reject(request, "queue_full", f"{limit} requests wait for the person already.", max_pending=limit)
            return
        life_s = request.deadline_ms / 1000
        timer = self._loop.call_later(life_s, self._expire, request)
        self._asked[key] = _Asked(request, time.monotonic() + life_s, timer)
        self._spawn(self._present(request, key), "bridge-present")

    def _reject(self, request: Request, code: str, message: str, **details: object) -> None:
        self.send(Error(code=code, message=message, reply_to=request.id, details=dict(details)))

    def _session_of(self, request: Request) -> str:
        return f"{self.runtime_session_id}/{request.asker.caller}"

    async def _resolve(self, request: Request, argv: tuple[str, ...] | None = None) -> Evidence:
        end = self.listener.end
        session = self._session_of(request)
        if request.kind == "send":
            terminal = self.listener.terminals.find(request.terminal_id, self.runtime_session_id)
            if terminal is None:
                raise CannotRun("unknown_terminal", f"There is no terminal {request.terminal_id!r}.")
            if not terminal.running:
                raise CannotRun("terminal_ended", f"The program in terminal {request.terminal_id!r} has ended.")
            text = request.command if argv is None else " ".join(argv)
            return resolve_typing(text, request.terminal_id, session)
        words = argv or tuple(request.argv) or tuple(end.shell())
        cwd = request.cwd or end.default_cwd()
        return await asyncio.to_thread(resolve, words, cwd, request.env, end.base_environment(), session)

    async def _present(self, request: Request, key: str) -> None:
        """Resolve, judge, and then run at once, show, or refuse."""
        ledger, end = self.listener.ledger, self.listener.end
        try:
            evidence = await self._resolve(request)
            judgement = _stricter(request, end.judge(request, evidence))
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        except Exception:
            log.exception("bridge %s: request could not be judged, trace %s", self.name, request.trace_id)
            self._refuse(request, key, "internal", "The desktop could not judge the request.")
            return
        if judgement.effect == "refuse":
            self._refuse(request, key, "forbidden", "; ".join(judgement.reasons) or "The desktop's policy forbids it.")
            return
        asked = self._asked.get(key)
        if asked is None:  # settled while it was being resolved
            return
        deadline = asked.deadline
        pending = Pending(request, evidence, judgement, self.name, lambda: deadline - time.monotonic(), self._answered)
        if judgement.effect == "allow":
            if ledger.claim(key):
                rule = judgement.rule or "policy"
                self._spawn(self._start(pending, Answer(True, "rule", rule, None, None)), "bridge-start")
        elif ledger.is_granted(evidence.binding):
            if ledger.claim(key):
                self._spawn(self._start(pending, Answer(True, "session", "person", None, None)), "bridge-start")
        else:
            asked.card = pending
            end.request_arrived(pending)

    def _answered(self, pending: Pending, answer: Answer) -> bool:
        """From any thread: the state changes here and now, the rest happens on the loop."""
        key = self._key(pending.request.id)
        if not answer.yes:
            counted = self.listener.ledger.decline(key)
            if counted:
                self._loop.call_soon_threadsafe(self._declined, pending, answer)
            return counted
        if not self.listener.ledger.claim(key):
            return False
        self._loop.call_soon_threadsafe(self._spawn, self._start(pending, answer), "bridge-start")
        return True

    def _declined(self, pending: Pending, answer: Answer) -> None:
        self._settle(pending.request, "declined", by=answer.by, reason=answer.reason, evidence=pending.evidence)

    async def _start(self, pending: Pending, answer: Answer) -> None:
        """Check once more that it is what was shown, pass the point of no return, run, and say so."""
        request, key, end = pending.request, self._key(pending.request.id), self.listener.end
        try:
            evidence = await self._resolve(request, answer.argv)
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        if answer.argv is not None:
            judgement = end.judge(request.model_copy(update={"argv": list(answer.argv)}), evidence)
            if judgement.effect == "refuse" or judgement.risk == "irrecoverable":
                self._refuse(request, key, "forbidden", "The edited command is forbidden by the desktop's policy.")
                return
        elif evidence.binding != pending.evidence.binding:
            self._refuse(request, key, "changed", "What would run is no longer what was shown.")
            return
        if not self.listener.ledger.start(key):  # withdrawn meanwhile; that has been answered
            return
        terminal: BridgeTerminal | None = None
        try:
            if request.kind == "send":
                await end.type_text(request.terminal_id, evidence.argv[0])
            else:
                terminal = self.listener.terminals.add(
                    request.session_id, request.terminal_id, self.runtime_session_id, request.trace_id
                )
                await end.run(_order(request, evidence), terminal)
        except Exception as problem:
            if terminal is not None:
                self.listener.terminals.forget(request.terminal_id)
            if not isinstance(problem, StartFailed):
                log.exception("bridge %s: could not start, trace %s", self.name, request.trace_id)
            message = str(problem) if isinstance(problem, StartFailed) else "The desktop could not start it."
            self._settle(request, "refused", code="start_failed", reason=message, evidence=evidence)
            return
        if answer.scope == "session" and answer.argv is None:
            self.listener.ledger.grant(evidence.binding, self.listener.options.grant_life_s)
        self._settle(
            request,
            "approved",
            scope=answer.scope,
            by=answer.by,
            evidence=evidence,
            edited=answer.argv is not None,
        )
        if terminal is not None:
            self._spawn(self._stream_output(terminal), "bridge-output")

    def _withdraw(self, frame: Withdraw) -> None:
        key = self._key(frame.id)
        state = self.listener.ledger.state(key)
        if state is None:
            self.send(Error(code="unknown_request", message=f"No request {frame.id!r}.", reply_to=frame.id))
        elif self.listener.ledger.withdraw(key):
            self._settle(self._asked[key].request, "withdrawn", reason=frame.reason)

    def _expire(self, request: Request) -> None:
        key = self._key(request.id)
        if self.listener.ledger.expire(key):
            self._settle(request, "expired", reason="nobody answered in time")

    def _refuse(self, request: Request, key: str, code: str, reason: str) -> None:
        if self.listener.ledger.refuse(key):
            self._settle(request, "refused", code=code, reason=reason)

    def _settle(
        self,
        request: Request,
        outcome: Outcome,
        *,
        scope: Scope | None = None,
        by: str | None = None,
        code: str | None = None,
        reason: str | None = None,
        evidence: Evidence | None = None,
        edited: bool = False,
    ) -> None:
        self.send(
            Decision(
                id=request.id,
                trace_id=request.trace_id,
                outcome=outcome,
                scope=scope,
                by=by,
                code=code,
                reason=reason,
                session_id=request.session_id,
                terminal_id=request.terminal_id,
                edited=edited,
                evidence=evidence.to_frame() if evidence else None,
            )
        )
        self._close_card(self._key(request.id), outcome, reason)

    def _close_card(self, key: str, outcome: Outcome, reason: str | None) -> None:
        asked = self._asked.pop(key, None)
        if asked is None:
            return
        asked.timer.cancel()
        if asked.card is not None:
            try:
                self.listener.end.request_closed(asked.card, outcome, reason)
            except Exception:
                log.exception("bridge %s: the desktop could not close a card", self.name)

    # terminals

    async def _stream_output(self, terminal: BridgeTerminal) -> None:
        """Send what it prints as it prints it. A slow reader is told what it missed instead of filling our memory."""
        cursor = 0
        try:
            while True:
                chunk = terminal.buffer.read(cursor, CHUNK_BYTES)
                if chunk.data or chunk.dropped:
                    text, encoding = carry(chunk.data)
                    self.stream.send(
                        Output(
                            terminal_id=terminal.terminal_id,
                            trace_id=terminal.trace_id,
                            offset=chunk.offset,
                            data=text,
                            encoding=encoding,
                            dropped=chunk.dropped,
                        )
                    )
                    cursor = chunk.next_cursor
                    await self.stream.drain()
                elif terminal.running:
                    await terminal.buffer.changed()
                else:
                    break
            self.stream.send(_exit_frame(terminal, None))
        except Dropped:
            pass

    def _read(self, frame: Read) -> None:
        terminal = self.listener.terminals.find(frame.terminal_id, self.runtime_session_id)
        if terminal is None:
            self._unknown_terminal(frame)
            return
        chunk = terminal.buffer.read(frame.cursor, min(frame.max_bytes, self.stream.max_frame_bytes // 8))
        text, encoding = carry(chunk.data)
        more = chunk.next_cursor < terminal.buffer.end
        self.send(
            Output(
                terminal_id=terminal.terminal_id,
                trace_id=frame.trace_id,
                offset=chunk.offset,
                data=text,
                encoding=encoding,
                dropped=chunk.dropped,
                reply_to=frame.id,
                running=terminal.running or more,
                exit_code=None if more else terminal.exit_code,
            )
        )

    async def _terminate(self, frame: Terminate) -> None:
        terminal = self.listener.terminals.find(frame.terminal_id, self.runtime_session_id)
        if terminal is None:
            self._unknown_terminal(frame)
            return
        if terminal.running:
            try:
                terminal.survivors = list(await self.listener.end.terminate(frame.terminal_id))
                terminal.terminated = True
                async with asyncio.timeout(10):
                    while terminal.running:
                        await terminal.buffer.changed()
            except Exception:
                log.exception("bridge %s: terminate failed, trace %s", self.name, frame.trace_id)
                message = "The desktop could not end the terminal."
                self.send(Error(code="terminate_failed", message=message, reply_to=frame.id))
                return
        self.send(_exit_frame(terminal, frame))

    def _unknown_terminal(self, frame: Read | Terminate) -> None:
        message = f"There is no terminal {frame.terminal_id!r}."
        self.send(Error(code="unknown_terminal", message=message, reply_to=frame.id))


def _exit_frame(terminal: BridgeTerminal, asked: Terminate | None) -> Exit:
    return Exit(
        terminal_id=terminal.terminal_id,
        trace_id=asked.trace_id if asked else terminal.trace_id,
        exit_code=terminal.exit_code,
        terminated=terminal.terminated,
        survivors=terminal.survivors,
        reply_to=asked.id if asked else None,
    )


def _order(request: Request, evidence: Evidence) -> Order:
    assert evidence.executable is not None
    assert request.kind != "send"
    return Order(
        session_id=request.session_id,
        terminal_id=request.terminal_id,
        trace_id=request.trace_id,
        argv=evidence.argv,
        executable=evidence.executable,
        cwd=evidence.cwd,
        environment=evidence.environment,
        title=request.title,
        kind=request.kind,
    )


def _stricter(request: Request, judged: Judgement) -> Judgement:
    """What the server claims can only make it stricter: a token in an agent's hands must not approve anything."""
    effect = max(request.effect, judged.effect, key=_STRICTNESS.__getitem__)
    risk = max(request.risk, judged.risk, key=_RISK.__getitem__)
    if risk == "irrecoverable":
        effect = "refuse"
    elif risk == "destructive" and effect == "allow":
        effect = "ask"
    reasons = [*judged.reasons, *(reason for reason in request.reasons if reason not in judged.reasons)]
    return Judgement(effect, risk, reasons, judged.rule)
