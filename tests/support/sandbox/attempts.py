"""Attempts to get out of a sandbox. Runs inside of one, with nothing but the standard library, and tells what came of each.

`python3 attempts.py CONFIG [NAMES]` prints one line of JSON for each attempt. The one who started it decides from outside what counts as an
escape: by a file or process out there, by a secret in what was returned, or, for calls that must fail, by their success.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Act = Callable[[], Any]
ATTEMPTS: dict[str, tuple[str, str, Act]] = {}
PROOFS = ("file", "secret", "process", "call", "protected")


class NotHere(Exception):
    """It cannot be tried on this machine."""


def attempt(claim: str, proof: str) -> Callable[[Act], Act]:
    def add(function: Act) -> Act:
        assert proof in PROOFS and function.__name__ not in ATTEMPTS
        ATTEMPTS[function.__name__] = (claim, proof, function)
        return function

    return add


def named(name: str, function: Act) -> Act:
    function.__name__ = name
    return function


libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = os.uname().machine == "aarch64"


def call(x86: int, arm: int | None, *arguments: Any) -> int:
    """A system call; raises OSError. None for a processor that lacks it."""
    number = arm if ARM else x86
    if number is None:
        raise NotHere
    result = libc.syscall(ctypes.c_long(number), *[_argument(each) for each in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def _argument(value: Any) -> Any:
    if isinstance(value, int):
        return ctypes.c_long(value)
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    return value


def run(*words: str, **more: Any) -> str:
    done = subprocess.run(words, capture_output=True, timeout=60, **more)
    if done.returncode != 0:
        raise OSError(errno.EPERM, (done.stdout + done.stderr).decode("utf-8", "replace")[-300:])
    return str((done.stdout + done.stderr).decode("utf-8", "replace"))


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(65536)


def write(path: str, data: bytes = b"changed") -> None:
    with open(path, "wb") as file:
        file.write(data)


# reading what is not for us

SECRETS = {
    "ssh_key": "{home}/.ssh/id_rsa",
    "aws_credentials": "{home}/.aws/credentials",
    "gnupg_ring": "{home}/.gnupg/secring.gpg",
    "gh_hosts": "{home}/.config/gh/hosts.yml",
    "netrc": "{home}/.netrc",
    "kube_config": "{home}/.kube/config",
    "start_file": "{home}/.bashrc",
    "own_tokens": "{own}/config/wsh/tokens.json",
    "own_policy": "{own}/config/wsh/policy.toml",
    "own_journal": "{own}/state/wsh/journal",
    "keeper_secret": "{own}/runtime/wsh/default.keeper.secret",
    "outside_file": "{outside}/secret",
    "shared_tmp": "{tmp_secret}",
    "shared_memory": "/dev/shm/{shm}",
}


def _read_secret(path: str) -> Act:
    return lambda: read(path.format(**C))


for _name, _path in SECRETS.items():
    attempt("reads", "secret")(named(f"read_{_name}", _read_secret(_path)))


@attempt("reads", "secret")
def read_by_symlink_in_the_workspace() -> Any:
    os.symlink(C["outside"] + "/secret", "link-out")
    return read("link-out")


@attempt("reads", "secret")
def read_by_symlinked_folder() -> Any:
    os.symlink(C["outside"], "folder-out")
    return read("folder-out/secret")


@attempt("reads", "secret")
def read_by_dots() -> Any:
    up = "/".join([".."] * 40)
    return read(up + C["outside"] + "/secret")


@attempt("reads", "secret")
def read_by_o_path_and_reopen() -> Any:
    fd = os.open(C["outside"] + "/secret", os.O_PATH)
    return read(f"/proc/self/fd/{fd}")


@attempt("reads", "secret")
def read_by_openat_of_an_o_path_folder() -> Any:
    fd = os.open(C["outside"], os.O_PATH | os.O_DIRECTORY)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=fd), 4096)


@attempt("reads", "secret")
def read_by_fchdir() -> Any:
    here = os.open(".", os.O_RDONLY)
    try:
        os.fchdir(os.open(C["outside"], os.O_PATH | os.O_DIRECTORY))
        return read("secret")
    finally:
        os.fchdir(here)


@attempt("reads", "secret")
def read_by_hard_link() -> Any:
    os.link(C["outside"] + "/secret", "hard")
    return read("hard")


@attempt("reads", "secret")
def read_by_hard_link_of_a_descriptor() -> Any:
    fd = os.open(C["outside"] + "/secret", os.O_PATH)
    os.link(f"/proc/self/fd/{fd}", "hard2", follow_symlinks=True)
    return read("hard2")


@attempt("reads", "secret")
def read_by_rename_into_the_workspace() -> Any:
    os.rename(C["outside"] + "/moved-in", "moved-in")
    return read("moved-in")


@attempt("reads", "secret")
def read_through_root_of_another_process() -> Any:
    return read(f"/proc/{C['victim']}/root{C['outside']}/secret")


@attempt("reads", "secret")
def read_through_root_of_init() -> Any:
    return read(f"/proc/1/root{C['outside']}/secret")


@attempt("reads", "secret")
def read_through_root_of_the_parent() -> Any:
    return read(f"/proc/{os.getppid()}/root{C['outside']}/secret")


@attempt("reads", "secret")
def read_through_root_of_self() -> Any:
    return read(f"/proc/self/root{C['outside']}/secret")


@attempt("reads", "secret")
def read_through_cwd_of_another_process() -> Any:
    return read(f"/proc/{C['victim']}/cwd/secret")


@attempt("reads", "secret")
def read_through_descriptor_of_another_process() -> Any:
    return read(f"/proc/{C['victim']}/fd/{C['victim_fd']}")


@attempt("reads", "secret")
def read_environment_of_another_process() -> Any:
    return read(f"/proc/{C['victim']}/environ")


@attempt("reads", "secret")
def read_memory_of_another_process() -> Any:
    with open(f"/proc/{C['victim']}/mem", "rb", buffering=0) as memory:
        memory.seek(C["victim_address"])
        return memory.read(64)


@attempt("reads", "secret")
def read_memory_by_process_vm_readv() -> Any:
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("@PN", ctypes.addressof(buffer), 64)
    remote = struct.pack("@PN", C["victim_address"], 64)
    call(310, 270, C["victim"], local, 1, remote, 1, 0)
    return buffer.raw


@attempt("reads", "secret")
def read_by_every_process_in_proc() -> Any:
    found = b""
    for name in os.listdir("/proc"):
        if name.isdigit():
            for part in ("environ", f"root{C['outside']}/secret", "cwd/secret"):
                try:
                    found += read(f"/proc/{name}/{part}")
                except OSError:
                    pass
    return found


@attempt("reads", "secret")
def read_by_open_by_handle_at() -> Any:
    handle = ctypes.create_string_buffer(8 + 128)
    struct.pack_into("=Ii", handle, 0, 128, 0)
    mount = ctypes.c_int()
    call(303, 264, -100, (C["outside"] + "/secret").encode(), handle, ctypes.byref(mount), 0)
    fd = call(304, 265, os.open("/", os.O_RDONLY), handle, os.O_RDONLY)
    return os.read(fd, 4096)


@attempt("reads", "secret")
def read_by_executing_a_helper() -> Any:
    return run("cat", C["outside"] + "/secret")


@attempt("reads", "secret")
def read_by_a_shells_redirection() -> Any:
    return run("sh", "-c", f"read line < {C['outside']}/secret; echo $line")


@attempt("reads", "secret")
def read_by_tar() -> Any:
    return run("sh", "-c", f"tar -C {C['outside']} -cf - secret")


@attempt("reads", "secret")
def read_by_git_worktree_files() -> Any:
    return run("git", "diff", "--no-index", "/dev/null", C["outside"] + "/secret")


@attempt("reads", "call")
def list_the_outside_folder() -> Any:
    return next(name for name in os.listdir(C["outside"]) if name == "secret")


@attempt("reads", "secret")
def read_inherited_descriptors() -> Any:
    found = b""
    for fd in range(3, 64):
        try:
            found += os.read(os.open(f"/proc/self/fd/{fd}/../secret", os.O_RDONLY), 100)
        except OSError:
            pass
        for up in (".", "..", "../.."):
            try:
                found += os.read(os.open(up + C["outside"] + "/secret", os.O_RDONLY, dir_fd=fd), 100)
            except OSError:
                pass
    return found


@attempt("reads", "secret")
def read_by_io_uring() -> Any:
    params = ctypes.create_string_buffer(120)
    ring = call(425, 425, 4, params)
    return f"a ring: {ring} {C['token']}"


@attempt("reads", "secret")
def read_system_passwords() -> Any:
    return read("/etc/shadow") and C["token"]


@attempt("reads", "secret")
def read_host_keys() -> Any:
    for name in os.listdir("/etc/ssh"):
        if name.endswith("_key"):
            read("/etc/ssh/" + name)
            return C["token"]
    raise PermissionError("no key")


@attempt("reads", "secret")
def read_kernel_memory() -> Any:
    return read("/proc/kcore")[:4] and C["token"]


@attempt("reads", "secret")
def read_disks() -> Any:
    for name in ("vda", "sda", "nvme0n1", "mem", "port", "kmsg"):
        try:
            read("/dev/" + name)
            return C["token"]
        except OSError:
            pass
    raise PermissionError("no disk")


def _race_symlink(act: Act) -> bytes:
    """Swap a name between a folder of ours and the outside while `act` uses it."""
    os.makedirs("race-a", exist_ok=True)
    write("race-a/secret", b"ours")
    stop = threading.Event()

    def swap() -> Any:
        while not stop.is_set():
            for target in ("race-a", C["outside"]):
                try:
                    os.symlink(target, "race.tmp")
                    os.rename("race.tmp", "race")
                except OSError:
                    pass

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = b""
        for _ in range(400):
            try:
                found += act() or b""
            except OSError:
                pass
        return found
    finally:
        stop.set()
        thread.join()


@attempt("reads", "secret")
def read_by_a_symlink_race() -> Any:
    return _race_symlink(lambda: read("race/secret"))


# changing what is not for us; each has a file of its own outside


def target() -> Any:
    return f"{C['outside']}/{CURRENT}"


@attempt("writes", "file")
def write_a_file() -> Any:
    write(target())


@attempt("writes", "file")
def append_to_a_file() -> Any:
    with open(target(), "ab") as file:
        file.write(b"x")


@attempt("writes", "file")
def truncate_a_file() -> Any:
    os.truncate(target(), 0)


@attempt("writes", "file")
def truncate_by_opening() -> Any:
    os.open(target(), os.O_WRONLY | os.O_TRUNC)


@attempt("writes", "file")
def remove_a_file() -> Any:
    os.unlink(target())


@attempt("writes", "file")
def rename_a_file() -> Any:
    os.rename(target(), target() + ".new")


@attempt("writes", "file")
def replace_a_file() -> Any:
    write("replacement")
    os.rename("replacement", target())


@attempt("writes", "file")
def exchange_files() -> Any:
    write("exchange")
    call(316, 276, -100, b"exchange", -100, target().encode(), 2)


@attempt("writes", "file")
def move_a_file_into_the_workspace() -> Any:
    os.rename(target(), "taken")


@attempt("writes", "file")
def link_a_file_and_write() -> Any:
    os.link(target(), "linked")
    write("linked")


@attempt("writes", "file")
def link_out_of_the_workspace() -> Any:
    write("new-name")
    os.link("new-name", target() + ".linked")


@attempt("writes", "file")
def make_a_file() -> Any:
    write(target() + ".made")


@attempt("writes", "file")
def make_a_folder() -> Any:
    os.mkdir(target() + ".folder")


@attempt("writes", "file")
def make_a_symlink() -> Any:
    os.symlink("/", target() + ".symlink")


@attempt("writes", "file")
def make_a_fifo() -> Any:
    os.mkfifo(target() + ".fifo")


@attempt("writes", "file")
def make_a_socket() -> Any:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(target() + ".socket")


@attempt("writes", "file")
def write_by_symlink() -> Any:
    os.symlink(target(), "write-out")
    write("write-out")


@attempt("writes", "file")
def write_by_a_reopened_descriptor() -> Any:
    fd = os.open(target(), os.O_PATH)
    write(f"/proc/self/fd/{fd}")


@attempt("writes", "file")
def write_by_a_read_only_descriptor() -> Any:
    fd = os.open(target(), os.O_RDONLY)
    write(f"/proc/self/fd/{fd}")


@attempt("writes", "file")
def write_by_mapping() -> Any:
    fd = os.open(target(), os.O_RDWR)
    mmap.mmap(fd, 4)[0:1] = b"X"


@attempt("writes", "file")
def write_by_tmpfile_and_link() -> Any:
    fd = os.open(".", os.O_TMPFILE | os.O_WRONLY)
    os.write(fd, b"x")
    os.link(f"/proc/self/fd/{fd}", target() + ".tmpfile", follow_symlinks=True)


@attempt("writes", "file")
def write_through_root_of_another_process() -> Any:
    write(f"/proc/{C['victim']}/root{target()}")


@attempt("writes", "file")
def write_through_cwd_of_another_process() -> Any:
    write(f"/proc/{C['victim']}/cwd/{CURRENT}")


@attempt("writes", "file")
def write_through_root_of_init() -> Any:
    write(f"/proc/1/root{target()}")


@attempt("writes", "file")
def write_by_cp() -> Any:
    write("source")
    run("cp", "source", target())


@attempt("writes", "file")
def write_by_dd() -> Any:
    run("dd", "if=/dev/zero", "of=" + target(), "count=1", "conv=notrunc")


@attempt("writes", "file")
def write_by_fallocate() -> Any:
    os.posix_fallocate(os.open(target(), os.O_WRONLY), 0, 100)


@attempt("writes", "file")
def write_by_copy_file_range() -> Any:
    write("range")
    os.copy_file_range(os.open("range", os.O_RDONLY), os.open(target(), os.O_WRONLY), 4)


@attempt("writes", "file")
def write_by_a_symlink_race() -> Any:
    name = CURRENT

    def act() -> Any:
        with open(f"race/{name}", "wb") as file:
            file.write(b"changed")

    _race_symlink(act)


@attempt("writes", "file")
def write_by_a_renamed_folder() -> Any:
    """Make a folder, go in, and have somebody move it: where is `..` then?"""
    os.makedirs("deep/er", exist_ok=True)
    fd = os.open("deep/er", os.O_RDONLY)
    os.rename("deep/er", "moved-up")
    up = "/".join([".."] * 40)
    os.open(up + target(), os.O_WRONLY | os.O_TRUNC, dir_fd=fd)


@attempt("writes", "file")
def write_start_file_of_the_shell() -> Any:
    with open(f"{C['home']}/.bashrc.{CURRENT}", "wb") as file:
        file.write(b"x")


@attempt("writes", "file")
def write_below_home() -> Any:
    os.makedirs(f"{C['home']}/.config/autostart.{CURRENT}")


@attempt("writes", "file")
def write_the_crontab_by_at() -> Any:
    run("sh", "-c", f"echo touch {target()}.at | at now")


@attempt("writes", "file")
def write_by_systemd_run() -> Any:
    run("systemd-run", "--user", "touch", target() + ".systemd")


@attempt("writes", "file")
def write_by_crontab() -> Any:
    run("sh", "-c", f"echo '* * * * * touch {target()}.cron' | crontab -")


@attempt("writes", "call")
def write_to_system_programs() -> Any:
    write("/usr/bin/wsh-was-here")
    if os.path.exists("/usr/bin/wsh-was-here"):
        os.unlink("/usr/bin/wsh-was-here")
    return True


@attempt("writes", "call")
def write_to_etc() -> Any:
    write("/etc/wsh-was-here")
    return True


@attempt("writes", "call")
def write_the_core_pattern() -> Any:
    write("/proc/sys/kernel/core_pattern", read("/proc/sys/kernel/core_pattern"))
    return True


@attempt("writes", "call")
def write_the_magic_key() -> Any:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    return True


@attempt("writes", "call")
def write_to_the_modprobe_path() -> Any:
    write("/proc/sys/kernel/modprobe", read("/proc/sys/kernel/modprobe"))
    return True


@attempt("writes", "call")
def write_release_agent_of_cgroups() -> Any:
    for root, _, files in os.walk("/sys/fs/cgroup"):
        for name in files:
            if name in ("release_agent", "cgroup.procs"):
                with open(os.path.join(root, name), "wb") as file:
                    file.write(b"0")
                return True
    raise PermissionError("no cgroups to write")


@attempt("writes", "call")
def make_a_device() -> Any:
    os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0))
    return True


# attributes


@attempt("attributes", "file")
def change_a_mode() -> Any:
    os.chmod(target(), 0o777)


@attempt("attributes", "file")
def change_a_mode_by_descriptor() -> Any:
    os.fchmod(os.open(target(), os.O_RDONLY), 0o777)


@attempt("attributes", "file")
def change_times() -> Any:
    os.utime(target(), (1, 1))


@attempt("attributes", "file")
def change_an_extended_attribute() -> Any:
    os.setxattr(target(), "user.wsh", b"x")


@attempt("attributes", "file")
def change_a_mode_by_fchmodat2() -> Any:
    call(452, 452, -100, target().encode(), 0o777, 0)


# protected paths of the project

PROTECTED = {
    "hooks": ".git/hooks/post-checkout",
    "git_config": ".git/config",
    "vscode": ".vscode/tasks.json",
    "wsh": ".wsh/policy.toml",
    "claude": ".claude/settings.json",
    "codex": ".codex/config.toml",
}


def _write_protected(path: str) -> Act:
    def act() -> Any:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path)

    return act


for _name, _path in PROTECTED.items():
    attempt("protected", "protected")(named(f"write_protected_{_name}", _write_protected(_path)))


@attempt("protected", "protected")
def move_the_repository_away() -> Any:
    os.rename(".git", "git-moved")
    os.makedirs(".git/hooks")
    write(".git/hooks/pre-commit")


@attempt("protected", "protected")
def exchange_the_repository() -> Any:
    os.makedirs("other-git/hooks", exist_ok=True)
    call(316, 276, -100, b".git", -100, b"other-git", 2)


@attempt("protected", "protected")
def replace_hooks_by_a_link() -> Any:
    os.rmdir(".git/hooks")
    os.symlink("/", ".git/hooks")


@attempt("protected", "protected")
def rename_over_the_config() -> Any:
    write("config.lock")
    os.rename("config.lock", ".git/config")


@attempt("protected", "protected")
def set_a_hook_by_git() -> Any:
    run("git", "config", "core.fsmonitor", "touch escaped")


@attempt("protected", "protected")
def remove_protected_by_rm() -> Any:
    run("rm", "-rf", ".vscode", ".claude", ".codex", ".wsh")


@attempt("protected", "protected")
def move_the_workspace_itself() -> Any:
    here = os.getcwd()
    os.rename(here, here + ".moved")


@attempt("protected", "protected")
def unmount_the_protection() -> Any:
    call(166, 39, b".git/hooks", 2)
    write(".git/hooks/x")


# processes


def _kill(number: int) -> Act:
    def act() -> Any:
        os.kill(C["victims"][CURRENT], number)

    return act


for _number in (signal.SIGTERM, signal.SIGKILL):
    attempt("signals", "process")(named(f"kill_by_{_number.name}", _kill(_number)))


@attempt("signals", "process")
def kill_by_pidfd() -> Any:
    signal.pidfd_send_signal(os.pidfd_open(C["victims"][CURRENT]), signal.SIGKILL)


@attempt("signals", "process")
def kill_by_queueing() -> Any:
    call(129, 138, C["victims"][CURRENT], 9, struct.pack("=iii", 9, 0, -1) + bytes(116))


@attempt("signals", "process")
def kill_by_tgkill() -> Any:
    call(234, 131, C["victims"][CURRENT], C["victims"][CURRENT], 9)


@attempt("signals", "process")
def kill_everybody_by_name() -> Any:
    run("sh", "-c", f"kill -9 {C['victims'][CURRENT]}")


@attempt("signals", "process")
def kill_by_owner_of_a_descriptor() -> Any:
    read_fd, write_fd = os.pipe()
    fcntl.fcntl(read_fd, fcntl.F_SETOWN, C["victims"][CURRENT])
    fcntl.fcntl(read_fd, 10, signal.SIGKILL)
    fcntl.fcntl(read_fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(write_fd, b"x")
    time.sleep(0.1)


@attempt("signals", "call")
def signal_the_keeper() -> Any:
    os.kill(C["keeper"], 0)
    if C["keeper"] in (1, 2):
        raise ProcessLookupError
    return read(f"/proc/{C['keeper']}/cmdline").index(b"keeper")


@attempt("privileges", "call")
def limit_another_process() -> Any:
    call(302, 261, C["victim"], 4, struct.pack("=QQ", 0, 0), 0)
    return True


@attempt("privileges", "call")
def lower_the_mark_by_prlimit() -> Any:
    """What the keeper knows a tree by: without it, and with no parent left, a process would outlive the kill of its session."""
    for which in (10, 15):
        call(302, 261, 0, which, struct.pack("=QQ", 1000, 1000), 0)
    return True


@attempt("privileges", "call")
def lower_the_mark_by_setrlimit() -> Any:
    for which in (10, 15):
        call(160, 164, which, struct.pack("=QQ", 1000, 1000))
    return True


@attempt("privileges", "call")
def trace_another_process() -> Any:
    call(101, 117, 16, C["victim"], 0, 0)
    return True


@attempt("privileges", "call")
def seize_another_process() -> Any:
    call(101, 117, 0x4206, C["victim"], 0, 0)
    return True


@attempt("privileges", "call")
def trace_the_parent() -> Any:
    call(101, 117, 16, os.getppid(), 0, 0)
    return True


@attempt("privileges", "call")
def take_a_descriptor_by_pidfd() -> Any:
    call(438, 438, os.pidfd_open(C["victim"]), C["victim_fd"], 0)
    return True


@attempt("privileges", "call")
def take_a_descriptor_of_the_parent() -> Any:
    call(438, 438, os.pidfd_open(os.getppid()), 0, 0)
    return True


@attempt("processes", "call")
def see_another_process() -> Any:
    return read(f"/proc/{C['victim']}/cmdline").index(b"victim")


# kernel interfaces

CLOSED = {
    "mount": (165, 40, b"none", b"/tmp", b"tmpfs", 0, 0),
    "bind_mount": (165, 40, b"/", b"/mnt", 0, 4096, 0),
    "remount_writable": (165, 40, 0, b"/", 0, 32, 0),
    "unmount": (166, 39, b"/proc", 2),
    "pivot_root": (155, 41, b".", b"."),
    "chroot": (161, 51, b"."),
    "open_tree": (428, 428, -100, b"/", 1),
    "fsopen": (430, 430, b"tmpfs", 0),
    "mount_setattr": (442, 442, -100, b"/", 0, bytes(32), 32),
    "new_user_namespace": (272, 97, 0x10000000),
    "new_mount_namespace": (272, 97, 0x00020000),
    "new_network_namespace": (272, 97, 0x40000000),
    "new_pid_namespace": (272, 97, 0x20000000),
    "new_cgroup_namespace": (272, 97, 0x02000000),
    "new_time_namespace": (272, 97, 0x80),
    "keyctl": (250, 219, 0, -3, 1, 0, 0),
    "add_key": (248, 217, b"user", b"wsh", b"x", 1, -3),
    "request_key": (249, 218, b"user", b"wsh", 0, -3),
    "bpf": (321, 280, 0, bytes(128), 128),
    "userfaultfd": (323, 282, 1),
    "perf": (298, 241, struct.pack("=IIQ", 1, 112, 0) + bytes(96), 0, -1, -1, 0),
    "fanotify": (300, 262, 0x200, 0),
    "io_uring": (425, 425, 4, bytes(120)),
    "kernel_log": (103, 116, 3, bytes(64), 64),
    "kernel_module": (313, 273, 0, b"", 0),
    "reboot": (169, 142, 0xFEE1DEAD, 672274793, 0, 0),
    "swap": (167, 224, b"/dev/zero", 0),
    "accounting": (163, 89, b"/tmp/x"),
    "host_name": (170, 161, b"escaped", 7),
    "quota": (179, 60, 0x800002, 0, 0, 0),
    "hang_up": (153, 58),
    "kcmp": (312, 272, 1, 1, 0, 0, 0),
    "clone3": (435, 435, bytes(88), 88),
    "newer_than_known": (999, 999),
}


def _closed(words: Any) -> Act:
    return lambda: (call(*words), True)


for _name, _words in CLOSED.items():
    attempt("privileges", "call")(named(f"call_{_name}", _closed(_words)))


@attempt("privileges", "call")
def clone_into_a_user_namespace() -> Any:
    pid = call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


@attempt("privileges", "call")
def unshare_by_program() -> Any:
    return run("unshare", "-Ur", "true") is not None


@attempt("privileges", "call")
def enter_the_namespaces_of_init() -> Any:
    call(308, 268, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
    return True


@attempt("privileges", "call")
def enter_the_namespaces_of_another() -> Any:
    call(308, 268, os.open(f"/proc/{C['victim']}/ns/mnt", os.O_RDONLY), 0)
    return True


@attempt("privileges", "call")
def nested_bubblewrap() -> Any:
    return run("bwrap", "--ro-bind", "/", "/", "true") is not None


@attempt("privileges", "call")
def become_root_by_su() -> Any:
    return run("su", "-c", "true", stdin=subprocess.DEVNULL) is not None and os.getuid() != 0


@attempt("privileges", "call")
def set_user_by_a_setuid_program() -> Any:
    if os.getuid() == 0:
        raise NotHere
    for name in ("/usr/bin/sudo", "/usr/bin/pkexec"):
        if os.path.exists(name):
            run(name, "-n", "true", stdin=subprocess.DEVNULL)
            return True
    raise PermissionError("no such program")


@attempt("privileges", "call")
def make_a_setuid_program_and_run_it() -> Any:
    run("cp", "/usr/bin/id", "own-id")
    os.chmod("own-id", 0o4755)
    if "euid=0" in run("./own-id") and os.getuid() != 0:
        return True
    raise PermissionError("nothing gained")


@attempt("privileges", "call")
def have_a_capability() -> Any:
    for line in read("/proc/self/status").decode().splitlines():
        if line.startswith(("CapEff", "CapPrm", "CapAmb")) and int(line.split()[1], 16):
            return line
    raise PermissionError("none")


@attempt("privileges", "call")
def gain_by_executing() -> Any:
    for line in read("/proc/self/status").decode().splitlines():
        if line.startswith("NoNewPrivs") and line.split()[1] != "1":
            return line
    raise PermissionError("not allowed")


@attempt("privileges", "call")
def change_user() -> Any:
    os.setuid(0 if os.getuid() else 1)
    return True


@attempt("privileges", "call")
def take_off_the_filter() -> Any:
    for line in read("/proc/self/status").decode().splitlines():
        if line.startswith("Seccomp:") and line.split()[1] != "2":
            return line
    raise PermissionError("it is on")


@attempt("privileges", "call")
def call_by_the_32_bit_door() -> Any:
    """int 0x80 with getpid (20): answered by a filter for another processor mode."""
    if ARM:
        raise NotHere
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\x48\x98\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_long)(address)()
    if result < 0:
        raise OSError(-result, "closed")
    return True


@attempt("privileges", "call")
def call_by_the_x32_door() -> Any:
    call(0x40000000 | 39, None)
    return True


# terminals


def _ioctl(request: int, argument: Any) -> Act:
    def act() -> Any:
        fd = os.open("/dev/tty", os.O_RDWR)
        fcntl.ioctl(fd, request, argument)
        return True

    return act


attempt("terminal", "call")(named("type_by_tiocsti", _ioctl(0x5412, b"x")))
attempt("terminal", "call")(named("paste_by_tioclinux", _ioctl(0x541C, b"\x03")))
attempt("terminal", "call")(named("take_the_console", _ioctl(0x541D, 0)))


@attempt("terminal", "call")
def type_by_tiocsti_with_high_bits() -> Any:
    call(16, 29, 0, 0x100005412, b"x")
    return True


@attempt("terminal", "call")
def type_by_tiocsti_on_standard_input() -> Any:
    fcntl.ioctl(0, 0x5412, b"x")
    return True


@attempt("terminal", "call")
def open_another_terminal() -> Any:
    fd = os.open(C["other_terminal"], os.O_RDWR | os.O_NOCTTY)
    os.write(fd, b"injected")
    return True


# sockets


def _connect(family: int, kind: int, address: Callable[[Any], Any], protocol: int = 0) -> Act:
    def act() -> Any:
        made = socket.socket(family, kind, protocol)
        made.settimeout(3)
        made.connect(address(C))
        made.send(b"hello")
        return made.recv(200)

    return act


INTERNET = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM, lambda c: ("127.0.0.1", c["tcp"])),
    "tcp_by_any_address": (socket.AF_INET, socket.SOCK_STREAM, lambda c: ("0.0.0.0", c["tcp"])),
    "udp": (socket.AF_INET, socket.SOCK_DGRAM, lambda c: ("127.0.0.1", c["udp"])),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM, lambda c: ("::1", c["tcp6"])),
    "udp6": (socket.AF_INET6, socket.SOCK_DGRAM, lambda c: ("::1", c["udp6"])),
}
for _name, (_family, _kind, _address) in INTERNET.items():
    attempt("network", "secret")(named(f"reach_{_name}", _connect(_family, _kind, _address)))


@attempt("network", "secret")
def reach_tcp_by_a_mapped_address() -> Any:
    return _connect(socket.AF_INET6, socket.SOCK_STREAM, lambda c: ("::ffff:127.0.0.1", c["tcp"]))()


@attempt("network", "secret")
def reach_tcp_by_a_shell() -> Any:
    return run("bash", "-c", f"exec 5<>/dev/tcp/127.0.0.1/{C['tcp']}; echo hello >&5; head -c 64 <&5")


@attempt("network", "call")
def listen_for_the_outside() -> Any:
    made = socket.socket()
    made.bind(("127.0.0.1", C["free_port"]))
    made.listen()
    return True


UNIX = ("path_outside", "path_inside", "abstract", "display", "bus", "agent", "docker", "keeper")


def _unix_address(name: str) -> Callable[[Any], Any]:
    return lambda c: c["unix"][name].replace("@", "\0")


for _name in UNIX:
    _reach = _connect(socket.AF_UNIX, socket.SOCK_STREAM, _unix_address(_name))
    attempt("sockets", "secret")(named(f"reach_unix_{_name}", _reach))


@attempt("sockets", "secret")
def send_to_unix_by_a_datagram_pair() -> Any:
    left, _right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.sendto(b"hello", C["unix"]["datagram"])
    return C["token"]


FAMILIES = {
    "raw": (socket.AF_INET, socket.SOCK_RAW, 1),
    "raw6": (socket.AF_INET6, socket.SOCK_RAW, 58),
    "packet": (17, socket.SOCK_RAW, 0x0300),
    "netlink_route": (16, socket.SOCK_RAW, 0),
    "netlink_audit": (16, socket.SOCK_RAW, 9),
    "vsock": (40, socket.SOCK_STREAM, 0),
    "crypto": (38, socket.SOCK_SEQPACKET, 0),
    "bluetooth": (31, socket.SOCK_RAW, 1),
    "unix_stream": (1, socket.SOCK_STREAM, 0),
    "unix_datagram": (1, socket.SOCK_DGRAM, 0),
    "xdp": (44, socket.SOCK_RAW, 0),
    "seqpacket_flags": (1, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0),
}


def _open_socket(words: Any) -> Act:
    return lambda: (socket.socket(*words), True)


for _name, _words in FAMILIES.items():
    attempt("sockets", "call")(named(f"open_{_name}_socket", _open_socket(_words)))


@attempt("sockets", "call")
def open_a_socket_with_high_bits() -> Any:
    call(41, 198, (1 << 32) | 1, 1, 0)
    return True


@attempt("sockets", "call")
def pass_descriptors_over_unix() -> Any:
    made = socket.socket(socket.AF_UNIX)
    made.connect(C["unix"]["path_outside"])
    made.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    return True


# objects between processes


@attempt("objects", "secret")
def read_shared_memory_of_system_v() -> Any:
    id = call(29, 194, C["shm_key"], 0, 0)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(id, None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise PermissionError(ctypes.get_errno(), "no")
    return ctypes.string_at(address, 64)


@attempt("objects", "call")
def read_a_message_queue_of_system_v() -> Any:
    call(68, 186, C["msg_key"], 0)
    return True


@attempt("objects", "call")
def open_a_posix_queue() -> Any:
    call(240, 180, C["queue"].encode(), os.O_RDWR, 0, 0)
    return True


@attempt("objects", "file")
def write_shared_memory() -> Any:
    write(f"/dev/shm/{C['shm']}.{CURRENT}")


def main() -> Any:
    global C, CURRENT
    with open(sys.argv[1]) as file:
        C = json.load(file)
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 and sys.argv[2] else list(ATTEMPTS)
    for name in wanted:
        CURRENT = name
        _, _, function = ATTEMPTS[name]
        try:
            value = function()
            if isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            told = {"done": True, "value": str(value)[:4000]}
        except NotHere:
            told = {"done": None}
        except Exception as problem:
            told = {"done": False, "value": repr(problem)[:300]}
        os.write(1, ("\n@@" + json.dumps({"name": name, **told}) + "\n").encode())


C: dict[str, Any] = {}
CURRENT = ""
if __name__ == "__main__":
    main()
