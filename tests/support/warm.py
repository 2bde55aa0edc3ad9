"""Quick starts of `wsh`: a process that has imported a server's modules forks for each start.

    WarmPopen([sys.executable, "-m", "wsh.cli.main", "server"], stdin=..., env=...)
    run_warm([sys.executable, "-m", "wsh.cli.main", "policy", "check"], text=True)
    WarmPopen([sys.executable, "-P", "-m", "wsh.workspace.index.build_child"], stdin=..., stdout=...)

Importing takes a server a second of processor time. Everything else is as in a process that was executed: its parent is
the caller, and words, environment, working folder, descriptors, session and status are its own, also as `/proc` shows
them. The keeper that such a server starts is forked as well, by a small process that has imported what a keeper does. Anything else that the interpreter itself would read at its start makes a start an ordinary one, but for one folder
with a `sitecustomize.py` on PYTHONPATH that says `LATE = True`: it is executed after the fork, when all modules are there.

A client that was forked so and wants a server forks itself for it.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextvars
import ctypes
import gc
import importlib
import inspect
import io
import json
import logging
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_CHILDREN = ("wsh.workspace.index.build_child", "wsh.workspace.search.scan_child")
_STARTS = (
    [sys.executable, "-m", "wsh.cli.main"],
    [sys.executable, "-P", "-m", "wsh.cli.main"],
    *([sys.executable, "-P", "-m", child] for child in _CHILDREN),
)
_CUSTOM = "sitecustomize"
_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
_CLONE_PARENT, _CLONE_CHILD_SETTID = 0x8000, 0x1000000
_THREAD_BYTES = 2048
_WORD_ROOM, _ENVIRON_ROOM = 1024, 32 * 1024
"""Bytes for the words and the environment of a start where `/proc` shows them; what is left of them are zeros."""
_KEEPER = [sys.executable, "-I", "-S", str(_ROOT / "src/wsh/process/keeper/main.py")]
_KEEPER_ENVIRON = {"PATH": os.defpath, "MALLOC_ARENA_MAX": "1"}
_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "TZ", "COVERAGE_")


class WarmPopen(subprocess.Popen[Any]):
    """As `subprocess.Popen`; a start of `python -m wsh.cli.main`, a builder or a scanner is forked from the warm process."""

    def _execute_child(self, *given: Any) -> None:
        # What Popen hands to itself has names, and an order that is its own.
        ordinary = super()._execute_child  # type: ignore[misc]
        told = inspect.signature(ordinary).bind(*given).arguments
        if isinstance(told["args"], tuple):  # as asyncio gives them
            told["args"] = list(told["args"])
        warm = _find_warm() if _is_plain(told) else None
        if warm is None:
            ordinary(*given)
            return
        self.pid = warm.start(*_read_order(told))
        self._child_created = True
        self._close_pipe_fds(*(told[name] for name in _PIPES))  # type: ignore[attr-defined]


class _OwnPopen(subprocess.Popen[Any]):
    """In a process that was forked from the warm one: a start of a server is a fork of the process itself."""

    def _execute_child(self, *given: Any) -> None:
        ordinary = super()._execute_child  # type: ignore[misc]
        told = inspect.signature(ordinary).bind(*given).arguments
        status = _start_keeper(told) if _is_keeper(told) else None
        if status is not None:
            self.returncode = status
            self._close_pipe_fds(*(told[name] for name in _PIPES))  # type: ignore[attr-defined]
            return
        # What such a file has changed in us it would change again; and libuv does not live on in a fork of one of its loops.
        changed = _find_custom(os.environ) is not None or "uvloop" in type(asyncio._get_running_loop()).__module__
        if changed or not _is_plain(told) or "server" not in told["args"]:
            ordinary(*given)
            return
        order = _read_order(told)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _forget_past()
                _become(*order)
                contextvars.Context().run(end_quickly, importlib.import_module("wsh.cli.main").main)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(1)
        self._child_created = True
        self._close_pipe_fds(*(told[name] for name in _PIPES))  # type: ignore[attr-defined]


def _is_keeper(told: Mapping[str, Any]) -> bool:
    """Whether it starts a keeper as a server does that nothing has changed."""
    args = told["args"]
    return (
        bool(_keepers)
        and args[: len(_KEEPER)] == _KEEPER
        and (told["env"], told["cwd"]) == (_KEEPER_ENVIRON, "/")
        and _size_of(args) < _WORD_ROOM
        and _find_custom(os.environ) is None
    )


def _start_keeper(told: Mapping[str, Any]) -> int | None:
    """Have one forked and wait until its starter has ended, with this status. None if none could be asked for."""
    *_, descriptors = _read_order(told)
    limits = [(number, resource.getrlimit(number)) for number in _LIMITS]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keepers:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        try:
            keepers.connect(_keepers[0])
            keepers.sendmsg([json.dumps([told["args"], limits]).encode()], rights)
            status = keepers.recv(64)
        except OSError:
            return None
        return int(status) if status else None


def _read_order(told: Mapping[str, Any]) -> tuple[list[str], Mapping[str, str], str, bool, list[int]]:
    """Words, environment, working folder, whether it leads a session, and the three descriptors."""
    ends = [told[name] for name in ("p2cread", "c2pwrite", "errwrite")]
    descriptors = [own if end == -1 else end for own, end in enumerate(ends)]
    environ = os.environ if told["env"] is None else told["env"]
    return (
        told["args"],
        dict(environ),
        os.fspath(told["cwd"] or os.getcwd()),
        bool(told["start_new_session"]),
        descriptors,
    )


def _is_plain(told: Mapping[str, Any]) -> bool:
    """Whether it starts `wsh` with this interpreter, and nothing that only the kernel or the interpreter could do."""
    args, env = told["args"], told["env"]
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        return False
    if (
        not any(args[: len(start)] == start for start in _STARTS)
        or told["preexec_fn"]
        or told["pass_fds"]
        or told["shell"]
    ):
        return False
    if any(told[name] not in (None, -1) for name in ("executable", "uid", "gid", "gids", "umask", "process_group")):
        return False
    environ = os.environ if env is None else env
    if not all(isinstance(word, str) for pair in environ.items() for word in pair):
        return False
    fits = _size_of(args) < _WORD_ROOM and _size_of(word for pair in environ.items() for word in pair) < _ENVIRON_ROOM
    customized = environ.get("PYTHONPATH") == os.environ.get("PYTHONPATH") or _find_custom(environ) is not None
    return fits and customized and _read_at_start(environ) == _read_at_start(os.environ)


def _find_custom(environ: Mapping[str, str]) -> Path | None:
    """The one folder on PYTHONPATH, if it is there for a `sitecustomize.py` that may be executed late."""
    folder = Path(environ.get("PYTHONPATH", os.devnull))
    file = folder / f"{_CUSTOM}.py"
    return folder if file.is_file() and "\nLATE = True\n" in file.read_text() else None


def customize(folder: Path, code: str) -> dict[str, str]:
    """The environment of a start that executes `code` before anything else, forked or not. It is written below `folder`."""
    site = folder / "site"
    site.mkdir()
    (site / f"{_CUSTOM}.py").write_text(f"{code}\nLATE = True\n")
    return {"PYTHONPATH": str(site)}


def _size_of(words: Iterable[str]) -> int:
    return sum(len(os.fsencode(word)) + 1 for word in words)


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    names = (name for name in environ if name.startswith(_READ_AT_START) and name != "PYTHONPATH")
    return {name: environ[name] for name in names}


def run_warm(
    words: list[str], *, input: Any = None, timeout: float = 60, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run` with `capture_output`."""
    given = {"stdin": None if input is None else subprocess.PIPE, **options}
    with WarmPopen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **given) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(words, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


class _Warm:
    """The warm process, and the socket that it takes orders from."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.variables = _read_at_start(os.environ)
        path = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * _ENVIRON_ROOM)
        words = [sys.executable, "-m", __name__, str(theirs.fileno()), "x" * _WORD_ROOM]
        # Not the folders of the test that comes first: whoever looks for its processes would find this one.
        environ = {**self.variables, **path, "PATH": os.environ.get("PATH", ""), "WSH_ROOM": "x" * _ENVIRON_ROOM}
        self._socket = ours
        self._turn = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(words, env=environ, pass_fds=(theirs.fileno(),), cwd=_ROOT)
        self.works = bool(ours.recv(64))
        """False where the C library is an unknown one: then every start is an ordinary one."""

    def start(
        self, words: list[str], environ: Mapping[str, str], cwd: str, new_session: bool, descriptors: list[int]
    ) -> int:
        order = json.dumps([words, dict(environ), cwd, new_session]).encode("utf-8", "surrogatepass")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with self._turn:
            self._socket.sendmsg([order], rights)
            answer = self._socket.recv(64)
        if not answer:
            raise RuntimeError("the process that forks for quick starts has ended")
        return int(answer)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(60)


_warm: _Warm | None = None


def _find_warm() -> _Warm | None:
    """The one of this process, started when it is wanted first; None on machines where it was not tried."""
    global _warm
    if _CLONE is None or not sys.platform.startswith("linux"):
        return None
    if _warm is None or _warm.owner != os.getpid() or _warm.variables != _read_at_start(os.environ):
        if _warm is not None and _warm.owner == os.getpid():
            _warm.close()
        _warm = _Warm()
        atexit.register(_warm.close)
    return _warm if _warm.works else None


# the warm process


def serve(orders: socket.socket) -> bool:
    """Fork for every order. True in a process that was forked, False when nobody gives orders any more."""
    number = _find_thread_number()
    orders.send(b"ready")
    while True:
        fds: array.array[int] = array.array("i")
        order, rights, _, _ = orders.recvmsg(8 * _ENVIRON_ROOM, socket.CMSG_SPACE(3 * fds.itemsize))
        if not order:
            return False
        for _, _, data in rights:
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
        leads, closed = os.pipe()
        pid = _fork_for_parent(number)
        if pid == 0:
            words, environ, cwd, new_session = json.loads(order.decode("utf-8", "surrogatepass"))
            _become(words, environ, cwd, new_session, list(fds))
            return True
        for fd in (*fds, closed):
            os.close(fd)
        # Whoever has the number may kill its group at once, so it has to be one: `_become` closes the pipe after that.
        os.read(leads, 1)
        os.close(leads)
        orders.send(str(pid).encode())


def _fork_for_parent(number: int) -> int:
    """As `os.fork`, but the new process is a child of our parent, which so waits for it as for any other.

    `number` is where the C library has this thread's number.
    """
    libc, api = ctypes.PyDLL(None), ctypes.pythonapi
    at = ctypes.c_void_p(number)
    api.PyOS_BeforeFork()
    # Processors differ in which of the last two words is the one that is used.
    pid = libc.syscall(_CLONE, _CLONE_PARENT | _CLONE_CHILD_SETTID | signal.SIGCHLD, None, None, at, at)
    if pid == 0:
        api.PyOS_AfterFork_Child()
    else:
        api.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("the warm process could not fork")
    return int(pid)


def _find_thread_number() -> int:
    """Where the C library keeps the kernel's number of this thread, which is another one after a fork."""
    start = threading.get_ident()
    words = (ctypes.c_int * (_THREAD_BYTES // 4)).from_address(start)
    found = [number for number, word in enumerate(words) if word == threading.get_native_id()]
    if len(found) != 1:
        raise RuntimeError("this C library keeps the number of a thread in an unknown place")
    return start + 4 * found[0]


_keepers: list[bytes] = []
"""The address of the process that forks keepers, once there is one."""
_past: list[object] = []
_path: list[str] = []


def _forget_past() -> None:
    """What a client has done is nothing to the server that it forks; nothing of it is taken apart, since its numbers are used again."""
    gc.freeze()
    _past.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    _past.extend((*logging.root.handlers, asyncio._get_running_loop()))
    logging.root.handlers.clear()
    atexit._clear()
    asyncio._set_running_loop(None)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _become(words: list[str], environ: Mapping[str, str], cwd: str, new_session: bool, fds: list[int]) -> None:
    """Everything that an executed process would have of its own."""
    if new_session:
        os.setsid()
    os.chdir(cwd)
    # Above the three, or one would be overwritten before it is copied.
    for number, fd in enumerate([os.dup2(fd, 1000 + number) for number, fd in enumerate(fds)]):
        os.dup2(fd, number)
    os.closerange(3, 1003)
    os.environ.clear()
    os.environ.update(environ)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        before = getattr(sys, name)
        raw = open(number, f"{mode}b", closefd=False)  # noqa: SIM115 - as long as we live
        lines = mode == "w" and (number == 2 or raw.isatty())
        stream = io.TextIOWrapper(raw, before.encoding, before.errors, line_buffering=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    _show(words, environ)
    sys.orig_argv[:] = words
    options = words.index("-m") + 1
    sys.argv[:] = [str(sys.modules[words[options]].__file__), *words[options + 1 :]]
    sys.path[:] = [*([] if "-P" in words[:options] else [cwd]), *_path]
    subprocess.Popen = _OwnPopen  # type: ignore[misc]
    custom = _find_custom(environ)
    if custom is not None and str(custom) not in sys.path:
        sys.path.insert(0, str(custom))
        sys.modules.pop(_CUSTOM, None)
        importlib.import_module(_CUSTOM)


def _show(words: list[str], environ: Mapping[str, str]) -> None:
    """Write words and environment where `/proc/PID/cmdline` and `environ` are read from."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    arg_start, arg_end, env_start, env_end = (int(fields[number]) for number in (45, 46, 47, 48))
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)
    held = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environ.items())
    for start, end, data in ((arg_start, arg_end, shown), (env_start, env_end, held)):
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, data, len(data))


def warm_up() -> None:
    """Import what a server and `wsh mcp` import, in their order, and make what every server would make anew and the same."""
    import uvloop  # noqa: F401 - to have it loaded

    import wsh.app.boot
    import wsh.app.compose
    import wsh.app.deferred as deferred
    import wsh.cli.main
    import wsh.cli.mcp
    import wsh.cli.request
    import wsh.cli.server
    import wsh.client.stdio_proxy  # noqa: F401 - to have it loaded

    deferred._import_mcp()
    deferred._import_rooms()
    import anyio._backends._asyncio  # noqa: F401 - to have it loaded
    import uvicorn.lifespan.off  # noqa: F401 - to have it loaded

    for child in _CHILDREN:
        importlib.import_module(child)
    from wsh.mcp.tool.contract import list_contract_tools

    list_contract_tools()
    # Tools of the tests bring a package along that jsonschema imports for two seconds if it is there, as it is not for our users.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # how Python marks a module that is not there
    import jsonschema  # noqa: F401 - to have it loaded

    _path[:] = sys.path[1:]
    gc.collect()
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing after a fork"


def warm_keepers() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process that forks keepers. It ends with the socket."""
    life, other = socket.socketpair()
    with other, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind("")
        door.listen()
        fds = (other.fileno(), door.fileno())
        program = str(Path(__file__).with_name("warm_keeper.py"))
        words = [*_KEEPER[:-1], program, *map(str, fds), _KEEPER[-1], "x" * _WORD_ROOM]
        process = subprocess.Popen(words, env=_KEEPER_ENVIRON, cwd="/", stdin=subprocess.DEVNULL, pass_fds=fds)
        _keepers[:] = [door.getsockname()]
    return process, life


def end_quickly(main: Callable[[], object]) -> None:
    """Run it and end as the interpreter would, without taking apart all that was imported, which costs as much as the fork."""
    try:
        status: object = main() or 0
    except SystemExit as end:
        status = end.code or 0
    if not isinstance(status, int):
        sys.exit(str(status))
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        warm_up()
        keepers, life = warm_keepers()
        forked = serve(orders)
        if forked:
            orders.detach()
            life.detach()
            keepers.returncode = 0  # it is not ours
    if not forked:
        life.close()
        keepers.wait(60)
    else:
        started = sys.modules[sys.orig_argv[sys.orig_argv.index("-m") + 1]]
        end_quickly(started.main)
