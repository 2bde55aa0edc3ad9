"""Record docs/pictures/demo.svg: a person and an agent at work in one terminal. `make demo` runs it.

Everything in it happens: a person's shell runs in a terminal of its own, keys are typed into it, and an agent calls the tools of
`wsh mcp` over stdio. What the shell prints goes into a session of a second server, whose recording becomes the picture. Nothing is
edited afterwards, so the picture is true as long as this script runs.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import IO, Any

import wsh
from wsh.client.client import RemoteSession
from wsh.wire.error import WaitTimeout

ROOT = Path(__file__).parents[1]
ROWS, COLS = 14, 84
PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
BIN = Path(sys.executable).parent
PROMPT = "\\[\\e[32m\\]you\\[\\e[0m\\] $ "

CART = "def total(prices):\n    return sum(prices[1:])\n"
TEST = """\
import sys
from cart import total

failed = 0
for prices, expected in (([], 0), ([5], 5), ([1, 2, 3], 6)):
    found = total(prices)
    print(f"total({prices}) = {found}", "ok" if found == expected else f"\\033[31mFAILED\\033[0m, expected {expected}")
    failed += found != expected
print("\\033[32mall passed\\033[0m" if not failed else f"\\033[31m{failed} failed\\033[0m")
sys.exit(failed)
"""


def make_folders(root: Path, name: str) -> dict[str, str]:
    """An environment in which wsh has folders of its own."""
    environ = {key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ}
    environ |= {
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "WSH_SERVER_BIND": "127.0.0.1:0",
    }
    for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        folder = root / name / variable
        folder.mkdir(parents=True, mode=0o700)
        environ[variable] = str(folder)
    return environ


class Agent:
    """An MCP client that calls tools of `wsh mcp`."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["wsh", "mcp"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._last = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
        self._ask("initialize", about)
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise RuntimeError(f"{tool}: {answer}")
        return answer["structuredContent"]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        for line in self._stream(self._process.stdout):
            message = json.loads(line)
            if message.get("id") == self._last and "method" not in message:
                return message["result"]
        raise RuntimeError("wsh mcp ended")

    def _send(self, message: dict[str, Any]) -> None:
        stream = self._stream(self._process.stdin)
        stream.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        stream.flush()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream

    def close(self) -> None:
        self._stream(self._process.stdin).close()
        self._process.wait()


class Person:
    """A shell in a terminal that is nobody's session, as a person has it; `screen` is a session that shows what it prints."""

    def __init__(self, environ: dict[str, str], project: Path, pipe: Path, screen: RemoteSession) -> None:
        self._screen = screen
        self._terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc"], stdin=inner, stdout=inner, stderr=inner, cwd=project, env=environ
        )
        os.close(inner)
        self._copying = threading.Thread(target=self._copy, args=(pipe,))
        self._copying.start()

    def _copy(self, pipe: Path) -> None:
        with pipe.open("wb", buffering=0) as out:
            try:
                while data := os.read(self._terminal, 65536):
                    out.write(data)
            except OSError:  # the shell has ended
                pass

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    async def type_line(self, text: str) -> None:
        for character in text:
            self.press(character)
            await asyncio.sleep(0.06)
        await asyncio.sleep(0.5)
        self.press("\r")

    async def see(self, text: str) -> None:
        """Wait until the screen shows `text`, and as long as a person needs to read it."""
        await self._screen.wait(text=text, generation=0, max_wait_ms=60_000)
        await asyncio.sleep(1.2)

    def close(self) -> None:
        self._shell.terminate()
        self._shell.kill()
        self._shell.wait()
        self._copying.join()


def work(agent: Agent) -> None:
    """What the agent does, and says in a panel below the terminal."""
    place: dict[str, Any] = {"position": "bottom", "height": 1}

    def say(text: str) -> Any:
        spans = [{"text": f" agent: {text}", "bold": True, "fg": {"indexed": 6}}]
        return agent.call("wsh_panel", session="work", **place, spans=spans)

    def run(line: str) -> Any:
        return agent.call("wsh_run_command", session="work", input=line)

    place = {"id": say("running the tests")["id"]}
    time.sleep(1.2)
    failed = run("python3 test_cart.py")
    time.sleep(1.0)
    say(f"exit status {failed['exit_code']}: total() leaves out the first price")
    time.sleep(2.0)
    run("clear; sed -i 's/prices\\[1:]/prices/' cart.py")
    run("python3 test_cart.py")
    say("all passed. Your turn: shall I commit?")


async def play(person: Person, environ: dict[str, str]) -> None:
    await person.see("you $")
    await person.type_line("wsh attach work    # the agent's terminal, live")
    await person.see("work $")
    agent = await asyncio.to_thread(Agent, environ)
    try:
        await asyncio.to_thread(work, agent)
        await asyncio.sleep(1.8)
        await person.type_line("git diff | cat     # you type in the same terminal")
        await person.see("+    return sum(prices)")
        await asyncio.sleep(0.8)
        person.press("\x1c\x1c")
        await asyncio.sleep(1.5)
        await person.type_line("wsh list           # the session goes on without you")
        await person.see("running")
    finally:
        await asyncio.to_thread(agent.close)


def make_project(folder: Path) -> None:
    folder.mkdir()
    (folder / "cart.py").write_text(CART)
    (folder / "test_cart.py").write_text(TEST)
    identity = ("-c", "user.name=you", "-c", "user.email=you@example.invalid")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "A cart")):
        subprocess.run(["git", *words], cwd=folder, check=True)


async def open_and_play(project: Path, pipe: Path, shared: dict[str, str]) -> None:
    os.mkfifo(pipe)
    async with wsh.connect() as server:
        show = f"stty raw -echo; exec cat {shlex.quote(str(pipe))}"
        screen = await server.open(f"sh -c {shlex.quote(show)}", name="demo", rows=ROWS, cols=COLS)
        person = await asyncio.to_thread(Person, shared | {"PS1": PROMPT}, project, pipe, screen)
        try:
            await play(person, shared)
        except WaitTimeout:
            print((await screen.screen()).text, file=sys.stderr)
            raise
        finally:
            await asyncio.to_thread(person.close)


def record(root: Path) -> None:
    shared, stage = make_folders(root, "shared"), make_folders(root, "stage")
    project = root / "cart"
    make_project(project)
    place = ("--cwd", str(project), "-e", "PS1=\\[\\e[34m\\]work\\[\\e[0m\\] $ ")
    new = ["wsh", "new", "--name", "work", "--rows", str(ROWS - 1), "--cols", str(COLS), *place, "bash", "--norc"]
    try:
        subprocess.run(new, env=shared, check=True, stdout=subprocess.DEVNULL)
        os.environ.update(stage)
        asyncio.run(open_and_play(project, root / "pipe", shared))
        export = ["wsh", "export", "demo", "--format", "svg-animated", "-o", str(PICTURE)]
        subprocess.run(export, env=stage, check=True)
    finally:
        for environ in (shared, stage):
            subprocess.run(["wsh", "stop"], env=environ, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        record(Path(temporary))
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size // 1024} KB")
