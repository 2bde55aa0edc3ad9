"""What a child is doing now, as the kernel knows it: foreground group, who waits for the terminal, jobs, modes.

Questions that /proc cannot answer for sure are answered `unknown`, never guessed. A program that passes the terminal on to another
one (sudo, script, ssh, tmux) always reads: what counts is the reader behind it, where that can be seen.
"""

from __future__ import annotations

import fcntl
import os
import termios
from struct import unpack_from

from wsh.process.keeper.child import Child
from wsh.process.keeper.tree.mark import read_stat

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    pass

    from wsh.wire.json.object import JsonObject


YES, NO, UNKNOWN = "yes", "no", "unknown"
_PLAIN = "read"  # yes, and in a plain read rather than a poll

_TIOCGPTN = 0x80045430
_MAX_THREADS = 64
_MAX_PROCESSES = 512

# numbers of the system calls in which a program can wait for input
_CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: "read",
        19: "read",
        7: "poll",
        271: "ppoll",
        23: "select",
        270: "pselect",
        232: "epoll",
        281: "epoll",
        441: "epoll2",
        426: "ring",
    },
    "aarch64": {63: "read", 65: "read", 73: "ppoll", 72: "pselect", 22: "epoll", 441: "epoll2", 426: "ring"},
}
# Programs that pass the terminal on: they read it all the time, for somebody else.
_RELAYS = frozenset(
    "sudo su doas pkexec runuser script ssh mosh-client telnet docker podman nerdctl kubectl oc lxc incus machinectl "
    "screen dtach abduco zellij socat picocom minicom cu adb unbuffer expect".split()
)
# Of these nothing but the inner terminal takes what is typed.
_WRAPPERS = frozenset("sudo su doas pkexec runuser script unbuffer".split())
_MOST_BELOW = 256
_VIRTUAL_BYTES = 20  # which of the words of `read_stat`

_calls = _CALLS.get(os.uname().machine, {})


def _read(path: str, limit: int = 4096) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def describe(pid: int) -> JsonObject:
    raw = _read(f"/proc/{pid}/cmdline", 16_384) or b""
    words = raw.split(b"\0")[:-1] if raw.endswith(b"\0") else raw.split(b"\0") if raw else []
    comm = (_read(f"/proc/{pid}/comm") or b"").rstrip(b"\n")
    return {
        "pid": pid,
        "argv": [word.decode("utf-8", "surrogateescape") for word in words],
        "comm": comm.decode("utf-8", "surrogateescape"),
    }


def inspect(child: Child, *, jobs: bool) -> JsonObject:
    """All that is known now. `jobs` costs a walk over /proc; the rest is a handful of reads."""
    if not child.is_terminal or child.status is not None or child.streams[0].fd < 0:
        return {"running": child.status is None}
    master = child.streams[0].fd
    state: JsonObject = {"running": True}
    try:
        local = termios.tcgetattr(master)[3]
        state["echo"] = bool(local & termios.ECHO)
        state["canonical"] = bool(local & termios.ICANON)
        group = os.tcgetpgrp(master)
    except (OSError, termios.error):
        return state
    members = _session_members(child.pid) if jobs else {}
    leader = read_stat(group) if group > 0 else None
    foreground = [pid for pid, pgrp in members.items() if pgrp == group]
    if not jobs and leader is not None:
        foreground = _group_below(group)
    if leader is not None and group not in foreground:
        foreground.insert(0, group)
    foreground.sort(key=lambda pid: (pid != group, pid))
    program = child.find_program()
    if program != child.pid:
        foreground = _without_wrapper(foreground, program)
        members = {pid: pgrp for pid, pgrp in members.items() if pid == program or not _wraps(pid, program)}
    if not foreground and group > 0 and not jobs:  # the group outlived its leader: only a walk finds it
        foreground = [pid for pid, pgrp in _session_members(child.pid).items() if pgrp == group]
    state["foreground_group"] = group
    if foreground:
        state["foreground"] = describe(foreground[0]) | {"cwd": _link(f"/proc/{foreground[0]}/cwd")}
        terminal = _terminal_name(master)
        reading, relayed, reader = look_for_reader(foreground[:16], terminal, raw=not state["canonical"])
        state["reading"] = YES if reading == _PLAIN else reading
        state["plain_read"] = reading == _PLAIN
        state["relayed"] = relayed
        state["reader"] = reader
    else:
        state["reading"] = NO if group > 0 and _is_gone(group) else UNKNOWN
    if jobs:
        own = members.get(program, child.pid)
        background = [pid for pid, pgrp in members.items() if pgrp not in (group, child.pid, own)]
        state["jobs"] = [describe(pid) for pid in sorted(background)[:_MAX_PROCESSES]]
    return state


