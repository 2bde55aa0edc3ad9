"""Killing trees: everything that carries the mark, and nothing else."""

from __future__ import annotations

import asyncio
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from tests.support.process.keeper import opened, said, shell
from tests.support.waiting import until
from tests.support.weak import weakly
from wsh.process import ChildHandle, KeeperClient, KeeperOptions, SpawnSpec
from wsh.process.keeper.tree import cgroup, taskkill
from wsh.process.keeper.tree.haste import Haste
from wsh.process.keeper.tree.mark import ID_BITS, is_alive, read_mark
from wsh.wire.system.place import Places

# each hides from a different way of finding a tree; {} is where it writes its pid once it is out of reach
_HIDERS = {
    "setsid": "setsid sh -c 'echo $$ >> {}; exec sleep 300' &",
    "double fork": "(setsid sh -c '(echo $(exec sh -c \"echo \\$PPID\") >> {}; exec sleep 300) & exit' &)",
    "env -i": "env -i PATH=$PATH setsid sh -c 'echo $$ >> {}; exec sleep 300' &",
    "trap": "sh -c \"trap '' TERM HUP INT; echo \\$\\$ >> {}; while :; do sleep 1; done\" &",
    "fifty": "i=0; while [ $i -lt 50 ]; do sh -c 'echo $$ >> {}; exec sleep 300' & i=$((i+1)); done",
    "stopped": "sh -c 'echo $$ >> {}; kill -STOP $$; sleep 300' &",
    "closed": 'setsid python3 -c \'import os; open("{}", "a").write(str(os.getpid()) + "\\n"); '
    'os.closerange(0, 64); os.execve("/bin/sleep", ["sleep", "300"], {{}})\' &',
}
if os.path.exists("/bin/bash"):
    # Each lowers more of what it inherited before it hides.
    _HIDERS |= {
        "soft limit": "bash -c 'ulimit -S -R 1000; exec setsid sh -c \"echo \\$\\$ >> {}; exec sleep 300\"' &",
        "one mark": "bash -c 'ulimit -R 1000; setsid -f sh -c \"echo \\$\\$ >> {}; exec sleep 300\"'",
        "both marks": "bash -c 'ulimit -R 1000; ulimit -x 1000; setsid sh -c \"echo \\$\\$ >> {}; exec sleep 300\" & wait' &",
    }
_COUNT = {"fifty": 50}
if os.geteuid() == 0:
    _HIDERS["other user"] = (
        "exec 3>> {}; env -i setsid setpriv --reuid=65534 --clear-groups sh -c 'echo $$ >&3; exec sleep 300' &"
    )


def write_pids(note: Path, count: int) -> list[int]:
    """The pids in `note`, or none as long as they are fewer than `count`."""
    found = [int(line) for line in note.read_text().split()] if note.exists() else []
    return found if len(found) >= count else []


async def spawn_hider(keeper: KeeperClient, kind: str, note: Path) -> tuple[ChildHandle, list[int]]:
    child = await keeper.spawn(shell(_HIDERS[kind].format(note) + "\nwhile :; do sleep 1; done"))
    await until(lambda: write_pids(note, _COUNT.get(kind, 1)))
    return child, write_pids(note, 1)


@pytest.mark.parametrize("kind", sorted(_HIDERS))
async def test_no_process_of_the_tree_survives(keeper: KeeperClient, tmp_path: Path, kind: str) -> None:
    child, pids = await spawn_hider(keeper, kind, tmp_path / "pids")
    assert all(is_alive(pid) for pid in pids)
    report = await keeper.kill_tree(child, grace_ms=100)
    assert report.survivors == ()
    assert not any(is_alive(pid) for pid in [child.pid, *pids])
    await child.exited


_FORGER = """
import os, resource, sys, time
for _ in range(2):
    if os.fork():
        break
    os.setsid()
    for which in (10, 15):
        resource.setrlimit(which, (int(sys.argv[1]), int(sys.argv[1])))
    with open(sys.argv[2], "a") as note:
        note.write(f"{os.getpid()}\\n")
time.sleep(300)
"""


