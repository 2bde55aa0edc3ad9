"""What is in the way to a host: ssh itself, Python and wsh there, forwarding, versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from wsh.host.ssh.install import find_missing, read_python, run_there
from wsh.host.ssh.master import SshProblem, SshTarget, find_far_wsh
from wsh.wire.version import VERSION


@dataclass(frozen=True)
class HostFinding:
    good: bool
    what: str


def examine(far: SshTarget) -> Iterator[HostFinding]:
    """One finding after the other; the first that stops everything is the last."""
    done = run_there(far, "echo reached")
    if done.stdout.strip().rpartition(b"\n")[2] != b"reached":  # the shell there may print something first
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        yield HostFinding(False, f"`ssh {far.target}` without questions fails: {said or f'status {done.returncode}'}")
        return
    yield HostFinding(True, f"`ssh {far.target}` connects without questions")
    try:
        python = find_missing(far)
    except SshProblem as problem:
        yield HostFinding(False, f"wsh there cannot be started: {problem}")
        return
    if python is not None:
        new_enough = read_python(python)
        yield HostFinding(new_enough, f"Python there is {python or 'missing'}; wsh needs 3.11 or newer")
        yield HostFinding(False, f"wsh is not installed there; `wsh host install {far.host}` does that")
        return
    done = run_there(far, f'{find_far_wsh(far)}; exec "$@" relay --facts')
    try:
        facts = json.loads(done.stdout.decode().strip().rpartition("\n")[2])
    except ValueError:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        yield HostFinding(False, f"the server there does not start: {said or f'status {done.returncode}'}")
        return
    same = facts["version"] == VERSION
    yield HostFinding(
        True,
        f"wsh {facts['version']} is there"
        + ("" if same else f"; here is {VERSION}, which works while the protocols agree"),
    )
    yield HostFinding(True, f"its server listens on {facts['socket']}")