def _is_gone(group: int) -> bool:
    """Whether the group has ended, and its shell has not taken the terminal back yet: nobody in front can read."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _wraps(pid: int, program: int) -> bool:
    stat = read_stat(program)
    return stat is not None and pid != program and (pid == int(stat[1]) or pid == _parent(int(stat[1])))


def _parent(pid: int) -> int:
    stat = read_stat(pid)
    return int(stat[1]) if stat is not None else 0


def _without_wrapper(pids: list[int], program: int) -> list[int]:
    """Without the processes that stand before the program; the program first, where it is among them."""
    left = [pid for pid in pids if not _wraps(pid, program)]
    return sorted(left, key=lambda pid: pid != program)


def waits_for_terminal(child: Child) -> bool:
    """Whether the leader itself sits in a call that only its terminal ends."""
    if not child.is_terminal or child.streams[0].fd < 0:
        return False
    return _reads(child.find_program(), _terminal_name(child.streams[0].fd)) in (YES, _PLAIN)


def _session_members(leader: int) -> dict[int, int]:
    """Live processes of the session as {pid: process group}."""
    found = {}
    session = str(leader).encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = read_stat(int(name))
            if stat is not None and stat[3] == session and stat[0] not in (b"Z", b"X"):
                found[int(name)] = int(stat[2])
    return found


def _group_below(leader: int) -> list[int]:
    """The leader and those below it that are still of its group, without a walk over all of /proc.

    A script without job control starts its programs in its own group: it waits for them, they read the terminal.
    """
    found = [leader]
    for pid in found:
        children = _read(f"/proc/{pid}/task/{pid}/children") or b""
        for word in children.split():
            stat = read_stat(int(word))
            if stat is not None and int(stat[2]) == leader and stat[0] not in (b"Z", b"X"):
                found.append(int(word))
        if len(found) >= _MAX_THREADS:
            break
    return found


def _terminal_name(master: int) -> str:
    number = unpack_from("I", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))[0]
    return f"/dev/pts/{number}"


def look_for_reader(pids: list[int], terminal: str, *, raw: bool = False) -> tuple[str, bool, int | None]:
    """Does one of these wait for the terminal, is a relay among them (then the answer is about what is behind it), and which one waits?"""
    answers, relayed = [], False
    for pid in pids:
        answer, behind = _reads_itself(pid, terminal, raw)
        answers.append(answer)
        relayed = relayed or behind
    found = _best(answers)
    if found == NO:
        # `su -c` and `setsid` start their program in a session of its own, where it still reads our terminal.
        found = _best([_reads(pid, terminal) for pid in _other_sessions(pids)])
        return found, relayed, None
    return found, relayed, pids[answers.index(found)] if found in (YES, _PLAIN) else None


def _best(answers: list[str]) -> str:
    for sure in (_PLAIN, YES):
        if sure in answers:
            return sure
    return UNKNOWN if UNKNOWN in answers else NO


def _reads_itself(pid: int, terminal: str, raw: bool, depth: int = 0) -> tuple[str, bool]:
    """As `_reads`; for a relay, what the reader behind it does.

    Whether it is a relay does not depend on what it does at this moment: one that copies a byte just now reads nothing.
    """
    answer = _reads(pid, terminal)
    comm = (_read(f"/proc/{pid}/comm") or b"").decode("utf-8", "replace").strip()
    inner = _inner_terminals(pid)
    if answer == _PLAIN and not (raw and inner):
        return answer, False  # a question of its own, such as for a password
    if comm.startswith("tmux"):
        return UNKNOWN, True
    relay = bool(inner) or comm in _RELAYS
    if not relay or answer == NO:
        return answer, relay
    if not inner or depth > 4:
        return UNKNOWN, True
    behind = _best([_reads_inside(pid, number, depth + 1) for number in inner])
    if behind == NO and comm not in _WRAPPERS:
        return UNKNOWN, True  # it may want something for itself
    return behind, True


def _inner_terminals(pid: int) -> list[int]:
    """Numbers of the terminals whose other end that process holds; none if that cannot be seen."""
    found = []
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
    for name in names[:_MOST_BELOW]:
        if (_link(f"/proc/{pid}/fd/{name}") or "").endswith("ptmx"):
            for row in (_read(f"/proc/{pid}/fdinfo/{name}") or b"").split(b"\n"):
                if row.startswith(b"tty-index:"):
                    found.append(int(row.split()[1]))
    return sorted(set(found))


def _reads_inside(relay: int, number: int, depth: int) -> str:
    """Whether the foreground of an inner terminal waits for it."""
    device = str((number & 0xFF) | (136 << 8) | ((number & ~0xFF) << 12)).encode()
    stats = [(pid, read_stat(pid)) for pid in _all_below([relay])]
    living = [(pid, stat) for pid, stat in stats if stat is not None and len(stat) > 5 and stat[0] not in (b"Z", b"X")]
    front = [pid for pid, stat in living if stat[4] == device and stat[2] == stat[5]]
    if not front:
        return NO if living else UNKNOWN  # the relay is about to start its program, or the program has just ended
    terminal = f"/dev/pts/{number}"
    found = _best([_reads_itself(pid, terminal, False, depth)[0] for pid in front[:16]])
    if found == NO:
        found = _best([_reads(pid, terminal) for pid in _other_sessions(front)])
    return found


def _all_below(pids: list[int]) -> list[int]:
    """Everything that descends from these, themselves left out."""
    found = list(pids)
    for pid in found:
        children = _read(f"/proc/{pid}/task/{pid}/children") or b""
        found += [int(word) for word in children.split()]
        if len(found) >= _MOST_BELOW:
            break
    return found[len(pids) :]


def _other_sessions(pids: list[int]) -> list[int]:
    """Descendants of a foreground group that have left its session."""
    own = read_stat(pids[0]) if pids else None
    if own is None:
        return []
    stats = [(pid, read_stat(pid)) for pid in _all_below(pids)]
    return [pid for pid, stat in stats if stat is not None and stat[3] != own[3] and stat[0] not in (b"Z", b"X")]


def _reads(pid: int, terminal: str) -> str:
    """Whether a thread of that process is blocked until the terminal has input."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:_MAX_THREADS]
    except OSError:
        return NO
    answer = NO
    for thread in threads:
        one = _thread_reads(pid, thread, terminal)
        if one in (YES, _PLAIN):
            return one
        if one == UNKNOWN:
            answer = UNKNOWN
    return answer