async def test_who_puts_on_the_mark_of_an_earlier_child_dies_with_its_own(keeper: KeeperClient, tmp_path: Path) -> None:
    earlier = await keeper.spawn(shell("echo ready; read x; exit 9"))
    mark, note = str(keeper.mark_base + earlier.id), tmp_path / "pids"
    words = [sys.executable, "-c", _FORGER, mark, str(note)]
    child = await keeper.spawn(SpawnSpec(words, "/", {"PATH": os.environ["PATH"]}))
    await until(lambda: write_pids(note, 2))
    pids = write_pids(note, 2)
    assert {read_mark(pid) for pid in pids} == {int(mark)}
    report = await keeper.kill_tree(child, grace_ms=100)
    assert report.survivors == ()
    assert not any(is_alive(pid) for pid in [child.pid, *pids])
    await earlier.write_all(b"\n")
    assert (await earlier.exited).code == 9


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_hundreds_of_kills_leave_no_survivor_and_touch_nobody_else(
    places: Places, tmp_path: Path, torture: bool
) -> None:
    kinds = sorted(_HIDERS)
    rounds = 200 if torture else len(kinds)

    async with opened(places) as keeper:
        bystander = await keeper.spawn(shell("setsid sleep 301 & echo ready; read x; exit 9"))
        await said(bystander, b"ready")
        ours = await asyncio.create_subprocess_exec("sleep", "300", start_new_session=True)
        try:
            for number in range(rounds):
                kind = kinds[number % len(kinds)]
                child, pids = await spawn_hider(keeper, kind, tmp_path / f"pids{number}")
                report = await keeper.kill_tree(child, grace_ms=50)
                assert report.survivors == (), kind
                assert not any(is_alive(pid) for pid in [child.pid, *pids]), kind
                await child.exited
                await keeper.forget(child)
            assert ours.returncode is None and is_alive(ours.pid)
            assert bystander.running
            await bystander.write_all(b"\n")
            assert (await bystander.exited).code == 9
        finally:
            ours.kill()
            await ours.wait()


async def test_two_trees_die_at_once_without_waiting_for_each_other(keeper: KeeperClient) -> None:
    stubborn = await keeper.spawn(shell("trap '' TERM HUP; echo ready; while :; do sleep 1; done"))
    meek = await keeper.spawn(shell("echo ready; sleep 300"))
    await said(stubborn, b"ready")
    await said(meek, b"ready")
    slow = asyncio.ensure_future(keeper.kill_tree(stubborn, grace_ms=60_000))
    await keeper.kill_tree(meek)
    assert not slow.done()
    assert (await keeper.kill_tree(stubborn, grace_ms=0)).forced
    assert (await slow).survivors == ()


async def test_an_interactive_shell_dies_long_before_the_grace_ends(keeper: KeeperClient) -> None:
    for _ in range(20):
        child = await keeper.spawn(SpawnSpec(["bash", "--norc", "-i"], "/", {"PATH": os.environ["PATH"]}))
        await until(lambda child=child: child.ring.readable())  # type: ignore[misc]
        report = await keeper.kill_tree(child, grace_ms=60_000)
        assert report.forced == () and report.duration_ms < 30_000
        await child.exited
        await keeper.forget(child)


async def test_killing_what_has_ended_is_success(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("exit 3"))
    await child.exited
    report = await keeper.kill_tree(child)
    assert (report.survivors, report.signalled) == ((), 0)
    assert (await child.exited).code == 3


async def test_a_kill_with_no_grace_comes_at_once(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("trap '' TERM HUP; echo ready; while :; do sleep 1; done"))
    await said(child, b"ready")
    report = await keeper.kill_tree(child, grace_ms=0)
    assert report.forced and report.survivors == ()
    assert (await child.exited).signal_name == "SIGKILL"


