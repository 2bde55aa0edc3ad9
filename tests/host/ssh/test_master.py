"""The ssh connection that a killed server leaves behind is ended: by the next server, or by `wsh stop`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.host.conftest import open_net
from tests.support.host.sshd import ssh_net
from tests.support.waiting import HANG_S, until, wait_until
from tests.support.warm import run_warm
from wsh.host.ssh.doctor import examine
from wsh.host.ssh.master import SshMaster, SshTarget
from wsh.host.ssh.socket_name import find_folder, make_name


def test_the_next_master_ends_the_one_before_it(tmp_path: Path) -> None:
    async def work(target: SshTarget) -> None:
        left, next_one = (SshMaster(target, find_folder(tmp_path), "name") for _ in range(2))
        try:
            await left.open(HANG_S, HANG_S)
            await next_one.open(HANG_S, HANG_S)
            await until(lambda: not left.is_alive, "the end of the connection that was left")
            assert next_one.is_alive
            (await next_one.dial()).close()
        finally:
            await next_one.aclose()
            await left.aclose()

    with ssh_net(tmp_path, ["near"]) as net:
        asyncio.run(work(SshTarget("near", "near", tuple(net.ssh))))


_SSH = """#!/bin/sh
# As ssh does: the first one connects and stays, the others go through its socket.
for word; do case $word in ControlPath=*) control=${word#ControlPath=};; esac; done
case " $* " in
*" -N "*)
    : > "$control"
    yes 'debug1: a line that nobody asked for' | head -c 1000000 >&2
    : > "$control.said"
    exec sleep 600;;
*" -O "*) exit 0;;
*) echo 'a shell that greets'
   case $* in *reached*) echo reached;; *--version*) echo wsh;; *) echo '{"socket": "/nowhere", "version": "1"}';; esac;;
esac
"""


@pytest.fixture
def talkative(tmp_path: Path) -> SshTarget:
    """A host whose ssh says a lot on stderr, and whose shell greets before a command."""
    program = tmp_path / "ssh"
    program.write_text(_SSH)
    program.chmod(0o755)
    return SshTarget("near", "near", (str(program),))


async def test_an_ssh_that_says_a_lot_is_not_held_up(tmp_path: Path, talkative: SshTarget) -> None:
    folder = find_folder(tmp_path)
    master = SshMaster(talkative, folder, "name")
    try:
        await master.open(HANG_S, HANG_S)
        await until((folder / "name.c.said").exists, "ssh to have said it all")
    finally:
        await master.aclose()


async def test_the_folder_of_the_sockets_is_made_again_where_it_was_cleaned_away(
    tmp_path: Path, talkative: SshTarget
) -> None:
    folder = find_folder(tmp_path)
    master = SshMaster(talkative, folder, "name")
    folder.rmdir()
    try:
        await master.open(HANG_S, HANG_S)
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        await master.aclose()


def test_a_shell_that_greets_is_no_problem_to_the_doctor(talkative: SshTarget) -> None:
    findings = list(examine(talkative))
    assert all(finding.good for finding in findings), findings


def test_servers_of_other_names_have_connections_of_their_own() -> None:
    assert make_name("default", "near", "near") != make_name("other", "near", "near")


def test_stopping_without_a_server_ends_the_connections_that_it_left(tmp_path: Path) -> None:
    with open_net(tmp_path, ["near"]) as net:
        machine = net.ssh.machines["near"]
        assert machine.list_connections()
        os.kill(net.server.process.pid, signal.SIGKILL)
        net.server.process.wait(HANG_S)
        done = run_warm([sys.executable, "-m", "wsh.cli.main", "stop"], text=True, timeout=HANG_S)
        assert done.returncode == 0, done
        wait_until(lambda: not machine.list_connections(), "the end of the connection")
        net.server.places.socket.unlink()
        net.server.places.runtime_info.unlink()
