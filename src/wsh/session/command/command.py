"""The commands of an integrated shell, as objects: what ran, where, when, how it ended, and where its output lies.

The log is fed every byte of the session's output, once and in order, and learns everything from the marks in it; so a restart
brings it back from a snapshot and a replay. Output is known by offsets into the journal; only the newest command's raw
output is also held in memory, bounded. History is bounded too, the oldest go first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from wsh.session.command.line import Editor, ShellLine
from wsh.session.command.output import Capture, render_now
from wsh.session.event import CommandFinished, CommandStarted, LineTold, PromptShown
from wsh.session.shell.injection import ShellName
from wsh.session.shell.mark import Mark, MarkScanner
from wsh.wire.json.object import JsonObject

_AUTHOR_CHANGES = 32
CommandState: TypeAlias = Literal["running", "finished", "lost"]
Phase: TypeAlias = Literal["starting", "prompting", "prompt", "running"]
"""Before the first prompt; a prompt is being drawn; the shell reads a line; a command runs."""

CommandEvent: TypeAlias = CommandStarted | CommandFinished | PromptShown | LineTold

_EDITORS: dict[str, Editor] = {"e": "emacs", "v": "vi"}
_EOL_MARK = b"\x1b]6973;wsh-eol\x07"
_PASTE_OFF = b"\x1b[?2004l\r"
_HISTORY = re.compile(r"(?:\A|\n)\s*(\d+)[* ] (.*)", re.DOTALL)
_KEPT_CAPTURE = 256 * 1024
_HELD_CAPTURES = 32
_LONGEST_LINE = 64 * 1024


@dataclass(slots=True)
class Command:
    """One line that a shell ran. Offsets are of raw output; lines are absolute numbers of the session's scrollback."""

    id: int
    command: str
    cwd: str | None
    started: float | None
    """Seconds since the epoch, by the shell's clock where it has one."""
    start: int
    rows: int
    cols: int
    epoch: int
    first_line: int
    last_line: int | None = None
    end: int | None = None
    state: CommandState = "running"
    exit_code: int | None = None
    pipestatus: list[int] | None = None
    duration_ms: float | None = None
    author: dict[str, str] | None = None
    """Who pressed Enter, as `kind` and `id`; None where nobody knows any more."""

    @property
    def output_bytes(self) -> int | None:
        return None if self.end is None else self.end - self.start

    def to_wire(self) -> JsonObject:
        """As every door tells it."""
        return {
            "id": self.id,
            "command": self.command,
            "author": self.author,
            "cwd": self.cwd,
            "state": self.state,
            "started": self.started,
            "duration_ms": self.duration_ms,
            "exit_code": self.exit_code,
            "pipestatus": self.pipestatus,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "output_bytes": self.output_bytes,
        }


@dataclass(frozen=True, slots=True)
class MarkPlace:
    """Where the session's terminal is when a mark has just been parsed."""

    rows: int
    cols: int
    epoch: int
    line: int
    column: int