def _thread_reads(pid: int, thread: str, terminal: str) -> str:
    base = f"/proc/{pid}/task/{thread}"
    line = _read(f"{base}/syscall", 256)
    if line is None:
        if (_read(f"{base}/wchan") or b"") == b"n_tty_read":
            return YES
        return NO if _has_ended(pid, thread) else UNKNOWN
    words = line.split()
    if not words or not words[0].lstrip(b"-").isdigit():
        return NO  # "running"
    call = _calls.get(int(words[0])) if _calls else UNKNOWN
    if call is None or len(words) < 6:
        return NO
    if call == UNKNOWN or call == "ring":
        return UNKNOWN
    args = [int(word, 16) for word in words[1:7]]
    if call == "read":
        return _PLAIN if _is_terminal(pid, args[0], terminal) else NO
    try:
        fds, forever = _waits_for(pid, call, args)
    except (OSError, ValueError, IndexError):
        return NO if _has_ended(pid, thread) else UNKNOWN
    if not any(_is_terminal(pid, fd, terminal) for fd in fds):
        return NO
    return YES if forever else UNKNOWN


def _has_ended(pid: int, thread: str) -> bool:
    """Whether the thread or its whole process ended while it was looked at.

    One that is ending has no memory left; from then on newer kernels show what it does to nobody but root.
    """
    stat = read_stat(pid)
    if stat is None or stat[0] in (b"Z", b"X") or stat[_VIRTUAL_BYTES : _VIRTUAL_BYTES + 1] == [b"0"]:
        return True
    return not os.path.exists(f"/proc/{pid}/task/{thread}")


def _is_terminal(pid: int, fd: int, terminal: str) -> bool:
    return _link(f"/proc/{pid}/fd/{fd}") in (terminal, "/dev/tty")


def _waits_for(pid: int, call: str, args: list[int]) -> tuple[list[int], bool]:
    """Descriptors whose input the call waits for, and whether it waits without a time limit."""
    if call in ("poll", "ppoll"):
        count = min(args[1], 256)
        data = _memory(pid, args[0], count * 8)
        fds = [fd for fd, events in (unpack_from("<ih", data, 8 * i) for i in range(count)) if events & 1 and fd >= 0]
        forever = args[2] == 0 if call == "ppoll" else args[2] & 0x80000000 != 0
        return fds, forever
    if call in ("select", "pselect"):
        if not args[1]:
            return [], True
        count = min(args[0], 1024)
        bits = int.from_bytes(_memory(pid, args[1], (count + 7) // 8), "little")
        return [fd for fd in range(count) if bits >> fd & 1], args[4] == 0
    info = _read(f"/proc/{pid}/fdinfo/{args[0]}", 65_536)
    if info is None:
        raise OSError("no fdinfo")
    watched = []
    for row in info.split(b"\n"):
        words = row.split()
        if len(words) >= 4 and words[0] == b"tfd:" and int(words[3], 16) & 1:
            watched.append(int(words[1]))
    return watched, args[3] == 0 if call == "epoll2" else args[3] & 0x80000000 != 0


def _memory(pid: int, address: int, count: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(fd, count, address)
    finally:
        os.close(fd)
    if len(data) < count:
        raise ValueError("short")
    return data