async def test_a_process_that_forks_on_and_on_is_caught(keeper: KeeperClient) -> None:
    relay = "import os, signal\n" + "for s in (1, 15): signal.signal(s, signal.SIG_IGN)\n"
    relay += "os.setsid() if os.getpid() != os.getsid(0) else None\nprint('ready', flush=True)\n"
    relay += "while True:\n    if os.fork(): os._exit(0)\n    os.setsid()\n    __import__('time').sleep(0.002)\n"
    child = await keeper.spawn(SpawnSpec([sys.executable, "-c", relay], "/", {"PATH": os.environ["PATH"]}))
    await said(child, b"ready")
    report = await keeper.kill_tree(child, grace_ms=20)
    assert report.survivors == ()
    await asyncio.sleep(0.1)
    base = keeper.mark_base
    marks = [read_mark(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    assert not [mark for mark in marks if mark and base <= mark < base + (1 << ID_BITS)]


BOMB = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NPROC, (int(sys.argv[1]),) * 2)
os.setuid(54322)
print("ready", flush=True)
until = time.monotonic() + 100
while time.monotonic() < until:
    try:
        if os.fork() == 0 and os.getpid() % 3 == 0:
            os.setsid()
        if os.fork() == 0 and os.fork():
            os._exit(0)
        os.waitpid(-1, os.WNOHANG)
    except OSError:
        pass
    time.sleep(0.002)
"""


# The larger one would keep the processor from all tests beside it.
@pytest.mark.parametrize("size", [40, pytest.param(300, marks=pytest.mark.accept)])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a user of its own for the limit of processes")
async def test_a_tree_that_fills_each_place_that_a_dead_process_leaves_is_caught(
    keeper: KeeperClient, size: int
) -> None:
    words = [sys.executable, "-c", BOMB, str(size)]
    child = await keeper.spawn(SpawnSpec(words, "/", {"PATH": os.environ["PATH"]}))
    await said(child, b"ready")
    await until(lambda: len(_processes_of(54322)) > size // 3, "the processes")
    report = await keeper.kill_tree(child, grace_ms=20)
    assert report.survivors == () and _processes_of(54322) == []
    await until(lambda: os.sched_getscheduler(keeper.pid) == os.SCHED_OTHER, "the keeper to want no more than others")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may ask for real time")
def test_the_processor_comes_first_to_a_keeper_until_its_last_tree_is_ended_and_not_where_that_could_kill_it() -> None:
    haste = Haste(resource.RLIM_INFINITY)
    haste.begin(1)
    haste.begin(2)
    haste.end(1)
    try:
        assert os.sched_getscheduler(0) == os.SCHED_RR | os.SCHED_RESET_ON_FORK
    finally:
        haste.end(2)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    limited = Haste(200_000)
    limited.begin(1)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    limited.end(1)


def _processes_of(user: int) -> list[int]:
    found = psutil.process_iter(["uids", "status"])
    return [one.pid for one in found if one.info["uids"].real == user and one.info["status"] != psutil.STATUS_ZOMBIE]


async def test_every_descendant_carries_the_mark_of_its_child_alone(keeper: KeeperClient, tmp_path: Path) -> None:
    child, pids = await spawn_hider(keeper, "env -i", tmp_path / "pids")
    assert {read_mark(pid) for pid in [child.pid, *pids]} == {keeper.mark_base + child.id}
    assert keeper.mark_base >= 1 << 50
    assert read_mark(keeper.pid) == read_mark(os.getpid())


async def test_the_tree_of_a_dead_server_s_headless_command_is_killed(places: Places, tmp_path: Path) -> None:
    async with opened(places) as keeper:
        note = tmp_path / "pid"
        script = f"setsid sh -c 'echo $$ > {note}; exec sleep 300'"
        spec = SpawnSpec(["sh", "-c", script], "/", {"PATH": os.environ["PATH"]}, terminal=False, dies_with_server=True)
        child = await keeper.spawn(spec)
        await until(lambda: write_pids(note, 1))
        await keeper.aclose()
        await until(lambda: not is_alive(child.pid) and not is_alive(write_pids(note, 1)[0]))


def test_on_windows_the_tree_is_left_to_taskkill() -> None:
    seen: list[Sequence[str]] = []

    def answer(code: int, text: str) -> Callable[[Sequence[str]], tuple[int, str]]:
        def run(argv: Sequence[str]) -> tuple[int, str]:
            seen.append(argv)
            return code, text

        return run

    assert taskkill.kill_tree(4711, answer(0, "SUCCESS")) is None
    assert seen == [["taskkill", "/pid", "4711", "/T", "/F"]]
    assert taskkill.kill_tree(1, answer(128, 'ERROR: The process "1" not found.')) is None
    assert taskkill.kill_tree(1, answer(1, "ERROR: Access is denied.")) == "ERROR: Access is denied."


def test_a_cgroup_takes_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    """Driven on plain files: what is written where, in which order, and that a stranger is moved back."""
    group = tmp_path / "wsh-1-2"
    group.mkdir()
    for path in (tmp_path / "cgroup.procs", group / "cgroup.procs", group / "cgroup.kill", group / "cgroup.freeze"):
        path.touch()

    def belongs(pid: int) -> bool:
        if pid == 13:
            (group / "cgroup.procs").write_text("11\n13\n666\n")  # as the kernel would list it: a number was reused
        return pid in {11, 13}

    done: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgroup, "_list_all", lambda: [11, 12, 13])
        cgroup._kill(str(tmp_path), str(group), belongs, lambda: done.append(True))
    assert (tmp_path / "cgroup.procs").read_text() == "666"
    assert ((group / "cgroup.kill").read_text(), (group / "cgroup.freeze").read_text(), done) == ("1", "0", [True])


def test_where_a_cgroup_can_be_written_a_whole_tree_dies_in_it() -> None:
    home = cgroup.find_home()
    process = subprocess.Popen(["sleep", "300"])
    try:
        if home is None:  # nothing may be made here, and nothing is
            return
        cgroup._kill(home, f"{home}/wsh-test-{process.pid}", lambda pid: pid == process.pid, lambda: None)
        assert process.wait(60) == -9
        cgroup.remove(home, f"wsh-test-{process.pid}")
        assert not Path(home, f"wsh-test-{process.pid}").exists()
    finally:
        process.kill()
        process.wait()


LIMITED = """
import asyncio, os, resource, sys
from pathlib import Path
from tests.process.test_kill import _HIDERS, spawn_hider
from tests.support.process.keeper import opened
from wsh.process.keeper.tree.mark import is_alive
from wsh.wire.system.place import find_places

async def main() -> None:
    assert resource.getrlimit(15) == (200000, 200000)
    async with opened(find_places()) as keeper:
        for number, kind in enumerate(sorted(_HIDERS)):
            child, pids = await spawn_hider(keeper, kind, Path(sys.argv[1]) / f"pids{number}")
            report = await keeper.kill_tree(child, grace_ms=100)
            left = [pid for pid in [child.pid, *pids] if is_alive(pid)]
            assert report.survivors == () and not left, (kind, report, left)
            print(kind)

asyncio.run(main())
"""


def test_trees_die_whole_where_a_lower_limit_forbids_the_mark(places: Places, tmp_path: Path) -> None:
    command = [*weakly(), "prlimit", "--rttime=200000:200000", sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.splitlines() == sorted(_HIDERS), done.stderr + done.stdout


async def test_what_bears_no_trace_of_its_child_ends_with_the_keeper(places: Places, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    keeper = await KeeperClient.open(places, KeeperOptions(linger_s=1.0))
    script = f"ulimit -R 1000; ulimit -x 1000; setsid -f env -i sh -c 'echo $$ >> {note}; exec sleep 300'; read x"
    child = await keeper.spawn(SpawnSpec(["bash", "-c", script], "/", {"PATH": os.environ["PATH"]}))
    await until(lambda: write_pids(note, 1))
    (pid,) = write_pids(note, 1)
    await keeper.kill_tree(child, grace_ms=100)
    await keeper.stop(grace_ms=100)
    await until(lambda: not is_alive(pid))


STEAL = """
import sys
from wsh.process.launch import connect
from wsh.process.spec import KeeperOptions
from wsh.wire.system.place import find_places
try:
    connect(find_places(), KeeperOptions())
    said = "taken"
except Exception as problem:
    said = str(problem)
open(sys.argv[1], "w").write(said)
"""


async def test_what_a_keeper_started_does_not_become_its_server(places: Places, tmp_path: Path) -> None:
    async with opened(places) as keeper:
        note = tmp_path / "said"
        env = {**os.environ, "PYTHONPATH": os.getcwd()}
        lowered = "ulimit -R 1000; ulimit -x 1000; "
        for number, before in enumerate(("", lowered, lowered + "setsid --wait ")):
            note = tmp_path / f"said{number}"
            script = before + shlex.join([sys.executable, "-c", STEAL, str(note)])
            child = await keeper.spawn(SpawnSpec(["bash", "-c", script], "/", env))
            await until(child.exited.done)
            assert "inside one of the keeper's own sessions" in note.read_text(), note.read_text()
            assert not keeper.displaced
