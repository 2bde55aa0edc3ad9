"""The keeper's heart: children, the server's requests, reaping, and when to end."""

from __future__ import annotations

import os
import signal
import time
from errno import EMFILE, ENFILE

from wsh.process.keeper import descriptor, layout
from wsh.process.keeper.child import Child
from wsh.process.keeper.door import Connection, Door
from wsh.process.keeper.output.journal import StreamJournal
from wsh.process.keeper.output.stream import StreamPump
from wsh.process.keeper.start import spawn
from wsh.process.keeper.start.confine import Confinement
from wsh.process.keeper.tree import cgroup
from wsh.process.keeper.tree.haste import Haste
from wsh.process.keeper.tree.inspect import inspect, waits_for_terminal
from wsh.process.keeper.tree.kill import KillJob
from wsh.process.keeper.tree.mark import Census, Count, choose_base

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wsh.wire.json.object import JsonObject


_CHILDREN_PER_FRAME = 4  # two descriptors each, duplicated until the frame is on its way
_LOOK_AROUND_S = 10.0
_LAST_WORDS_S = 0.02  # for the server to read the last answer before the socket closes
_LAST_WORDS_LIMIT_S = 30.0
_GRACE_MS = 2000


class Refusal(Exception):
    """A request that cannot be met; goes back to the server as data."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


class Keeper:
    def __init__(self, door: Door, linger_s: float, limits: spawn.KeeperLimits) -> None:
        self.loop = door.loop
        self.pump = StreamPump(self.loop)
        self.children: dict[int, Child] = {}
        self._limits = limits
        self._linger_s = linger_s
        self._by_pid: dict[int, Child] = {}
        self._leaders: dict[int, int] = {}
        self._jobs: dict[int, KillJob] = {}
        self._job_count = 0
        self._next_id = 1
        self._server: Connection | None = None
        self._alone_since = time.monotonic()
        self._stopping = False
        self._told_to_end = False
        self._census = Census(self.loop, choose_base(), self._leaders)
        self._mark_base = self._census.base
        self._cgroup_home = cgroup.find_home()
        self._sweep()
        self._haste = Haste(limits.rttime[0])
        self.door = door
        door.welcome = self._welcome
        door.is_outside = self._census.is_outside
        self._requests: dict[str, Callable[[Connection, JsonObject, list[int]], JsonObject | None]] = {
            "spawn": self._spawn,
            "spawn_confined": self._spawn,  # by another name, so that a keeper that knows no confinement refuses
            "resized": self._resized,
            "meta": self._set_meta,
            "kill": self._kill,
            "inspect": self._inspect,
            "forget": self._forget,
            "stop": self._stop,
            "ping": self._ping,
        }
        self._watch_children()
        self.loop.after(_LOOK_AROUND_S, self._look_around)

    def run(self) -> None:
        self.pump.scribe.start()
        try:
            self.loop.run()
        finally:
            self.door.close()
            self.pump.scribe.stop()
            self._sweep()

    def _sweep(self) -> None:
        if self._cgroup_home is not None:
            cgroup.sweep(self._cgroup_home)

    # servers

    def _welcome(self, connection: Connection) -> None:
        """A proven server. It displaces the one before."""
        if self._server is not None:
            old, self._server = self._server, None
            old.send({"event": "displaced"})
            old.finish()
        self._server = connection
        connection.receive = self._receive
        connection.lost = self._lost
        self.pump.attach()
        control = self.pump.control
        connection.send(
            {
                "welcome": layout.PROTOCOL,
                "layout": layout.VERSION,
                "pid": os.getpid(),
                "mark_base": self._mark_base,
                "children": sum(child.ready for child in self.children.values()),
                "fds": 3,
            },
            [control.fd, control.to_server, control.to_keeper],
        )
        # Who gets ready from now on is told of in an event of its own.
        connection.stream(self._introduce([child for child in self.children.values() if child.ready]))

    def _introduce(self, children: list[Child]) -> Iterator[tuple[JsonObject, list[int]]]:
        """Messages about `children`, made one by one as the server reads: all their descriptors at once may be too many."""
        for at in range(0, len(children), _CHILDREN_PER_FRAME):
            batch = [child for child in children[at : at + _CHILDREN_PER_FRAME] if not child.forgotten]
            fds = [fd for child in batch for fd in self._fds_of(child)]
            yield {"event": "children", "list": [child.describe() for child in batch], "fds": len(fds)}, fds
        yield {"event": "children", "list": [], "fds": 0, "last": True}, []

    def _lost(self, connection: Connection) -> None:
        if connection is not self._server:
            return
        self._server = None
        self._alone_since = time.monotonic()
        self.pump.detach()
        for child in list(self.children.values()):
            if child.dies_with_server:
                self._begin_kill(child, _GRACE_MS, lambda job: self._drop(self.children.get(job.child)))
        self.loop.after(self._linger_s, self._end_if_useless)

    def _receive(self, connection: Connection, message: JsonObject, fds: list[int]) -> None:
        number = message.get("id")
        try:
            request = self._requests.get(str(message.get("do")))
            if request is None:
                raise Refusal("unknown_request", request=str(message.get("do"))[:100])
            answer = request(connection, message, fds)
        except Refusal as refusal:
            answer = {"error": refusal.code, "facts": refusal.facts}
        except OSError as problem:
            if problem.errno not in (EMFILE, ENFILE):
                raise
            answer = {"error": "no_descriptors", "facts": {}}
        finally:
            for fd in fds:
                os.close(fd)
        if answer is not None and number is not None:
            connection.send({"re": number, **answer})

    def _tell(self, message: JsonObject) -> None:
        if self._server is not None:
            self._server.send(message)

    def _child(self, message: JsonObject) -> Child:
        child = self.children.get(message["child"])
        if child is None or child.forgotten:
            raise Refusal("no_such_child", child=message["child"])
        return child

    def _fds_of(self, child: Child) -> list[int]:
        """What a server needs to serve it: rings, and the terminal while that is open."""
        fds = [stream.ring_fd for stream in child.streams]
        if child.is_terminal and child.streams[0].fd >= 0:
            fds.append(child.streams[0].fd)
        return fds

    # spawning

    def _spawn(self, connection: Connection, message: JsonObject, fds: list[int]) -> None:
        if self._stopping:
            raise Refusal("stopping")
        id = self._next_id
        self._next_id += 1
        child = Child(id, bool(message["terminal"]), self._announce)
        child.dies_with_server = bool(message["dies_with_server"])
        child.started_us = time.time_ns() // 1000
        try:
            descriptor.require(descriptor.TO_SPAWN, self.loop.epoll.fileno())
            for _ in range(1 if child.is_terminal else 2):
                child.streams.append(self.pump.make(child, int(message["ring_bytes"])))
            self._store_meta(child, message["meta"])
            self._begin_journal(child, message)
            cwd_fd = fds[0] if message["cwd_by_fd"] else None
            asked = message.get("confinement")
            confinement = Confinement(asked, fds[1 if message["cwd_by_fd"] else 0 :]) if asked else None
            child.wrapped = confinement is not None and confinement.wrapped
            started = spawn.start(message, cwd_fd, self._mark_base + id, self._limits, confinement)
        except BaseException as problem:
            for stream in child.streams:
                self.pump.unmake(stream)
            if isinstance(problem, OSError):
                raise Refusal("spawn_failed", stage=spawn.STAGE_SETUP, errno=problem.errno or 0) from None
            raise
        child.pid = started.pid
        child.stdin_fd = started.stdin_fd
        self.children[id] = child
        self._by_pid[child.pid] = child
        self._leaders[child.pid] = id
        for stream, fd in zip(child.streams, started.sources, strict=True):
            self.pump.add(stream, fd)
        number = message.get("id")
        self.loop.watch(started.error_fd, lambda events: self._spawned(connection, number, child, started.error_fd))

    def _begin_journal(self, child: Child, message: JsonObject) -> None:
        asked = message["journal"]
        if asked is None:
            return
        stream = child.streams[0]
        folder = spawn.to_bytes(asked["folder"])
        stream.journal = StreamJournal(stream, folder, int(asked["segment_bytes"]), int(asked["session_bytes"]))
        stream.journal.note(0, child.started_us, layout.KIND_SIZE, message["rows"], message["cols"])

    def _spawned(self, connection: Connection, number: object, child: Child, error_fd: int) -> None:
        self.loop.unwatch(error_fd)
        failure = spawn.read_outcome(error_fd)
        os.close(error_fd)
        if failure is not None:
            stage, errno = failure
            answer = {"re": number, "error": "spawn_failed", "facts": {"stage": stage, "errno": errno}}
            self._drop(child, lambda: connection.send(answer))
            return
        child.ready = True
        if connection is self._server:
            fds = self._fds_of(child)
            if child.stdin_fd >= 0:
                fds.append(child.stdin_fd)
            connection.send({"re": number, "child": child.describe(), "fds": len(fds)}, fds)
        elif self._server is not None:  # asked by one server, born under the next
            self._close_stdin(child)
            fds = self._fds_of(child)
            self._server.send({"event": "children", "list": [child.describe()], "fds": len(fds)}, fds)
        self._close_stdin(child)
        if child.dies_with_server and self._server is not connection:
            self._begin_kill(child, _GRACE_MS, lambda job: self._drop(child))
        child.settle()

    def _announce(self, child: Child) -> None:
        """The exit of a child, after all that it printed."""
        stream = child.streams[0]
        assert child.status is not None
        if stream.journal is not None:
            stream.journal.note(stream.head, time.time_ns() // 1000, layout.KIND_EXIT, extra=child.status & 0xFFFF_FFFF)
            self.pump.scribe.touch(stream.journal)
        self._tell({"event": "exit", "child": child.id, "status": child.status})

    def _drop(self, child: Child | None, done: Callable[[], None] | None = None) -> None:
        """Remember nothing of it any more; `done` is called when no file of it is open."""
        if child is None or child.forgotten:
            return
        left = len(child.streams)

        def removed() -> None:
            nonlocal left
            left -= 1
            if not left and done is not None:
                done()

        child.forgotten = True
        self.children.pop(child.id, None)
        for stream in child.streams:
            self.pump.remove(stream, removed)
        self._close_stdin(child)
        self.loop.after(self._linger_s, self._end_if_useless)

    def _close_stdin(self, child: Child) -> None:
        """The server has the only end now: closing it there is end of input."""
        if child.stdin_fd >= 0:
            os.close(child.stdin_fd)
            child.stdin_fd = -1

    # reaping

    def _watch_children(self) -> None:
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, self._note_signal)
        signal.signal(signal.SIGTERM, self._note_signal)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self.loop.watch(read, lambda events: self._reap(read))

    def _note_signal(self, number: int, frame: object) -> None:
        """Also runs in a child that is signalled before its exec, and changes only that child's copy then."""
        if number == signal.SIGTERM:
            self._told_to_end = True

    def _reap(self, wake_fd: int) -> None:
        try:
            os.read(wake_fd, 4096)
        except BlockingIOError:
            pass
        if self._told_to_end and not self._stopping:
            self._end_all(_GRACE_MS, lambda survivors: None)
        reaped = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            reaped = True
            self._leaders.pop(pid, None)
            child = self._by_pid.pop(pid, None)
            if child is not None:
                child.die(status, self.pump)
        if reaped:
            for job in list(self._jobs.values()):
                job.nudge()

    # requests

    def _resized(self, connection: Connection, message: JsonObject, fds: list[int]) -> JsonObject:
        """The server has set a size at that offset of what it had parsed; replaying the journal does the same."""
        child = self._child(message)
        journal = child.streams[0].journal
        if journal is not None:
            offset = min(int(message["offset"]), child.streams[0].head)
            rows, cols = int(message["rows"]), int(message["cols"])
            journal.note(offset, time.time_ns() // 1000, layout.KIND_SIZE, rows, cols)
            self.pump.scribe.touch(journal)
        return {}

    def _set_meta(self, connection: Connection, message: JsonObject, fds: list[int]) -> JsonObject:
        self._store_meta(self._child(message), message["meta"])
        return {}

    def _store_meta(self, child: Child, meta: str) -> None:
        data = meta.encode("ascii")
        if len(data) > layout.META_BYTES - 8:
            raise Refusal("meta_too_large", limit=layout.META_BYTES - 8)
        stream = child.streams[0]
        os.pwrite(stream.ring_fd, len(data).to_bytes(8, "little") + data, stream.size)

    def _inspect(self, connection: Connection, message: JsonObject, fds: list[int]) -> JsonObject:
        child = self._child(message)
        state = inspect(child, jobs=bool(message.get("jobs")))
        # What it printed before we looked comes before the answer: "waits for input" must not overtake the prompt.
        stream = child.streams[0]
        for _ in range(4):
            head = stream.head
            if stream.fd < 0 or stream.paused or stream.eof:
                break
            self.pump.pump(stream)
            if stream.head == head:
                break
        return {"state": state}

    def _forget(self, connection: Connection, message: JsonObject, fds: list[int]) -> None:
        child = self._child(message)
        if child.status is None:
            raise Refusal("still_running", child=child.id)
        number = message.get("id")
        self._drop(child, lambda: connection.send({"re": number}))

    def _ping(self, connection: Connection, message: JsonObject, fds: list[int]) -> JsonObject:
        return {"pid": os.getpid(), "children": len(self.children), "slots": len(self.pump.slots)}

    # killing

    def _kill(self, connection: Connection, message: JsonObject, fds: list[int]) -> None:
        child = self._child(message)
        number = message.get("id")
        self._begin_kill(
            child, int(message["grace_ms"]), lambda job: connection.send({"re": number, "report": job.report})
        )

    def _begin_kill(self, child: Child, grace_ms: int, done: Callable[[KillJob], None]) -> KillJob:
        return self._start_job(child.id, grace_ms, done)

    def _start_job(self, id: int, grace_ms: int, done: Callable[[KillJob], None]) -> KillJob:
        """Kill what carries the mark of child `id`, which may be forgotten already."""

        def waits() -> bool:
            return child is not None and child.status is None and waits_for_terminal(child)

        def finished(job: KillJob) -> None:
            self._jobs.pop(key, None)
            done(job)

        self._job_count += 1
        key = self._job_count
        child = self.children.get(id)
        leader = child.pid if child is not None and child.pid in self._leaders else None
        front = child.find_program() if child is not None and leader is not None else None
        job = KillJob(
            self.loop, self._census, id, leader, front, waits, grace_ms, self._cgroup_home, self._haste, finished
        )
        if not job.finished:
            self._jobs[key] = job
        return job

    def _stop(self, connection: Connection, message: JsonObject, fds: list[int]) -> None:
        """Kill every tree and end; the answer names survivors."""
        number = message.get("id")
        self._end_all(
            int(message["grace_ms"]), lambda survivors: connection.send({"re": number, "survivors": survivors})
        )

    def _end_all(self, grace_ms: int, tell: Callable[[list[list[int]]], None]) -> None:
        """Kill every tree, those of forgotten children too, then end the keeper."""
        self._stopping = True
        survivors: list[list[int]] = []
        open_jobs: set[int] = set()

        def finished(job: KillJob) -> None:
            survivors.extend(job.report["survivors"])
            open_jobs.discard(job.child)
            if not open_jobs:
                end()

        def end() -> None:
            self.door.close()
            tell(survivors)
            self._leave(time.monotonic() + _LAST_WORDS_LIMIT_S)

        def counted(count: Count) -> None:
            ids = set(count.alive) | set(self.children)
            open_jobs.update(ids)
            if not ids:
                end()
            for id in ids:
                self._start_job(id, grace_ms, finished)

        self._census.ask(counted)

    # the end

    def _leave(self, latest: float) -> None:
        """End as soon as the server has, or can read, all that it was told; its loop may be busy with the ends of a thousand sessions."""
        if self._server is not None and self._server.has_unsent and time.monotonic() < latest:
            self.loop.after(_LAST_WORDS_S, lambda: self._leave(latest))
        else:
            self.loop.after(_LAST_WORDS_S, self.loop.stop)

    def _end_if_useless(self) -> None:
        alone = self._server is None and time.monotonic() - self._alone_since >= self._linger_s
        if alone and not self.children and not self._jobs:
            self.loop.stop()

    def _look_around(self) -> None:
        self._end_if_useless()
        self.door.restore()
        self.loop.after(_LOOK_AROUND_S, self._look_around)