class CommandLog:
    """Made for a shell that was started with marks; until the first mark comes it only listens."""

    def __init__(self, nonce: str, shell: ShellName, limit: int) -> None:
        self.nonce = nonce
        self.shell = shell
        self.phase: Phase = "starting"
        self.current: Command | None = None
        self.prompts = 0
        """Prompts that were complete."""
        self.continued = 0
        """Times that the shell asked for the rest of a command."""
        self.finished = 0
        """Commands that ended, refused lines included."""
        self.empty_lines = 0
        """Times that Enter ran nothing."""
        self.silent = False
        """Awaited once in vain: the startup files may have replaced the shell by something else."""
        self.open_prompt = False
        """The newest prompt was never told to be complete: something draws it without our end."""
        self.refused_line = False
        """fish did not take the line and left it in its editor."""
        self.editor: Editor = ""
        """How the shell edits its line; empty if it would not understand our private keys."""
        self.line: ShellLine | None = None
        """The line that is being typed, as the shell last told it."""
        self.lines_told = 0
        self.holders = 0
        """Runs that will want the output when the command ends."""
        self._capture: Capture | None = None
        """Raw output of the running command; of the line being typed, while there is a prompt."""
        self._ended: dict[int, Capture] = {}
        """Raw output of commands that have ended: of all that a run waits for, else of the newest, if it is small."""
        self._scanner = MarkScanner(nonce)
        self._limit = limit
        self._commands: dict[int, Command] = {}
        self._next_id = 1
        self._cwd: str | None = None
        self._author: dict[str, str] | None = None
        """Of the newest command that has one: its successors share it, as they share the folder's name."""
        self.author_changes: list[tuple[int, dict[str, str]]] = []
        """Where another author's commands begin, by the offset of the first: what a snapshot is too old to know."""
        self._authors_until = 0
        self._history_number = ""
        self.continues = False
        """The shell asks for the rest of a command now."""
        self._began: float | None = None

    def nest(self, nonce: str, shell: ShellName) -> CommandLog:
        """The log of a shell inside of the running command; it numbers and keeps its commands as one of ours."""
        inner = CommandLog(nonce, shell, self._limit)
        inner._commands, inner._next_id, inner._cwd = self._commands, self._next_id, self._cwd
        inner.finished = self.finished
        return inner

    def go_on_after(self, inner: CommandLog) -> None:
        """The shell inside is gone: number on behind its commands."""
        self._next_id = max(self._next_id, inner._next_id)
        self.finished = max(self.finished, inner.finished)

    # reading

    def __len__(self) -> int:
        return len(self._commands)

    def __iter__(self) -> Iterator[Command]:
        """Oldest first."""
        return iter(self._commands.values())

    def find(self, id: int) -> Command | None:
        return self._commands.get(id)

    @property
    def asked(self) -> int:
        """How often the shell has asked for a line, or for the rest of one."""
        return self.prompts + self.continued

    @property
    def prompts_due(self) -> int:
        """As `prompts`, with the one that is being drawn."""
        return self.prompts + (self.phase == "prompting")

    @property
    def newest(self) -> Command | None:
        return next(reversed(self._commands.values()), None)

    def captured(self, command: Command) -> Capture | None:
        """Raw output of `command`, if that is still in memory."""
        if command is self.current:
            return self._capture
        return self._ended.get(command.id)

    def typed_since_prompt(self) -> str:
        """What is shown behind the prompt, as far as it has come."""
        if self.phase != "prompt" or self._capture is None:
            return ""
        return render_now(self._capture.newest[-_LONGEST_LINE:], 24, 1000).strip()

    def let_go(self) -> None:
        """Nobody waits for the newest output any more: keep a little of it, the journal has the rest."""
        most = 1 if self.holders == 0 else _HELD_CAPTURES
        while len(self._ended) > most:
            del self._ended[next(iter(self._ended))]
        if self.holders == 0:
            self._ended = {id: kept for id, kept in self._ended.items() if kept.held_bytes <= _KEPT_CAPTURE}

    # learning

    def consume(
        self,
        offset: int,
        data: bytes,
        shown: bytes,
        feed: Callable[[int, int], None],
        place: Callable[[], MarkPlace],
        *,
        live: bool = True,
    ) -> list[CommandEvent]:
        """Take the bytes from `offset` on, calling `feed(start, end)` so that the terminal is at each mark in turn.

        `shown` are the same bytes without the nonce: what is kept of the output.
        A replay is not `live`: then clocks of ours say nothing.
        """
        told: list[CommandEvent] = []
        at, end = offset, offset + len(data)
        for mark in self._scanner.scan(offset, data):
            self._keep(shown, at - offset, mark.end - offset)
            feed(at, mark.end)
            at = mark.end
            self._apply(mark, place(), told, live)
        if at < end:
            self._keep(shown, at - offset, end - offset)
            feed(at, end)
        return told

    def _keep(self, data: bytes, first: int, last: int) -> None:
        if self._capture is not None:
            self._capture.append(data[first:last] if (first, last) != (0, len(data)) else data)

    def _apply(self, mark: Mark, place: MarkPlace, told: list[CommandEvent], live: bool) -> None:
        self.silent = False
        match mark.kind:
            case "A":
                if self.current is not None:  # its end was not told: a hook of ours was removed
                    self._end(mark, place, told, live, lost=True)
                elif self.phase == "prompt" and self.shell == "bash":
                    self._end_without_begin(
                        mark, place, told, live
                    )  # history expansion failed: bash asks again at once
                self.phase = "prompting"
                self.editor = _EDITORS.get(mark.fields.get("k", ""), "")
                self.continues = False
                folder = mark.fields.get("d") or mark.fields.get("v")
                if folder and folder != self._cwd:  # else a thousand commands would each have a copy of the same name
                    self._cwd = folder
                self._history_number = mark.fields.get("h", "")
            case "B":
                self.phase = "prompt"
                self.open_prompt = False
                self.prompts += 1
                self.refused_line = False
                self._capture = Capture(mark.end)
                told.append(PromptShown(self.prompts))
            case "R":
                if self._capture is not None and not self.continues:
                    self._capture = Capture(mark.end)
            case "L":
                fields = mark.fields
                self.line = ShellLine(
                    fields.get("q", ""),
                    self.continues or fields.get("s") == "1",
                    fields.get("b", ""),
                    fields.get("k") == "c",
                )
                self.lines_told += 1
                told.append(LineTold(self.lines_told))
            case "P":
                self.continued += 1
                self.continues = True
                told.append(PromptShown(self.prompts))
            case "C":
                self.open_prompt = self.phase == "prompting"
                if self.current is not None and self.phase == "running" and self.shell == "bash":
                    self._go_on(self.current, mark)
                else:
                    self._begin(mark, place, told, live)
            case "D":
                if self.current is not None:
                    self._end(mark, place, told, live)
                else:
                    self._end_without_begin(mark, place, told, live)
                self.phase = "prompt" if self.refused_line else "prompting"

    def _begin(self, mark: Mark, place: MarkPlace, told: list[CommandEvent], live: bool) -> None:
        if self.current is not None:
            self._end(mark, place, told, live, lost=True)
        now = time.time() if live else None
        self._began = time.monotonic() if live else None
        self._add(
            Command(
                self._next_id,
                self._line_of(mark, place),
                self._cwd,
                _seconds(mark) or now,
                mark.end,
                place.rows,
                place.cols,
                place.epoch,
                place.line,
            )
        )
        self.phase = "running"
        self._capture = Capture(mark.end)
        self.current = self.newest
        if self.current is not None and self.current.start < self._authors_until:
            self._recall_author(self.current)
        self._next_id += 1
        told.append(CommandStarted(self._next_id - 1))

    def _go_on(self, command: Command, mark: Mark) -> None:
        """A pasted text is one command: bash runs it line by line, and says only how the last line ended."""
        entry = _HISTORY.search(mark.fields.get("h", ""))
        if entry is not None and len(command.command) < _LONGEST_LINE:
            command.command += f"\n{entry[2]}"

    def set_author(self, command: Command, author: dict[str, str]) -> bool:
        """True if it is another than that of the command before."""
        changed = author != self._author
        if changed:
            self._author = author
        if changed or not self.author_changes:
            self.author_changes = [*self.author_changes[1 - _AUTHOR_CHANGES :], (command.start, author)]
        command.author = self._author
        return changed

    def recall_authors(self, changes: Iterable[tuple[int, dict[str, str]]], until: int) -> None:
        """Before the output is parsed again in which those commands begin, which ends at `until`."""
        self.author_changes = [(int(offset), dict(author)) for offset, author in changes]
        self._authors_until = until

    def _recall_author(self, command: Command) -> None:
        known = [author for offset, author in self.author_changes if offset <= command.start]
        if known:
            command.author = known[-1]

    def _add(self, command: Command) -> None:
        self._commands[command.id] = command
        while len(self._commands) > self._limit:
            del self._commands[next(iter(self._commands))]

    def _end(self, mark: Mark, place: MarkPlace, told: list[CommandEvent], live: bool, *, lost: bool = False) -> None:
        command = self.current
        assert command is not None
        command.end = self._output_end(mark.start)
        self._close(command)
        command.state = "lost" if lost else "finished"
        if place.epoch == command.epoch:
            command.last_line = max(command.first_line, place.line - (1 if place.column == 0 else 0))
        if not lost:
            command.exit_code = mark.status
            command.pipestatus = _pipestatus(mark)
            command.duration_ms = self._duration(command, mark)
        told.append(CommandFinished(command.id))

    def _close(self, command: Command) -> None:
        self.current = None
        self.finished += 1
        if self._capture is not None:
            self._ended[command.id] = self._capture
            self._capture = None
        self.let_go()

    def _end_without_begin(self, mark: Mark, place: MarkPlace, told: list[CommandEvent], live: bool) -> None:
        """Enter on nothing; or a line that the shell would not take, which has words and a status of its own."""
        capture = self._capture
        said, start, typed = "", mark.start, b""
        if capture is not None:
            raw = capture.newest
            raw = raw[: len(raw) - max(0, capture.end - self._output_end(mark.start))]
            cut = self._echo_end(raw, mark)
            cut += len(raw[cut:]) - len(raw[cut:].lstrip(b"\r\n"))
            typed, start = raw[:cut], capture.end - len(capture.newest) + cut
            said = render_now(raw[cut:][:_LONGEST_LINE], place.rows, place.cols).strip()
        if not said and mark.fields.get("e") != "1" and mark.fields.get("c") != "1":
            self.empty_lines += 1
            self._capture = None
            return
        line = mark.fields.get("u") or render_now(typed[-_LONGEST_LINE:], place.rows, place.cols).strip()
        self.current = Command(
            self._next_id,
            line,
            self._cwd,
            _seconds(mark) or (time.time() if live else None),
            start,
            place.rows,
            place.cols,
            place.epoch,
            max(0, place.line - said.count("\n") - 1),
        )
        self._next_id += 1
        self._add(self.current)
        told.append(CommandStarted(self.current.id))
        if capture is not None:
            rest = Capture(start)
            rest.append(capture.newest[len(capture.newest) - (capture.end - start) :])
            self._capture = rest
        command = self.current
        self._end(mark, place, told, live)
        command.pipestatus = None
        sure = mark.status == 2 or mark.fields.get("c") in ("1", "2")
        if self.shell == "zsh" or (self.shell == "bash" and not sure):
            command.exit_code = 1  # the shell left the status of the command before
        command.duration_ms = 0.0
        self.refused_line = mark.fields.get("e") == "1"

    def _echo_end(self, raw: bytes, mark: Mark) -> int:
        """Where the echo of the typed line ends and the shell's own words begin."""
        if mark.fields.get("e") == "1":
            found = raw.find(b"\r\nfish: ")
            return found + 2 if found >= 0 else len(raw)
        found = raw.rfind(_PASTE_OFF)
        if found >= 0:
            return found + len(_PASTE_OFF)
        found = raw.find(b"\r\n")
        return found + 2 if found >= 0 else len(raw)

    def _output_end(self, end: int) -> int:
        """Where the output really ended: zsh may have written a mark of its own for a missing newline."""
        capture = self._capture
        if capture is None:
            return end
        capture.truncate(end)
        if self.shell == "zsh":
            raw = capture.newest[-_LONGEST_LINE:]
            found = raw.rfind(_EOL_MARK)
            if found >= 0:
                end = capture.end - len(raw) + found
                capture.truncate(end)
        return end

    def _line_of(self, mark: Mark, place: MarkPlace) -> str:
        """The command line: told by the shell, or read from what was typed after the prompt."""
        for key in ("l", "u"):
            if key in mark.fields:
                return mark.fields[key]
        entry = _HISTORY.search(mark.fields.get("h", ""))
        if entry is not None and entry[1] == self._history_number:
            return entry[2]
        capture = self._capture
        if capture is None or self.current is not None:
            return ""
        capture.truncate(mark.start)
        return render_now(capture.newest[-_LONGEST_LINE:], place.rows, place.cols).strip()

    def _duration(self, command: Command, mark: Mark) -> float | None:
        ended = _seconds(mark)
        if ended is not None and command.started is not None and ended >= command.started:
            return round((ended - command.started) * 1000, 3)
        if mark.fields.get("ms", "").isdigit():
            return float(mark.fields["ms"])
        if self._began is not None:
            return round((time.monotonic() - self._began) * 1000, 3)
        return None

    def shell_exited(self, exit_code: int, offset: int) -> list[CommandEvent]:
        """The shell itself is gone; the command that ran last (such as `exit 3`) ended with it."""
        command = self.current
        self.phase = "starting"
        if command is None:
            return []
        command.end, command.state, command.exit_code = offset, "finished", exit_code
        self._close(command)
        if self._began is not None:
            command.duration_ms = round((time.monotonic() - self._began) * 1000, 3)
        return [CommandFinished(command.id)]

    # over a restart

    def facts(self) -> JsonObject:
        """What a successor needs; the newest output itself is in the journal."""
        return {
            "scanner": self._scanner.state(),
            "phase": self.phase,
            "prompts": self.prompts,
            "finished": self.finished,
            "empty_lines": self.empty_lines,
            "next_id": self._next_id,
            "cwd": self._cwd,
            "history_number": self._history_number,
            "editor": self.editor,
            "continues": self.continues,
            "current": None if self.current is None else self.current.id,
            "commands": [asdict(command) for command in self],
        }

    def recall(self, facts: JsonObject) -> None:
        self._scanner.restore(facts.get("scanner") or {})
        self.phase = facts.get("phase", "starting")
        self.prompts = int(facts.get("prompts", 0))
        self.finished = int(facts.get("finished", 0))
        self.empty_lines = int(facts.get("empty_lines", 0))
        self._next_id = int(facts.get("next_id", 1))
        self._cwd = facts.get("cwd")
        self._history_number = str(facts.get("history_number", ""))
        self.editor = facts.get("editor", "")
        self.continues = bool(facts.get("continues"))
        for known in facts.get("commands", ()):
            command = Command(**known)
            if (newest := self.newest) is not None and newest.cwd == command.cwd:
                command.cwd = newest.cwd
            if command.author is not None:
                if command.author != self._author:
                    self._author = command.author
                command.author = self._author
            self._add(command)
        self.current = self._commands.get(facts.get("current") or 0)


def _seconds(mark: Mark) -> float | None:
    try:
        return float(mark.fields.get("t", "").replace(",", ".")) or None
    except ValueError:
        return None


def _pipestatus(mark: Mark) -> list[int] | None:
    """The status of each part of a pipeline; nothing for a command that was none."""
    parts = mark.fields.get("p", "").split("|")
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        return None
    return [int(part) for part in parts]
