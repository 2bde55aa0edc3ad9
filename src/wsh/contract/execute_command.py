"""`execute_command`: one program, no shell, behind a gate of names and folders.

The gate's variables come from the caller's connection. Stands on a `CommandRunner` that the composition root plugs in, so
that this room starts no process itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import time
from typing import Literal

from wsh.contract.cleanup import finish_cleanup
from wsh.contract.gate import Trail
from wsh.contract.output.kept_output import KeptOutput, KeptOutputs, OutputStream, read_lines
from wsh.contract.runner import CommandRunner, OnOutput, StartedCommand, abandon
from wsh.policy import Effect, PolicyRequest, Reason, Risk, RiskReason, Verdict
from wsh.policy.audit import describe_decision, describe_result
from wsh.policy.exec_gate import ExecGate, GateRefusal, check_program, resolve_cwd, split_command
from wsh.wire.buffer import OutputBuffer
from wsh.wire.caller import Caller
from wsh.wire.error import CwdNotFound, ProgramNotFound, Refused
from wsh.wire.json.object import JsonObject
from wsh.wire.tool import (
    CAPABILITY_MISSING,
    FORBIDDEN,
    INVALID_REQUEST,
    NOT_FOUND,
    TOOL_TIMEOUT,
    Progress,
    ToolFailure,
)

log = logging.getLogger("wsh.contract")

NAME = "execute_command"
ENOENT_HINT = (
    "Note: This tool does not support interactive commands. "
    "Ensure the command is non-interactive and the executable exists."
)
_CODES: dict[str, str] = {
    "invalid": INVALID_REQUEST,
    "forbidden": FORBIDDEN,
    "missing": NOT_FOUND,
    "misconfigured": FORBIDDEN,
}
_FAILURE_OUTPUT_BYTES = 16 * 1024
# The alternate screen, keys and mouse of a terminal, pasted text told apart; or a screen full of blanks, which is how curses
# begins on a terminal that can do nothing.
_SCREEN = re.compile(rb"\x1b\[\?(?:\d+;)*(?:1049|1047|47|2004|100[0236]|1)(?:;\d+)*h|\A(?:\x1b\[\?\d+h)? {1500}")
_NO_TERMINAL = re.compile(
    rb"(?<!because stdin is )not (?:from |to |connected to )?a (?:terminal|tty)|(?:error|failed) opening terminal|open terminal failed"
    rb"|/dev/tty: No such device|connected to a terminal",
    re.IGNORECASE,
)
_OPENING_BYTES = 64 * 1024
_GRACE_S = 1.0
"""How long a program that wants a terminal may take to end by itself."""


class ExecuteCommand:
    """The service behind the tool. `home` and the defaults are the server's."""

    def __init__(
        self,
        runner: CommandRunner,
        trail: Trail,
        *,
        timeout_ms: int = 120_000,
        max_output_bytes: int = 10 * 1024 * 1024,
        result_bytes: int = 256 * 1024,
        kept_bytes: int = 64 * 1024 * 1024,
        home: str | None = None,
    ) -> None:
        self.runner = runner
        self.trail = trail
        self.timeout_ms = timeout_ms
        self.max_output_bytes = max_output_bytes
        self.result_bytes = result_bytes
        self._kept = KeptOutputs(kept_bytes)
        self.home = home

    async def run(
        self, command: str, cwd: str | None, caller: Caller, timeout_ms: int | None, progress: Progress
    ) -> JsonObject:
        """The exit code and the newest output. Raises ToolFailure, after what was started has ended."""
        trace_id = f"exec-{secrets.token_hex(8)}"
        timeout_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        argv, folder = self._decide(command, cwd, caller, trace_id)
        began = time.monotonic()
        output: dict[OutputStream, OutputBuffer] = {
            "stdout": OutputBuffer(self.max_output_bytes),
            "stderr": OutputBuffer(self.max_output_bytes),
        }

        opening = _Opening()

        def take(stream: Literal["stdout", "stderr"], data: bytes) -> None:
            output[stream].append(data)
            opening.hear(stream, data)
            progress(data[-400:].decode("utf-8", "replace"), stream=stream)

        ended = "failed"
        started: StartedCommand | None = None
        try:
            started = await self._start(argv, folder, take)
            left_ms = max(1.0, (deadline - asyncio.get_running_loop().time()) * 1000)
            over = await _wait_or_notice(started, left_ms, opening.wants_terminal)
            if over is None:
                ended = "interactive"
                await started.kill()
                raise ToolFailure(
                    CAPABILITY_MISSING,
                    f"{argv[0]!r} wants a terminal, and there is none; it was ended. {ENOENT_HINT}",
                    hint=ENOENT_HINT,
                    stdout=_tail(output["stdout"]),
                    stderr=_tail(output["stderr"]),
                )
            if not over:
                ended = "timeout"
                await started.kill()
                raise ToolFailure(
                    TOOL_TIMEOUT,
                    f"{argv[0]!r} did not finish within {timeout_ms} ms and was ended with all it had started.",
                    hint="Allow more time with timeout_ms, or ask for less.",
                    timeoutMs=timeout_ms,
                    stdout=_tail(output["stdout"]),
                    stderr=_tail(output["stderr"]),
                )
            ended = "exited"
            fields = _describe(started, output["stdout"], output["stderr"], self.result_bytes)
            if "stdout_dropped_bytes" in fields or "stderr_dropped_bytes" in fields:
                kept = KeptOutput(caller.id, started.result.exit_code, output)
                if self._kept.keep(trace_id, kept):
                    fields["output_of"] = trace_id
            if opening.draws:
                fields["note"] = ENOENT_HINT
            return fields
        except asyncio.CancelledError:
            ended = "cancelled"
            raise
        finally:
            if started is not None:
                await finish_cleanup(started.aclose())
            self._record_end(trace_id, argv, folder, started, round((time.monotonic() - began) * 1000), ended)

    def admit(self, command: str, cwd: str | None, caller: Caller) -> tuple[tuple[str, ...], str]:
        """The words and the folder of a command that the gate lets through. Raises ToolFailure; runs nothing."""
        return self._decide(command, cwd, caller, f"exec-{secrets.token_hex(8)}")

    def read(self, handle: str, stream: OutputStream, from_line: int, search: str | None, caller: Caller) -> JsonObject:
        """Lines of what an earlier call left out, in the same fields. Raises ToolFailure where they are not kept."""
        kept = self._kept.find(handle, caller.id)
        if kept is None:
            raise ToolFailure(
                NOT_FOUND,
                f"No output of {handle[:80]!r} is kept for you.",
                hint="Newer output takes the room of older. Run the command again.",
            )
        page = read_lines(kept.streams[stream], from_line, search, self.result_bytes)
        fields: JsonObject = {"exit_code": kept.exit_code, "stdout": "", "stderr": "", stream: page.text}
        fields |= {"first_line": page.first_line, "total_lines": page.total_lines}
        if page.next_line is not None:
            fields["next_line"] = page.next_line
        return fields

    def _decide(self, command: str, cwd: str | None, caller: Caller, trace_id: str) -> tuple[tuple[str, ...], str]:
        gate = ExecGate.from_environment(caller.environ)
        argv: tuple[str, ...] | None = None
        folder: str | None = None
        found: tuple[RiskReason, ...] = ()
        refusal: GateRefusal | None = None
        try:
            argv = split_command(command)
            # The name first: a caller that may run nothing learns nothing about folders.
            check_program(gate, argv, None, self.home)
            folder = resolve_cwd(gate, cwd, caller.cwd)
            found = check_program(gate, argv, folder, self.home)
        except GateRefusal as problem:
            refusal = problem
        risk = max((reason.risk for reason in found), key=lambda one: one.rank, default=Risk.NONE)
        if refusal is not None and refusal.reason == "irrecoverable":
            risk = Risk.IRRECOVERABLE
        verdict = Verdict(
            Effect.ALLOW if refusal is None else Effect.DENY,
            risk,
            Reason.ALLOWED if refusal is None else _reason(refusal),
            refusal.message if refusal is not None else "ALLOWED_COMMANDS lists it.",
            argv=(argv,) if argv else (),
            risk_reasons=found,
        )
        request = PolicyRequest(actor=caller.id, argv=argv, command=None if argv else command, cwd=folder or cwd)
        # A decision that leaves no trail is no decision: if this fails, nothing runs.
        entry = describe_decision(
            request, verdict, trace_id=trace_id, tool=NAME, role=caller.role, client=caller.client
        )
        self.trail.append(entry)
        if refusal is not None:
            raise ToolFailure(_CODES[refusal.fault], refusal.message, hint=refusal.hint, reason=refusal.reason)
        assert argv is not None and folder is not None
        return argv, folder

    async def _start(self, argv: tuple[str, ...], cwd: str, take: OnOutput) -> StartedCommand:
        starting = asyncio.ensure_future(self.runner.start(argv, cwd=cwd, env={}, on_output=take))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await finish_cleanup(abandon(starting))
            raise
        except ProgramNotFound:
            raise _not_startable(argv[0], cwd) from None
        except CwdNotFound:
            raise ToolFailure(
                NOT_FOUND, f"The working directory {cwd!r} does not exist.", hint="Choose an existing folder."
            ) from None
        except Refused as problem:
            raise ToolFailure(FORBIDDEN, problem.message, hint=problem.hint, reason="refused") from None

    def _record_end(
        self,
        trace_id: str,
        argv: tuple[str, ...],
        cwd: str,
        started: StartedCommand | None,
        duration_ms: int,
        ended: str,
    ) -> None:
        code = started.result.exit_code if started is not None else None
        signal = started.result.signal if started is not None else None
        entry = describe_result(
            trace_id=trace_id,
            tool=NAME,
            argv=argv,
            cwd=cwd,
            exit_code=code,
            duration_ms=duration_ms,
            signal=signal,
            ended=ended,
        )
        try:
            self.trail.append(entry)
        except (OSError, ValueError):
            log.exception("an audit entry could not be written, trace %s", trace_id)


