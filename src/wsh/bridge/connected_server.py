"""One connected server, seen from the desktop: handshake, its requests, its terminals.

A connection's requests (its queue) die with it; its terminals do not, and are found again by the same
`runtime_session_id`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from wsh.approval.answer import Answer, AnswerRefused, take_answer, too_late
from wsh.approval.approver import TypedLineOutcome
from wsh.approval.card import Card as ShownCard
from wsh.approval.queue import ApprovalQueue, Rejected, Settled, TerminalState
from wsh.approval.request import ApprovalRequest
from wsh.bridge.decision import make_decision, make_line
from wsh.bridge.fault import Dropped, FrameTooLarge, Malformed
from wsh.bridge.frame import (
    CAPABILITIES,
    CHUNK_BYTES,
    VERSIONS,
    Answered,
    AnyFrame,
    CardFrame,
    Error,
    Exit,
    Frame,
    Heartbeat,
    HelloFrame,
    LineFrame,
    OutputFrame,
    PageAnswer,
    Read,
    Ready,
    RequestFrame,
    Terminate,
    Withdraw,
    carry,
)
from wsh.bridge.stream import FrameStream
from wsh.bridge.terminal import BridgeTerminal

if TYPE_CHECKING:
    from wsh.bridge.listener import BridgeListener

log = logging.getLogger("wsh.bridge")

TRAIL = "trail:"
"""Said by a server with the name of its audit log, so that a decision is recorded once where both have the same."""
ANSWER = "answer"
"""Said by a desktop that takes answers given at the server."""


class ConnectedServer:
    """Serves one connection from `serve` until it ends."""

    def __init__(self, listener: BridgeListener, stream: FrameStream) -> None:
        self.listener = listener
        self.stream = stream
        self.name = "?"
        self.runtime_session_id = ""
        self._trail = ""
        self.is_ready = False
        self.wants_badges = False
        self.wants_sandbox = False
        self.wants_lines = False
        self._wants_resumed = False
        self.loop = asyncio.get_running_loop()
        self.queue = ApprovalQueue(listener.end, listener.ledger, self, grant_life_s=listener.options.grant_life_s)
        self._tasks: set[asyncio.Task[None]] = set()

    # the connection

    async def serve(self) -> None:
        if not await self._shake_hands():
            return
        self.stream.start_heartbeats(self.listener.options.heartbeat_s, self.stream.abort)
        self.send_policy()
        if self._wants_resumed:
            self._resume_output()
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
        if not isinstance(hello, HelloFrame):
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
                capabilities=[*CAPABILITIES, ANSWER] if options.page_answers else CAPABILITIES,
                trace_id=hello.trace_id,
                runtime_session_id=hello.runtime_session_id,
                name=options.name,
                heartbeat_ms=max(1, int(options.heartbeat_s * 1000)),
                max_frame_bytes=options.max_frame_bytes,
            )
        )
        # Frames that a server does not know would end the connection.
        self.wants_badges = "badges" in hello.capabilities
        self.wants_lines = "line" in hello.capabilities
        self.wants_sandbox = "sandbox" in hello.capabilities
        self._wants_resumed = "resume" in hello.capabilities
        self._trail = next((each[len(TRAIL) :] for each in hello.capabilities if each.startswith(TRAIL)), "")
        self.is_ready = True
        return True

    def send(self, frame: Frame) -> None:
        """Answer if the connection still stands."""
        try:
            self.stream.send(frame)
        except Dropped:
            pass

    # what the queue tells

    @property
    def session(self) -> str:
        return self.runtime_session_id

    @property
    def trail(self) -> str:
        return self._trail

    def look_up(self, terminal_id: str) -> TerminalState:
        terminal = self.listener.terminals.find(terminal_id, self.runtime_session_id)
        if terminal is None:
            return "unknown"
        return "running" if terminal.running else "ended"

    def open_terminal(self, request: ApprovalRequest) -> BridgeTerminal:
        return self.listener.terminals.add(
            request.session_id, request.terminal_id, self.runtime_session_id, request.trace_id
        )

    def forget_terminal(self, request: ApprovalRequest) -> None:
        self.listener.terminals.forget(request.terminal_id)

    def take_card(self, card: ShownCard) -> None:
        """Tell the server what its person could be shown."""
        if self.wants_badges:
            try:
                shown = CardFrame.model_construct(**dict(card))
                self.send(shown if self.wants_sandbox else shown.model_copy(update={"sandbox": None}))
            except FrameTooLarge:  # then it is answered at the desktop alone
                log.info("bridge %s: a card is too large to send, trace %s", self.name, card.trace_id)

    def take_end(self, request: ApprovalRequest, settled: Settled) -> None:
        decision = make_decision(request, settled)
        if not self.wants_lines:
            decision = decision.model_copy(update={"rows": None, "cols": None})
        if not self.wants_badges:
            decision = decision.model_copy(update={"where": None})
        try:
            self.send(decision)
        except FrameTooLarge:  # escaped, an argument may be larger than it came; the answer matters more
            self.send(decision.model_copy(update={"evidence": None}))

    def take_start(self, request: ApprovalRequest) -> None:
        terminal = self.listener.terminals.find(request.terminal_id, self.runtime_session_id)
        if terminal is not None:
            self.spawn(self.stream_output(terminal), "bridge-output")

    def take_line(self, request: ApprovalRequest, line: TypedLineOutcome) -> None:
        terminal = self.listener.terminals.find(request.terminal_id, self.runtime_session_id)
        if terminal is not None:
            self.listener.tell_line(terminal, make_line(request, line, terminal.buffer.end))

    def send_line(self, frame: LineFrame) -> None:
        if not self.wants_lines:
            return
        try:
            self.send(frame)
        except FrameTooLarge:  # escaped, a text may be larger than it came; how it ended matters more
            self.send(frame.model_copy(update={"output": None}))

    def send_policy(self) -> None:
        policy = self.listener.end.policy()
        if self.is_ready and policy is not None:
            self.send(policy)

    async def aclose(self) -> None:
        """The caller vanished: what waits can no longer be approved, nor typed. Lines that were typed are followed to their end."""
        self.queue.withdraw_all()
        tasks = list(self._tasks)
        for task in tasks:
            if task.get_name() != "approval-start":  # a start past its point of no return is finished, not torn
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.stream.aclose()

    def spawn(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        if name == "approval-line":
            return self.listener.lines.start(work)
        task = self.loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self, frame: AnyFrame) -> None:
        match frame:
            case RequestFrame():
                self._admit(frame)
            case PageAnswer():
                self._answer(frame)
            case Withdraw():
                self._withdraw(frame)
            case Read():
                self._read(frame)
            case Terminate():
                self.spawn(self._terminate(frame), "bridge-terminate")
            case Heartbeat():
                pass
            case Error():
                log.warning("bridge %s: peer says %s: %s", self.name, frame.code, frame.message)
            case _:
                message = f"A {frame.type} frame is not expected here."
                self.send(Error(code="unexpected_frame", message=message, reply_to=getattr(frame, "id", None)))

    # requests

    def _admit(self, frame: RequestFrame) -> None:
        if frame.kind != "send" and self.listener.terminals.knows(frame.terminal_id):
            self._reject(frame.id, Rejected("duplicate_id", f"There is a terminal {frame.terminal_id!r} already."))
            return
        try:
            self.queue.admit(frame)
        except Rejected as rejected:
            self._reject(frame.id, rejected)

    def _withdraw(self, frame: Withdraw) -> None:
        try:
            self.queue.withdraw(frame.id, frame.reason)
        except Rejected as rejected:
            self._reject(frame.id, rejected)

    def _reject(self, id: str, rejected: Rejected | AnswerRefused) -> None:
        details = dict(rejected.details)
        self.send(Error(code=rejected.code, message=rejected.message, reply_to=id, details=details))

    def _answer(self, frame: PageAnswer) -> None:
        """An answer that was given at the server: let it count, or say why it does not."""
        try:
            if not self.listener.options.page_answers:
                raise AnswerRefused(
                    "answers_off", "This desktop takes no answers from a server: its setting approvals.server is off."
                )
            pending = self.queue.find_card(frame.request)
            if pending is None:
                raise too_late(frame.request, self.queue.find_state(frame.request))
            take_answer(pending, self._read_answer(frame), self.listener.end)
        except AnswerRefused as refused:
            self._reject(frame.id, refused)
        except Exception:
            log.exception("bridge %s: an answer failed, trace %s", self.name, frame.trace_id)
            self._reject(frame.id, Rejected("internal", "The desktop could not take the answer."))
        else:
            self.send(Answered(reply_to=frame.id, trace_id=frame.trace_id))

    def _read_answer(self, frame: PageAnswer) -> Answer:
        return Answer(
            digest=frame.binding,
            yes=frame.yes,
            # Named by us, so that no answer from elsewhere can pass for one given in the window.
            by=f"{frame.by} via {self.name}",
            where="page" if frame.where in (None, "window", "policy") else frame.where,
            scope=frame.scope,
            reason=frame.reason,
            argv=frame.argv,
            rule=frame.rule,
            headless=frame.headless or False,
            held=frame.held,
        )

    # terminals

    async def stream_output(self, terminal: BridgeTerminal) -> None:
        """Send what it prints as it prints it. A slow reader is told what it missed instead of filling our memory."""
        cursor = 0
        # as JSON a byte may become six: \\u0000
        most = min(CHUNK_BYTES, self.stream.max_frame_bytes // 8)
        try:
            while True:
                chunk = terminal.buffer.read(cursor, most)
                if chunk.data or chunk.dropped:
                    text, encoding = carry(chunk.data)
                    self.stream.send(
                        OutputFrame(
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

    def _resume_output(self) -> None:
        """Stream the terminals that an earlier connection of the same server left, from their beginning, since how much of it arrived is not known.

        The same holds for what came of the newest lines.
        """
        for terminal in self.listener.terminals.list_running():
            if terminal.owner == self.runtime_session_id:
                self.spawn(self.stream_output(terminal), "bridge-output")
                for frame in terminal.lines.values():
                    self.send_line(frame)

    def _read(self, frame: Read) -> None:
        terminal = self.listener.terminals.find(frame.terminal_id, self.runtime_session_id)
        if terminal is None:
            self._unknown_terminal(frame)
            return
        chunk = terminal.buffer.read(frame.cursor, min(frame.max_bytes, self.stream.max_frame_bytes // 8))
        text, encoding = carry(chunk.data)
        more = chunk.next_cursor < terminal.buffer.end
        self.send(
            OutputFrame(
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
