"""Command truth: how fast a command's end is known, what the marks cost a shell, and whether it is ever wrong."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from tests.support.session.randoms import compare

from bench.row import Row, at_most, at_most_ratio, percentile
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.shell.injection import NONCE_FD, plan_injection
from wsh.session.spec import SessionSpec
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

Result = TypeVar("Result")
AGENT = Actor("agent", "bench")
ROUNDS = 1000
TMUX_ROUNDS = 150
STARTS = 40
RANDOM_COMMANDS = 10_000
_ENV = {"LC_CTYPE": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def run() -> list[Row]:
    return [*_latency(), *_over_mcp(), *_starts(), *_random()]


def _with_registry(work: Callable[[SessionRegistry, str], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            registry = await SessionRegistry.open(find_places({"HOME": home, "XDG_RUNTIME_DIR": home}), load(None, {}))
            try:
                return await work(registry, home)
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


async def _open(registry: SessionRegistry, shell: str, home: str) -> Session:
    env = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home, **_ENV}
    session = await registry.open_session(SessionSpec(command=shell, cwd="/", env=env))
    await session.run_command("true", AGENT)
    return session


# latency


def _latency() -> list[Row]:
    async def work(registry: SessionRegistry, home: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for shell in ("bash", "zsh", "fish"):
            session = await _open(registry, shell, home)
            took = []
            for _ in range(ROUNDS if shell == "bash" else ROUNDS // 5):
                began = time.perf_counter()
                outcome = await session.run_command("true", AGENT)
                took.append((time.perf_counter() - began) * 1000)
                assert outcome.finished_by == "command" and outcome.exit_code == 0
            found[shell] = took
        return found

    found = _with_registry(work)
    tmux = statistics.median(_time_tmux())
    group = "command truth"
    rows = [
        at_most(group, 'run_command("true") in bash, p50', statistics.median(found["bash"]), 5, "ms"),
        at_most(group, 'run_command("true") in bash, p99', percentile(found["bash"], 0.99), 25, "ms"),
        at_most_ratio(
            group,
            'run_command("true"), p50',
            statistics.median(found["bash"]),
            tmux,
            "ms",
            "tmux send-keys + wait-for + capture-pane",
            1.0,
        ),
    ]
    for shell in ("zsh", "fish"):
        rows.append(at_most(group, f'run_command("true") in {shell}, p50', statistics.median(found[shell]), 25, "ms"))
    return rows


def _time_tmux() -> list[float]:
    """What a script does with tmux for the same: type, wait for a signal, read the pane."""
    tmux = [shutil.which("tmux") or "tmux", "-L", f"wsh-bench-{os.getpid()}", "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "bash --norc"], check=True)
    took = []
    try:
        time.sleep(0.5)
        for _ in range(TMUX_ROUNDS):
            began = time.perf_counter()
            subprocess.run([*tmux, "send-keys", "true; tmux wait-for -S done", "Enter"], check=True)
            subprocess.run([*tmux, "wait-for", "done"], check=True)
            subprocess.run([*tmux, "capture-pane", "-p"], check=True, stdout=subprocess.DEVNULL)
            took.append((time.perf_counter() - began) * 1000)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return took


def _over_mcp() -> list[Row]:
    """The whole way of an agent: a line on stdin of `wsh mcp`, the server, the keeper, the shell, and back."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {**os.environ, "HOME": home}
        for name in ("RUNTIME_DIR", "STATE_HOME", "CONFIG_HOME"):
            folder = Path(home) / name
            folder.mkdir(mode=0o700)
            env[f"XDG_{name}"] = str(folder)
        process = subprocess.Popen(
            [sys.executable, "-m", "wsh.cli.main", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        try:
            took = _call_mcp(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)
            subprocess.run([sys.executable, "-m", "wsh.cli.main", "stop"], env=env, check=False, capture_output=True)
    group = "command truth"
    return [
        at_most(group, 'run_command("true") over MCP on stdio, p50', statistics.median(took), 5, "ms"),
        at_most(group, 'run_command("true") over MCP on stdio, p99', percentile(took, 0.99), 25, "ms"),
    ]


def _call_mcp(process: subprocess.Popen[bytes]) -> list[float]:
    assert process.stdin is not None and process.stdout is not None
    number = 0

    def call(method: str, **params: object) -> dict[str, Any]:
        nonlocal number
        number += 1
        assert process.stdin is not None and process.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while True:
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            if answer.get("id") == number:
                return answer

    call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"})
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    call("tools/call", name="wsh_create_session", arguments={"name": "bench", "command": "bash --norc"})
    took = []
    for turn in range(ROUNDS // 2):
        began = time.perf_counter()
        answer = call("tools/call", name="wsh_run_command", arguments={"session": "bench", "input": "true"})
        if turn >= 10:
            took.append((time.perf_counter() - began) * 1000)
        assert answer["result"]["structuredContent"]["exit_code"] == 0, answer
    call("tools/call", name="wsh_manage_session", arguments={"session": "bench", "action": "kill"})
    return took


# what the marks cost at start


def _starts() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        (Path(home) / ".bashrc").write_text("PS1='@''@ '\n")
        (Path(home) / ".zshrc").write_text("PS1='@''@ '\n")
        (Path(home) / "fish").mkdir()
        (Path(home) / "fish" / "config.fish").write_text("function fish_prompt; echo -n '@''@ '; end\n")
        env = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home, "PATH": os.environ["PATH"], **_ENV}
        for shell in ("bash", "zsh", "fish"):
            plain, marked = [], []
            for _ in range(STARTS):
                plain.append(_time_start(shell, env, marks=False))
                marked.append(_time_start(shell, env, marks=True))
            extra = statistics.median(marked) - statistics.median(plain)
            note = f"{statistics.median(plain):.1f} ms without"
            rows.append(at_most("command truth", f"marks at the start of {shell}", extra, 10, "ms", note))
    return rows


def _time_start(shell: str, env: dict[str, str], *, marks: bool) -> float:
    """Milliseconds from the fork to the first prompt."""
    argv: tuple[str, ...] = (shell,)
    content = b""
    if marks:
        plan = plan_injection(argv, shutil.which(shell) or shell, env)
        assert plan is not None
        argv, env, content = plan.argv, plan.env, plan.content.encode()
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    import pty

    began = time.perf_counter()
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.dup2(read, NONCE_FD)
            os.closerange(NONCE_FD + 1, 64)
            os.execvpe(argv[0], list(argv), env)
        finally:
            os._exit(126)
    os.close(read)
    seen = b""
    while b"@@" not in seen and select.select([master], [], [], 10)[0]:
        seen += os.read(master, 65536)
    took = (time.perf_counter() - began) * 1000
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(master)
    return took


# is it ever wrong


def _random() -> list[Row]:
    async def work(registry: SessionRegistry, home: str) -> tuple[int, int, list[str]]:
        compared, cut, wrong = 0, 0, []
        env = {"PATH": os.environ["PATH"], "HOME": home, **_ENV}
        for number, shell in enumerate(("bash", "zsh", "fish")):
            session = await _open(registry, shell, home)
            share = RANDOM_COMMANDS // 3 + (1 if number < RANDOM_COMMANDS % 3 else 0)
            result = await compare(session, shell, seed=2026 + number, count=share, env=env)
            compared += result.compared
            cut += result.cut
            wrong += result.wrong
        return compared, cut, wrong

    compared, cut, wrong = _with_registry(work)
    for text in wrong[:10]:
        print(text)
    title = f"{compared} random commands in bash, zsh and fish: exit code or output wrong"
    note = f"the plain run itself was cut short {cut} times" if cut else ""
    return [at_most("command truth", title, float(len(wrong)), 0, "of them", note)]