class _Opening:
    """Hears in the first output of a program whether it wants a terminal."""

    def __init__(self) -> None:
        self.wants_terminal = asyncio.Event()
        self.draws = False
        """Whether it wrote what only a screen can show."""
        self._heard = {"stdout": bytearray(), "stderr": bytearray()}

    def hear(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        heard = self._heard[stream]
        if self.wants_terminal.is_set() or len(heard) >= _OPENING_BYTES:
            return
        heard += data[: _OPENING_BYTES - len(heard)]
        self.draws = self.draws or _SCREEN.search(heard) is not None
        if self.draws or (stream == "stderr" and _NO_TERMINAL.search(heard)):
            self.wants_terminal.set()


async def _wait_or_notice(started: StartedCommand, left_ms: float, noticed: asyncio.Event) -> bool | None:
    """Whether it ended in time; None if it wants a terminal and does not end by itself."""
    ending = asyncio.ensure_future(started.wait(left_ms))
    hearing = asyncio.ensure_future(noticed.wait())
    try:
        await asyncio.wait({ending, hearing}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await asyncio.wait({ending}, timeout=_GRACE_S)
        return ending.result() if ending.done() else None
    finally:
        for task in (ending, hearing):
            task.cancel()
        await asyncio.gather(ending, hearing, return_exceptions=True)


def _newest(kept: OutputBuffer, most: int) -> tuple[str, int]:
    """The newest of it, with at most so many bytes as JSON, and how many older bytes that leaves out. No character is cut."""
    most_json = most
    while True:
        chunk = kept.read(max(kept.start, kept.end - most))
        data, start = chunk.data, chunk.offset
        while start and data and data[0] & 0xC0 == 0x80:  # the rest of a character that was left out
            data, start = data[1:], start + 1
        text = data.decode("utf-8", "replace")
        size = len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
        if size <= most_json + 2:
            return text, start
        most = min(len(data) - 1, len(data) * most_json // size)


def _tail(kept: OutputBuffer) -> str | None:
    return kept.read(max(kept.start, kept.end - _FAILURE_OUTPUT_BYTES)).data.decode("utf-8", "replace") or None


def _describe(started: StartedCommand, stdout: OutputBuffer, stderr: OutputBuffer, most: int) -> JsonObject:
    said, said_from = _newest(stderr, most // 4)
    printed, printed_from = _newest(stdout, most - len(said.encode("utf-8", "replace")))
    fields: JsonObject = {"exit_code": started.result.exit_code, "stdout": printed, "stderr": said}
    if started.result.signal is not None:
        fields["signal"] = started.result.signal
    if printed_from:
        fields["stdout_dropped_bytes"] = printed_from
    if said_from:
        fields["stderr_dropped_bytes"] = said_from
    return fields


def _not_startable(program: str, cwd: str) -> ToolFailure:
    if "/" in program and os.path.exists(os.path.join(cwd, program)):
        said = f"{program!r} is there and cannot be started: not executable, no program, or its interpreter is missing."
        return ToolFailure(NOT_FOUND, f"{said} {ENOENT_HINT}", hint=ENOENT_HINT)
    said = f"The program {program!r} was not found (ENOENT)."
    return ToolFailure(NOT_FOUND, f"{said} {ENOENT_HINT}", hint=ENOENT_HINT, errno="ENOENT")


def _reason(refusal: GateRefusal) -> Reason:
    try:
        return Reason(refusal.reason)
    except ValueError:
        return Reason.CWD_OUTSIDE_ROOTS
