"""The server's side of the keeper: connect or start one, take over its children, spawn, kill, ask."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import json
import logging
import os
import resource
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

from wsh.process import launch
from wsh.process.child_handle import ChildHandle
from wsh.process.keeper import descriptor, layout
from wsh.process.keeper_link import KeeperLink
from wsh.process.launch import KeeperEnding
from wsh.process.orphan import list_children, list_orphans
from wsh.process.program import check_env, find_program
from wsh.process.ring import Board, Ring
from wsh.process.spec import ConfinementSpec, KeeperOptions, KillReport, ProcessInfo, ProcessState, SpawnSpec
from wsh.wire.error import (
    CwdNotFound,
    DescriptorsExhausted,
    InvalidRequest,
    KeeperGone,
    KeeperIncompatible,
    ProgramNotFound,
    SandboxUnavailable,
    SessionCreateFailed,
    TooLarge,
    WshError,
)
from wsh.wire.json.object import JsonObject
from wsh.wire.name import check_size
from wsh.wire.system.place import Places
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger(__name__)

_DEFAULT_GRACE_MS = 2000
_LAST_WORDS_S = 15
_END_S = 5.0
_ENDING_PAUSES_S = (0.0, 0.01, 0.05, 0.2, 0.5)
"""Between attempts to reach the keeper that follows one which is ending."""
_KEPT_FREE = 16
_PER_CHILD = 3
"""Descriptors that the server holds of a child."""


class _NoSuchChild(InvalidRequest):
    """Asked about a child that was forgotten."""


class KeeperClient:
    """A connection to the one keeper of a place. Only the newest connection counts; an older one is displaced.

    `on_dirty` is called on the event loop with the children whose rings have news (output, end of file, pause).
    `on_lost` is called if the keeper dies or another server displaces us; from then on every call raises KeeperGone,
    until `reopen`.
    """

    def __init__(self, places: Places, options: KeeperOptions) -> None:
        self._places = places
        self._options = options
        self.children: dict[int, ChildHandle] = {}
        self.pid = 0
        self.mark_base = 0
        self.on_dirty: Callable[[list[ChildHandle]], None] = lambda children: None
        self.on_lost: Callable[[KeeperGone], None] = lambda error: None
        self._slots: dict[int, ChildHandle] = {}
        self._slot_end = 0
        self.displaced = False
        self._stopping = False
        self._gone = asyncio.Event()
        self._spawning: set[asyncio.Future[JsonObject]] = set()
        self._outdated: str | None = None
        self._renewing = asyncio.Lock()
        self._renewed = False
        self._ending = TaskSet()
        self._link: KeeperLink
        self._board: Board | None = None
        self._taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False

    @classmethod
    async def open(cls, places: Places, options: KeeperOptions | None = None) -> KeeperClient:
        """Connect to the keeper of `places`, starting it if need be, and take over its children."""
        _raise_descriptor_limit()
        keeper = cls(places, options or KeeperOptions())
        await keeper._connect()
        return keeper

    async def reopen(self) -> None:
        """Start a new keeper in the place of one that died. The children it had are given up, their terminals hung up."""
        self._let_go()
        await self._connect()

    def _let_go(self) -> None:
        """Of everything that a keeper gave us which has gone."""
        for child in list(self.children.values()):
            self._remove(child)
        self._slot_end = 0
        if self._board is not None:
            self._board.close()
            self._board = None
        self._gone.clear()
        self._taken = asyncio.get_running_loop().create_future()

    async def _connect(self) -> None:
        """Take over the keeper's children. Retries with the next keeper if this one ends meanwhile."""
        deadline = time.monotonic() + self._options.connect_timeout_s
        for pause_s in (*_ENDING_PAUSES_S, None):
            try:
                return await self._take_over(await _in_thread(launch.connect, self._places, self._options))
            except KeeperEnding:
                self._let_go()
                if pause_s is None or time.monotonic() + pause_s > deadline:
                    raise
            await asyncio.sleep(pause_s)

    async def _take_over(self, sock: socket.socket) -> None:
        self._link = KeeperLink(sock, self._event, self._lost)
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                await asyncio.shield(self._taken)
            if not self._renewed:
                self._outdated = launch.why_outdated(self.pid)
        except KeeperEnding:
            raise
        except TimeoutError:
            await self.aclose()
            raise KeeperGone("it does not answer") from None
        except BaseException:
            await self.aclose()
            raise

    # asking

    async def spawn(self, spec: SpawnSpec) -> ChildHandle:
        """Start a program. Raises ProgramNotFound, CwdNotFound, InvalidEnvironment and the like; nothing stays then."""
        request = self._request_of(spec)
        if (self._outdated is not None or self._renewing.locked()) and not self.children:
            await self._renew()
        fds = [spec.cwd_fd] if spec.cwd_fd is not None else []
        if spec.confinement is not None:
            ruleset = spec.confinement.ruleset_fd
            fds += [] if ruleset is None else [ruleset]
            fds += spec.confinement.held.values()
        self._require_descriptors()
        asked = asyncio.ensure_future(self._ask(request, fds, spec))
        self._spawning.add(asked)
        asked.add_done_callback(self._spawning.discard)
        try:
            answer = await asyncio.shield(asked)
        except asyncio.CancelledError:
            await finish_then_cancel(self._undo_spawn(asked))
            raise
        child = self.children.get(answer["child"]["id"])
        if child is None:
            raise DescriptorsExhausted("server")
        return child

    async def _renew(self) -> None:
        """A keeper that an upgrade left behind makes room for the one of this installation, now that it keeps nothing."""
        async with self._renewing:
            if (
                self._outdated is None
                or self.children
                or self._spawning
                or self._closed
                or self._link.problem is not None
            ):
                return
            log.info("the keeper (pid %d) %s and keeps nothing; it is replaced", self.pid, self._outdated)
            self._outdated, self._renewed = None, True
            self._stopping = True
            try:
                await self._ask({"do": "stop", "grace_ms": 0})
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._gone.wait()
                self._link.close()
                self._let_go()
                await self._connect()
            except (WshError, TimeoutError) as problem:
                lost = problem if isinstance(problem, KeeperGone) else KeeperGone(f"it was replaced: {problem}")
                self.on_lost(lost)
                raise lost from None
            finally:
                self._stopping = False

    def _require_descriptors(self) -> None:
        """Some must stay free for requests, or the server could neither answer nor end a session. Raises WshError."""
        if self._closed or self._link.problem is not None:
            return  # asking will say so
        try:
            descriptor.require(_KEPT_FREE + _PER_CHILD * len(self._spawning), self._link.fileno())
        except OSError:
            raise DescriptorsExhausted("server") from None

    async def _undo_spawn(self, asked: asyncio.Future[JsonObject]) -> None:
        """Nobody wants the child any more that is being born."""
        try:
            child = self.children.get((await asked)["child"]["id"])
            if child is None:
                return
            await self.kill_tree(child)
            await child.exited
            await self.forget(child)
        except WshError:
            pass

    async def kill_tree(self, child: ChildHandle, grace_ms: int = _DEFAULT_GRACE_MS) -> KillReport:
        """End every process of that child. Returns when none is left, or with those that could not be ended."""
        answer = await self._ask({"do": "kill", "child": child.id, "grace_ms": grace_ms})
        report = answer["report"]
        survivors = tuple((pid, number) for pid, number in report["survivors"])
        if survivors:
            log.warning("kill_tree of child %d left survivors (pid, errno): %s", child.id, survivors)
        return KillReport(survivors, report["signalled"], tuple(report["forced"]), report["duration_ms"])

    async def inspect(self, child: ChildHandle, *, jobs: bool = False) -> ProcessState:
        """What the kernel knows of the child now. `jobs` also lists background processes, at the price of a walk."""
        answer = await self._ask({"do": "inspect", "child": child.id, "jobs": jobs})
        return _state_of(answer["state"])

    def list_orphans(self, child: ChildHandle) -> tuple[ProcessInfo, ...]:
        """Programs of that child which left its session and live on. Reads a few files of /proc."""
        mark = self.mark_base + child.id
        if child.wrapped:  # the first process of its namespace has adopted them
            first = next(iter(list_children(child.pid)), 0)
            return list_orphans(first, {child.find_program()}, mark)
        leaders = {known.pid for known in self.children.values()}
        return list_orphans(self.pid, leaders, mark)

    async def update_meta(self, child: ChildHandle, meta: JsonObject) -> None:
        """Replace what a successor of this server will find in `child.meta`."""
        await self._ask({"do": "meta", "child": child.id, "meta": _encode_meta(meta)})

    async def forget(self, child: ChildHandle) -> None:
        """Drop an exited child from the keeper and release its ring. A child that runs is refused."""
        try:
            await self._ask({"do": "forget", "child": child.id})
        except _NoSuchChild:
            pass  # somebody was quicker
        self._remove(child)

    async def ping(self) -> JsonObject:
        answer = await self._ask({"do": "ping"})
        return answer

    async def stop(self, grace_ms: int = _DEFAULT_GRACE_MS) -> list[tuple[int, int]]:
        """Kill every tree and end the keeper. Returns survivors as (pid, errno)."""
        self._stopping = True
        answer = await self._ask({"do": "stop", "grace_ms": grace_ms})
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._gone.wait()
        except TimeoutError:
            log.warning("the keeper (pid %d) has stopped its work and does not end", self.pid)
        survivors = [(pid, number) for pid, number in answer["survivors"]]
        if survivors:
            log.warning("stopping the keeper left survivors (pid, errno): %s", survivors)
        await self.aclose()
        return survivors

    def note_resize(self, child: ChildHandle, rows: int, cols: int, offset: int) -> None:
        if not self._closed and self._link.problem is None:
            self._link.tell({"do": "resized", "child": child.id, "rows": rows, "cols": cols, "offset": offset})

    async def aclose(self) -> None:
        """Leave; the keeper and its children go on. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._link.close()
        for child in list(self.children.values()):
            self._remove(child)
        if self._board is not None:
            self._board.close()
        if self._taken.done() and not self._taken.cancelled():
            self._taken.exception()

    # hearing

    def _event(self, message: JsonObject, fds: list[int]) -> None:
        if "welcome" in message:
            self.pid = message["pid"]
            self.mark_base = message["mark_base"]
            self._board = Board(*fds)
            asyncio.get_running_loop().add_reader(self._board.bell_in, self._rung)
            return
        if "refused" in message:
            error = (
                KeeperIncompatible(message["protocols"], layout.PROTOCOL)
                if message["refused"] == "protocol"
                else KeeperGone("it refused our proof; its secret file is not the one we can read")
            )
            if not self._taken.done():
                self._taken.set_exception(error)
            return
        event = message.get("event")
        if event == "children":
            for facts in message["list"]:
                self._adopt(facts, fds)
            if message.get("last") and not self._taken.done():
                self._taken.set_result(None)
        elif event == "exit":
            child = self.children.get(message["child"])
            if child is not None:
                child.set_exit(message["status"])
        elif event == "displaced":
            self.displaced = True
        elif "child" in message:  # the answer to a spawn
            if len(fds) < int(message.get("fds", 0)):  # the kernel dropped what we could not hold
                self._end_unheld(message["child"]["id"])
            else:
                self._adopt(message["child"], fds)
        for fd in fds:
            os.close(fd)

    def _adopt(self, facts: JsonObject, fds: list[int]) -> ChildHandle:
        """A child of the keeper becomes ours; takes its descriptors from the front of `fds`."""
        assert self._board is not None
        rings = [Ring(self._board, slot, fds.pop(0)) for slot in facts["slots"]]
        has_input = facts["source_open"] or facts["stdin"]
        child = ChildHandle(self, facts, rings, fds.pop(0) if has_input else -1)
        self.children[child.id] = child
        for ring in rings:
            self._slots[ring.slot] = child
            self._slot_end = max(self._slot_end, ring.slot + 1)
        return child

    def _end_unheld(self, id: int) -> None:
        """A child whose descriptors did not reach us is of no use to anybody."""

        async def end() -> None:
            with contextlib.suppress(WshError):
                await self._ask({"do": "kill", "child": id, "grace_ms": 0})
                await self._ask({"do": "forget", "child": id})

        self._ending.start(end())

    def _remove(self, child: ChildHandle) -> None:
        if self.children.pop(child.id, None) is None:
            return
        for ring in child.rings:
            if self._slots.get(ring.slot) is child:
                del self._slots[ring.slot]
        child.release()
        if not child.exited.done():
            child.exited.cancel()

    def _rung(self) -> None:
        assert self._board is not None
        dirty: dict[ChildHandle, None] = {}
        for slot in self._board.take_dirty(self._slot_end):
            child = self._slots.get(slot)
            if child is None:
                continue
            if child.on_output is not None:
                child.on_output()
            else:
                dirty[child] = None
        if dirty:
            self.on_dirty(list(dirty))

    def _lost(self, problem: str) -> None:
        if self._board is not None:
            asyncio.get_running_loop().remove_reader(self._board.bell_in)
        if self.displaced:
            problem = "another server took over its terminals"
            self._link.problem = problem
        self._gone.set()
        if not self._taken.done():  # the one who waits for it decides what comes next
            self._taken.set_exception(KeeperGone(problem) if self.displaced or self._closed else KeeperEnding(problem))
            return
        error = KeeperGone(problem)
        if not self._closed and not self._stopping:
            log.error("keeper lost: %s", problem)
            for child in self.children.values():
                if not child.exited.done():
                    child.exited.set_exception(error)
                    child.exited.exception()
            self.on_lost(error)

    # requests

    async def _ask(
        self, message: JsonObject, fds: list[int] | None = None, spec: SpawnSpec | None = None
    ) -> JsonObject:
        if self._closed:
            raise KeeperGone("the connection was closed here")
        answer = await self._link.ask(message, fds)
        if "error" in answer:
            raise _failure(answer["error"], answer.get("facts", {}), spec)
        return answer

    def _request_of(self, spec: SpawnSpec) -> JsonObject:
        check_size(spec.rows, spec.cols)
        env = check_env(spec.env)
        if not spec.argv or any(not isinstance(word, str) or "\0" in word for word in spec.argv):
            raise InvalidRequest("A command needs a program and its arguments, as text without NUL.")
        if "\0" in spec.cwd or (spec.cwd_fd is None and not os.path.isdir(spec.cwd)):
            raise CwdNotFound(spec.cwd)
        path = spec.path or find_program(spec.argv[0], env, spec.cwd)
        if spec.ring_bytes < 64 * 1024:
            raise InvalidRequest("A ring has at least 65536 bytes.")
        journal = spec.journal
        confinement = spec.confinement
        return {
            "do": "spawn" if confinement is None else "spawn_confined",
            "confinement": None if confinement is None else _write_confinement(confinement),
            "terminal": spec.terminal,
            "argv": list(spec.argv),
            "path": path,
            "cwd": spec.cwd,
            "cwd_by_fd": spec.cwd_fd is not None,
            "env": env,
            "rows": spec.rows,
            "cols": spec.cols,
            "stdin": spec.stdin,
            "identity": list(spec.identity) if spec.identity else None,
            "ring_bytes": spec.ring_bytes,
            "journal": journal
            and {
                "folder": journal.folder,
                "segment_bytes": journal.segment_bytes,
                "session_bytes": journal.session_bytes,
            },
            "extra_fds": [[number, content] for number, content in spec.extra_fds.items()],
            "dies_with_server": spec.dies_with_server,
            "meta": _encode_meta(spec.meta),
        }


def _write_confinement(confinement: ConfinementSpec) -> JsonObject:
    return {
        "ruleset": confinement.ruleset_fd is not None,
        "terminal_access": confinement.terminal_access,
        "filter": base64.b64encode(confinement.filter).decode("ascii"),
        "held": list(confinement.held),
        "ignored": [int(number) for number in confinement.ignored],
        "limits": [list(limit) for limit in confinement.limits],
        "wrapped": confinement.wrapped,
    }


def _encode_meta(meta: object) -> str:
    text = json.dumps(meta, separators=(",", ":"))
    if len(text) > layout.META_BYTES - 8:
        raise TooLarge("What is remembered of a child", layout.META_BYTES - 8, "none")
    return text


def _failure(code: str, facts: JsonObject, spec: SpawnSpec | None) -> Exception:
    if code == "spawn_failed" and spec is not None:
        number = int(facts.get("errno", 0))
        reason = os.strerror(number)
        if number in (errno.EMFILE, errno.ENFILE) and facts["stage"] == "setup":
            return DescriptorsExhausted("keeper")
        if facts["stage"] == "sandbox":
            return SandboxUnavailable(f"the kernel refused it: {reason}", "Look at `wsh doctor`.")
        if facts["stage"] == "cwd":
            return CwdNotFound(spec.cwd)
        if facts["stage"] == "program" and number in (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR):
            return ProgramNotFound(spec.path or spec.argv[0])
        return SessionCreateFailed(f"{spec.argv[0]!r} cannot be started: {reason}.", errno=number, stage=facts["stage"])
    if code == "unknown_request" and facts.get("request") == "spawn_confined":
        return SandboxUnavailable(
            "the keeper that runs is of a version without sandboxes",
            "End it with `wsh stop`, which ends its sessions, and start again.",
        )
    if code == "no_descriptors":
        return DescriptorsExhausted("keeper")
    if code == "no_such_child":
        return _NoSuchChild("The keeper has no such child any more.", **facts)
    if code == "still_running":
        return InvalidRequest("A child that runs cannot be forgotten; kill it first.", **facts)
    return InvalidRequest(f"The keeper refused: {code.replace('_', ' ')}.", **facts)


def _info(facts: JsonObject) -> ProcessInfo:
    return ProcessInfo(facts["pid"], tuple(facts["argv"]), facts["comm"])


def _state_of(facts: JsonObject) -> ProcessState:
    foreground = facts.get("foreground")
    return ProcessState(
        running=facts["running"],
        foreground_group=facts.get("foreground_group"),
        foreground=_info(foreground) if foreground else None,
        cwd=foreground.get("cwd") if foreground else None,
        reading=facts.get("reading", "unknown"),
        plain_read=facts.get("plain_read", False),
        reader=facts.get("reader"),
        relayed=facts.get("relayed", False),
        echo=facts.get("echo"),
        canonical=facts.get("canonical"),
        jobs=tuple(_info(job) for job in facts.get("jobs", [])),
    )


def _raise_descriptor_limit() -> None:
    """Two descriptors per terminal: the soft limit of 1024 would end at 500 sessions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            pass


async def finish_then_cancel(work: Coroutine[object, object, None]) -> None:
    """Await `work` to its end even if we are cancelled meanwhile; then raise that cancellation."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def _in_thread(call: Callable[[Places, KeeperOptions], socket.socket], *args: Any) -> socket.socket:
    """Run `call` in a thread. If we are cancelled meanwhile, its socket is closed when it comes."""
    task = asyncio.ensure_future(asyncio.to_thread(call, *args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: None if done.cancelled() or done.exception() else done.result().close())
        raise
