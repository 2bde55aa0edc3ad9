"""Reading and cutting many files at once: forked workers that take jobs from one queue and answer through a pipe each.

The builder owns them: they live as long as the iteration and are dead and reaped at its end, however it ends. A full
pipe holds its worker back, so memory stays bounded however slow the database is. Knows nothing of the database.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import signal
import struct
from collections.abc import Iterator

from wsh.workspace.file import entry
from wsh.workspace.index.plan import Job

_PARALLEL_FROM_FILES = 48
_BATCH = 8
_PIPE_BYTES = 1 << 20


def prepare_all(
    jobs: list[Job], root: str, max_file_bytes: int, workers: int = 0
) -> Iterator[tuple[int, entry.Prepared]]:
    """Each job's number and what its file became, each exactly once, in any order. No `workers` means one per core."""
    count = workers or len(os.sched_getaffinity(0))
    if count < 2 or len(jobs) < _PARALLEL_FROM_FILES:
        for number, job in enumerate(jobs):
            yield number, entry.prepare(root, job.path, max_file_bytes, job.sha256)
        return
    missing = set(range(len(jobs)))
    for number, prepared in _prepare_in_workers(jobs, root, max_file_bytes, count):
        if number in missing:
            missing.remove(number)
            yield number, prepared
    for number in sorted(missing):  # a worker died on one of these: do them without a grammar
        job = jobs[number]
        yield number, entry.prepare(root, job.path, max_file_bytes, job.sha256, parse=False)


def _prepare_in_workers(
    jobs: list[Job], root: str, max_file_bytes: int, count: int
) -> Iterator[tuple[int, entry.Prepared]]:
    queue = _Queue(len(jobs))
    pipes: dict[int, bytearray] = {}
    workers: list[int] = []
    try:
        for _ in range(count):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            try:
                fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                pass  # the user's pipes are used up; smaller ones only mean more waiting
            pid = os.fork()
            if pid == 0:
                _work(queue, write_end, jobs, root, max_file_bytes, [read_end, *pipes])
            os.close(write_end)
            workers.append(pid)
            pipes[read_end] = bytearray()
        poller = select.poll()
        for fd in pipes:
            poller.register(fd, select.POLLIN)
        while pipes:
            for fd, _ in poller.poll():
                part = os.read(fd, 1 << 18)
                if not part:
                    poller.unregister(fd)
                    os.close(fd)
                    del pipes[fd]
                    continue
                buffer = pipes[fd]
                buffer += part
                yield from _take_answers(buffer)
    finally:
        queue.close()
        for fd in pipes:
            os.close(fd)
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(pid, 0)


class _Queue:
    """Numbers from 0, handed out in batches to whichever process asks first.

    Hazard: the kernel guards the shared offset of a file on disk, but not that of a memfd: two readers at one instant
    get the same bytes. A record lock does, and unlike a token in a pipe it ends with the process that dies holding it.
    """

    def __init__(self, count: int) -> None:
        self._fd = os.memfd_create("wsh-index-jobs", os.MFD_CLOEXEC)
        _write_all(self._fd, b"".join(struct.pack("=I", number) for number in range(count)))
        os.lseek(self._fd, 0, os.SEEK_SET)

    def take(self) -> list[int]:
        """The next numbers; none when all were handed out."""
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            batch = os.read(self._fd, 4 * _BATCH)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)
        return [number for (number,) in struct.iter_unpack("=I", batch)]

    def close(self) -> None:
        os.close(self._fd)


def _take_answers(buffer: bytearray) -> Iterator[tuple[int, entry.Prepared]]:
    at = 0
    while len(buffer) - at >= 8:
        number, size = struct.unpack_from("=II", buffer, at)
        if len(buffer) - at - 8 < size:
            break
        with memoryview(buffer) as view:
            prepared = marshal.loads(view[at + 8 : at + 8 + size])
        at += 8 + size
        yield number, prepared
    del buffer[:at]


def _work(queue: _Queue, write_end: int, jobs: list[Job], root: str, max_file_bytes: int, inherited: list[int]) -> None:
    """The life of a worker; never returns."""
    try:
        for fd in inherited:
            os.close(fd)
        while batch := queue.take():
            for number in batch:
                job = jobs[number]
                answer = marshal.dumps(entry.prepare(root, job.path, max_file_bytes, job.sha256))
                _write_all(write_end, struct.pack("=II", number, len(answer)) + answer)
        os._exit(0)
    except BaseException:
        os._exit(1)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
