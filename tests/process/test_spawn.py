"""Starting programs: what they see, how they end, and what a failed start leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.process.descriptor import count_descriptors
from tests.support.process.keeper import journal_in, read_journal, said, shell
from tests.support.waiting import until
from wsh.process import KeeperClient, SpawnSpec
from wsh.wire.error import CwdNotFound, InvalidEnvironment, InvalidSize, ProgramNotFound, TooLarge


async def test_a_child_runs_on_a_terminal_of_the_asked_size_and_its_exit_code_comes_after_its_output(
    keeper: KeeperClient,
) -> None:
    child = await keeper.spawn(shell("tty; stty size; echo end; exit 3", rows=33, cols=77))
    status = await child.exited
    assert (status.code, status.signal, status.shell_code) == (3, None, 3)
    output = child.ring.peek()
    assert output.startswith(b"/dev/pts/")
    assert output.endswith(b"33 77\r\nend\r\n")
    assert status.offset == len(output)


async def test_a_signalled_child_reports_the_signal(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("kill -USR1 $$"))
    status = await child.exited
    assert (status.code, status.signal_name) == (None, "SIGUSR1")


async def test_everything_printed_is_in_the_journal(keeper: KeeperClient, tmp_path: Path) -> None:
    child = await keeper.spawn(shell("seq 20000", journal=journal_in(tmp_path / "j")))
    await child.exited
    expected = b"".join(b"%d\r\n" % n for n in range(1, 20001))
    assert child.ring.peek() == expected
    await until(lambda: child.ring.journaled == len(expected))
    assert read_journal(tmp_path / "j") == {0: expected}
    assert child.ring.journal_state == "ok"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (SpawnSpec(["no-such-program"], "/", {"PATH": "/bin"}), ProgramNotFound),
        (SpawnSpec(["/etc/passwd"], "/", {}), ProgramNotFound),
        (SpawnSpec(["x"], "/", {}, path="/etc/passwd"), ProgramNotFound),
        (SpawnSpec(["sh"], "/no/such/folder", {"PATH": "/bin"}), CwdNotFound),
        (SpawnSpec(["sh"], "/", {"PATH": "/bin", "A=B": "c"}), InvalidEnvironment),
        (SpawnSpec(["sh"], "/", {"PATH": "/bin"}, rows=0), InvalidSize),
    ],
)
async def test_a_spawn_that_fails_says_why_and_leaves_nothing(
    keeper: KeeperClient, spec: SpawnSpec, error: type[Exception]
) -> None:
    before = count_descriptors(keeper.pid)
    with pytest.raises(error):
        await keeper.spawn(spec)
    assert (await keeper.ping())["children"] == 0
    assert count_descriptors(keeper.pid) == before


async def test_input_reaches_the_child_and_a_resize_is_seen(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("stty -echo; echo ready; read line; echo got $line; stty size"))
    await said(child, b"ready")
    child.resize(40, 100)
    await child.write_all(b"hello\n")
    await child.exited
    assert child.ring.peek().endswith(b"got hello\r\n40 100\r\n")


async def test_killing_a_tree_ends_the_shell_and_what_it_started(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("setsid sleep 300 & echo started; wait"))
    await said(child, b"started")
    report = await keeper.kill_tree(child)
    assert report.survivors == ()
    assert (await child.exited).signal is not None


async def test_a_child_inherits_nothing_of_the_keeper(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("ls -1 /proc/self/fd; grep Sig /proc/self/status; ulimit -n; ps -o pgid=,sid= $$"))
    await child.exited
    lines = child.ring.peek().decode().split("\r\n")
    assert lines[:4] == ["0", "1", "2", "3"], "3 is ls itself, reading the folder"
    facts = dict(line.split(":\t") for line in lines if line.startswith("Sig"))
    internal = 0b11 << 31  # the C library keeps 32 and 33 for itself and lets nobody change them
    assert int(facts["SigIgn"], 16) & ~internal == int(facts["SigBlk"], 16) & ~internal == 0
    assert str(os.sysconf("SC_OPEN_MAX")) in lines
    assert lines[-2].split() == [str(child.pid), str(child.pid)]


async def test_bytes_given_on_a_descriptor_are_read_there_once_and_are_nowhere_else(keeper: KeeperClient) -> None:
    script = "cat <&63; cat <&63; echo; cat <&5; env | grep -c secret"
    child = await keeper.spawn(
        SpawnSpec(["bash", "-c", script], "/", {"PATH": os.environ["PATH"]}, extra_fds={63: "secret", 5: "five\n"})
    )
    await child.exited
    assert child.ring.peek() == b"secret\r\nfive\r\n0\r\n"


async def test_environment_and_arguments_pass_unchanged_even_if_they_are_not_utf8(keeper: KeeperClient) -> None:
    odd = os.fsdecode(b"a\xff\xfe\n\x01b ")
    child = await keeper.spawn(
        SpawnSpec(
            ["sh", "-c", 'printf %s "$1$V" | od -An -tx1', "sh", odd], "/", {"PATH": os.environ["PATH"], "V": "ü"}
        )
    )
    await child.exited
    assert child.ring.peek().split() == [b"61", b"ff", b"fe", b"0a", b"01", b"62", b"20", b"c3", b"bc"]


async def test_what_no_message_can_hold_is_refused_and_costs_no_descriptor(keeper: KeeperClient) -> None:
    before = len(os.listdir("/proc/self/fd"))
    folder = os.open("/", os.O_PATH)
    with pytest.raises(TooLarge):
        await keeper.spawn(SpawnSpec(["true"], "/", {"BIG": "x" * (9 << 20)}, cwd_fd=folder))
    os.close(folder)
    assert len(os.listdir("/proc/self/fd")) == before
    assert (await (await keeper.spawn(shell("exit 3"))).exited).code == 3


async def test_a_program_may_let_go_of_the_terminal_and_take_it_again(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("exec 3>&1 <&- >&- 2>&- 3>&-; sleep 0.2; echo back > /dev/tty; exit 2"))
    assert (await child.exited).code == 2
    assert child.ring.peek() == b"back\r\n"


@pytest.mark.torture
async def test_idle_children_cost_the_keeper_next_to_nothing(
    keeper: KeeperClient, tmp_path: Path, torture: bool
) -> None:
    count = 1000 if torture else 150

    def resident_kb(pid: int) -> int:
        with open(f"/proc/{pid}/status") as status:
            return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

    before = resident_kb(keeper.pid)
    assert before <= 13 * 1024
    children = []
    for number in range(count):
        journal = journal_in(tmp_path / str(number))
        children.append(
            await keeper.spawn(shell("echo ready; exec sleep 300", journal=journal, meta={"text": "x" * 500}))
        )
    for child in children:
        await said(child, b"ready")
    after = resident_kb(keeper.pid)
    assert after <= 15 * 1024
    assert (after - before) / count < 4
