"""The rules: which happenings are told, of which sessions, by which channels. One file that a person may edit, `notify.toml`."""

from __future__ import annotations

import logging
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from wsh.wire.error import InvalidRequest
from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger(__name__)

NoticeKind: TypeAlias = Literal["request", "hidden", "asks", "failed", "finished", "exited", "quiet", "told"]
Channel: TypeAlias = Literal["page", "push", "desktop", "webhook", "line"]
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
WAITING: frozenset[NoticeKind] = frozenset({"request", "hidden", "asks"})
"""Kinds that are over as soon as somebody has answered."""
_USUAL_QUIET_S = 300.0
_MOST_RULES = 100


@dataclass(frozen=True)
class NoticeRule:
    """`after_s`: how long a command must have taken, or, for `quiet`, how long a session must have been silent."""

    on: tuple[NoticeKind, ...]
    to: tuple[Channel, ...]
    session: str = "*"
    """A pattern of names, as a shell has them."""
    after_s: float = 0.0
    into: str = ""
    """For `line`: the session that is typed into."""
    line: str = ""
    front: int = 0
    """For `line`: the process group that it is meant for; 0 for the session's own program."""

    def fits(
        self, kinds: Iterable[NoticeKind], session: str | None, took_s: float | None, quiet_s: float | None = None
    ) -> bool:
        """`quiet_s` is the length that a silence has just reached: only rules that name this length tell of it then."""
        if not set(kinds) & set(self.on):
            return False
        if self.session != "*" and (session is None or not fnmatchcase(session, self.session)):
            return False
        if quiet_s is not None:
            return self.quiet_s == quiet_s
        return took_s is None or took_s >= self.after_s

    @property
    def quiet_s(self) -> float | None:
        """After how long a silence it tells; None if it does not."""
        return (self.after_s or _USUAL_QUIET_S) if "quiet" in self.on else None


USUAL: tuple[NoticeRule, ...] = (
    NoticeRule(("request", "hidden", "asks"), ("page", "push", "desktop", "webhook")),
    NoticeRule(("told",), ("page", "push", "desktop", "webhook")),
    NoticeRule(("failed", "finished"), ("page", "push", "desktop", "webhook"), after_s=30.0),
)
"""The rules of a person who has written none."""


class RuleBook:
    """The rules in force. The file is read again when it has changed; one that cannot be used leaves the rules as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._rules: tuple[NoticeRule, ...] = USUAL
        self.warning: str | None = None
        self.since = 0.0
        """When the rules in force were written: they do not tell of what ended before."""
        self.changed: Callable[[], None] = lambda: None
        """Called when other rules are in force."""

    @property
    def rules(self) -> tuple[NoticeRule, ...]:
        self.refresh()
        return self._rules

    def refresh(self) -> None:
        """Read the file if it is another one than before."""
        try:
            info = self._path.stat()
        except OSError:
            if self._stamp is not None:
                self._stamp, self.warning = None, None
                self._take(USUAL, _when_changed(self._path.parent))
            return
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            rules = read_rules(tomllib.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, InvalidRequest) as problem:
            self.warning = f"{self._path.name} cannot be used, the rules before it hold: {problem}"
            log.warning("%s", self.warning)
            return
        self.warning = None
        self._take(rules, info.st_ctime)

    def _take(self, rules: tuple[NoticeRule, ...], since: float) -> None:
        before, self._rules = self._rules, rules
        if rules != before:
            self.since = since
            self.changed()

    @property
    def is_usual(self) -> bool:
        return self.rules is USUAL

    def write(self, rules: Sequence[NoticeRule] | None) -> None:
        """Replace the rules; None goes back to the usual ones."""
        if rules is None:
            self._path.unlink(missing_ok=True)
            return
        ensure_private(self._path.parent)
        write_private(self._path, _to_toml(rules).encode())


def _when_changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()


def read_rules(data: Mapping[str, object]) -> tuple[NoticeRule, ...]:
    """Raises InvalidRequest for what cannot be a rule."""
    found = data.get("rule", [])
    if set(data) - {"rule"} or not isinstance(found, list) or len(found) > _MOST_RULES:
        raise InvalidRequest(f"The file holds at most {_MOST_RULES} tables [[rule]] and nothing else.")
    return tuple(check_rule(one) for one in found)


def check_rule(raw: object) -> NoticeRule:
    known = {each.name for each in fields(NoticeRule)}
    if not isinstance(raw, Mapping) or set(raw) - known:
        raise InvalidRequest(f"A rule has the fields {', '.join(sorted(known))}.", hint="`wsh notify add` writes one.")
    on, to = _words(raw.get("on"), KINDS, "on"), _words(raw.get("to"), CHANNELS, "to")
    after, front = raw.get("after_s", 0.0), raw.get("front", 0)
    if isinstance(after, bool) or not isinstance(after, int | float) or not 0 <= after <= 604_800:
        raise InvalidRequest("after_s is a number of seconds, at most a week.")
    if isinstance(front, bool) or not isinstance(front, int) or front < 0:
        raise InvalidRequest("front is the number of a process group.")
    session, into, line = (raw.get(key, usual) for key, usual in (("session", "*"), ("into", ""), ("line", "")))
    if not (isinstance(session, str) and isinstance(into, str) and isinstance(line, str)) or len(session) > 200:
        raise InvalidRequest("session, into and line are texts.")
    if ("line" in to) != bool(into and line) or ((into or line) and "line" not in to):
        raise InvalidRequest("The channel line needs `into` and `line`, and only it takes them.")
    if line:
        from wsh.inbox.wake import check_line

        check_line(line)
    return NoticeRule(on, to, session or "*", float(after), into, line, front)  # type: ignore[arg-type]  # checked above


def _words(found: object, allowed: Sequence[str], name: str) -> tuple[str, ...]:
    if not isinstance(found, list | tuple) or not found or any(word not in allowed for word in found):
        raise InvalidRequest(f"`{name}` names one or more of {', '.join(allowed)}.")
    return tuple(dict.fromkeys(str(word) for word in found))


def _to_toml(rules: Sequence[NoticeRule]) -> str:
    import tomlkit

    document = tomlkit.document()
    document.add(
        tomlkit.comment("What wsh tells you, and how. `wsh notify add` and `wsh notify remove` write this file.")
    )
    tables = tomlkit.aot()
    for rule in rules:
        table = tomlkit.table()
        for each in fields(rule):
            value = getattr(rule, each.name)
            if value or each.name in ("on", "to"):
                table[each.name] = list(value) if isinstance(value, tuple) else value
        tables.append(table)
    if tables:
        document["rule"] = tables
    return tomlkit.dumps(document)
