"""Random commands with random life around them: half-typed lines, full-screen programs, relays with an inner terminal.

Every command is compared with a plain pty; every run over somebody's text has to be refused with nothing typed; "waits for
input" may be unknown, and must not be wrong.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tests.support.session.randoms import Comparison, compare
from tests.support.session.shells import AGENT
from tests.support.waiting import until
from wsh.session.event import Actor
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse, WshError

PERSON = Actor("person", "alice")

Interlude: TypeAlias = Callable[["Campaign"], Awaitable[None]]


class Campaign:
    """Needs a session whose `session.line_wait_ms` is 0."""

    def __init__(self, session: Session, shell: str, seed: int, env: dict[str, str]) -> None:
        self.session, self.shell, self.env = session, shell, env
        self.dice = random.Random(seed)
        self.seed = seed
        self.result = Comparison()
        self.interludes: dict[str, int] = {}

    async def run(self, count: int) -> Comparison:
        for _ in range(count):
            roll = self.dice.random()
            for limit, interlude in _INTERLUDES:
                if roll < limit:
                    self.interludes[interlude.__name__] = self.interludes.get(interlude.__name__, 0) + 1
                    try:
                        await interlude(self)
                    except (AssertionError, WshError) as problem:
                        self.wrong(f"{interlude.__name__}: {problem!r}"[:600])
                        await self.clear()
                    break
            try:
                await self.compare_one()
            except WshError as problem:
                self.wrong(f"a command failed: {problem!r}"[:600])
                await self.clear()
        return self.result

    def wrong(self, what: str) -> None:
        self.result.add_wrong(f"{self.shell} seed {self.seed} after {self.result.compared}: {what}")

    async def compare_one(self, clear_line: bool = False) -> None:
        seed = self.dice.randrange(1 << 30)
        one = await compare(self.session, self.shell, seed, 1, self.env, clear_line=clear_line)
        self.result.compared += one.compared
        self.result.cut += one.cut
        self.result.wrong += one.wrong

    async def type(self, data: bytes) -> None:
        await self.session.input.send(data, PERSON)

    async def clear(self) -> None:
        """Ctrl+C, again where the shell was busy with our question and lost it."""
        for _ in range(10):
            await self.type(b"\x03")
            await self.session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))
            await self.session.wait(WaitSpec(quiet_ms=20, max_wait_ms=60_000))
            if not await self.session.input.look_at_line():
                return

    def half(self) -> str:
        words = (
            "echo",
            "rm -rf /x/important-",
            "git",
            "ls",
            "'a b'",
            '"c',
            "$(",
            "中文",
            "é",
            "x=1;",
            "|",
            "  ",
            "#",
            "a\\",
        )
        return " ".join(self.dice.choice(words) for _ in range(self.dice.randint(1, 4)))

    async def is_refused(self) -> LineInUse:
        try:
            outcome = await self.session.run_command("echo mixed", AGENT, max_wait_ms=60_000)
        except LineInUse as problem:
            return problem
        raise AssertionError(f"a run was typed onto a line in use: {outcome}")


async def half_line(campaign: Campaign) -> None:
    """Somebody has typed something, the cursor stands anywhere; afterwards it is cleared by hand, or by the run."""
    text = campaign.half()
    await campaign.type(text.encode() + campaign.dice.choice((b"", b"", b"\x01", b"\x1b[D\x1b[D", b"\x1b[H")))
    problem = await campaign.is_refused()
    assert problem.facts["text"] == text, (text, problem.facts)
    assert problem.typed_by == {"kind": "person", "id": "alice"}, problem.facts
    if campaign.dice.random() < 0.5:
        await campaign.clear()
        return
    campaign.session.input.line.authors[PERSON] -= 60
    await campaign.compare_one(clear_line=True)
    problem = await campaign.is_refused()
    assert problem.facts["text"] == text, (text, problem.facts)
    await campaign.clear()


async def open_command(campaign: Campaign) -> None:
    """The shell asks for the rest of a command."""
    begin = {"fish": "begin"}.get(campaign.shell, campaign.dice.choice(("for i in 1; do", "echo 'open", "{")))
    await campaign.type(begin.encode() + b"\r")
    problem = await campaign.is_refused()
    assert problem.facts["continuation"] or begin in problem.facts["text"], problem.facts
    await campaign.clear()


async def type_ahead(campaign: Campaign) -> None:
    text = campaign.half()
    log = campaign.session.commands
    assert log is not None
    finished = log.finished
    await campaign.type(b"sleep 0.2\r")
    # On a busy machine it may have ended before we look.
    await until(lambda: log.phase == "running" or log.finished > finished, "sleep did not begin")
    await campaign.type(text.encode())
    await campaign.is_refused()
    await until(lambda: campaign.session.at_prompt == "yes", "sleep did not end")
    problem = await campaign.is_refused()
    assert problem.facts["text"] == text, (text, problem.facts)
    await campaign.clear()


async def full_screen(campaign: Campaign) -> None:
    session = campaign.session
    editor = campaign.dice.random() < 0.5
    opened = await session.run_command(
        "vim -u NONE -i NONE -n" if editor else "seq 1 500 | env LESS= less", AGENT, timeout_ms=250, max_wait_ms=60_000
    )
    assert opened.finished_by == "prompt" and session.terminal.alt, opened
    await session.input.type(b"j", PERSON)
    left = await session.run_command(
        ":q!" if editor else "Gq", AGENT, enter=editor, timeout_ms=60_000, max_wait_ms=60_000
    )
    assert (left.finished_by, left.exit_code) == ("command", 0), left
    assert left.output is not None and left.output.text.strip() == "", left


async def relay(campaign: Campaign) -> None:
    """While the inner program sleeps nobody may say that input is wanted; when it asks, nobody may say it is not."""
    session = campaign.session
    wrap = campaign.dice.choice([wrap for wrap in _WRAPS if shutil.which(wrap.split()[0])])
    before = session.generation
    await campaign.type(wrap.format("sleep 0.4; printf as%s ks; read x; exit 3").encode() + b"\r")
    log = session.commands
    assert log is not None
    await until(lambda: log.phase == "running", "the relay did not begin")
    printed = False
    while not printed:
        seen = await session.inspect()
        printed = "asks" in session.output.read_recent(before).decode("utf-8", "replace")
        if seen.reading == "yes" and not printed:
            await asyncio.sleep(0.1)  # the question may be on its way to us
            printed = "asks" in session.output.read_recent(before).decode("utf-8", "replace")
            assert printed, f"{wrap} sleeps and is said to want input"
        await asyncio.sleep(0.03)

    async def asked() -> bool:
        return (await session.inspect()).reading != "no"

    await until(asked, f"{wrap} asks, and that is not seen")
    done = await session.run_command("answer", AGENT, timeout_ms=60_000, max_wait_ms=60_000)
    assert done.finished_by == "command" and done.exit_code == 3, (wrap, done)


_WRAPS = ("script -qec \"sh -c '{}'\" /dev/null", "setsid -w sh -c '{}'", "sh -c '{}'")

_INTERLUDES: tuple[tuple[float, Interlude], ...] = (
    (0.10, half_line),
    (0.12, open_command),
    (0.14, type_ahead),
    (0.155, full_screen),
    (0.17, relay),
)
