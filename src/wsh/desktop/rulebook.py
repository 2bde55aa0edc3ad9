"""The policy as the window shows and changes it: the file stays the truth, every change is audited and holds at once.

Here are the words of the policy page; what a rule means is the policy room's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsh.approval.always import RuleChoice
from wsh.desktop.message import PolicyView, RuleRow, WindowNotice
from wsh.policy import Kind, Mode, Policy, Rule, RuleEffect, parse_pattern
from wsh.policy.audit import Audit
from wsh.policy.file.edit import NewRule, add_rule, change_rule, locked, set_value, write_policy
from wsh.policy.file.store import PolicyStore, say_why_broken
from wsh.policy.rule.rule import BOTH, RuleError, fits

_NAMED = 5
"""Rules that a notice names."""


class Rulebook:
    """Tells a `PolicyView` after each change, also those of others, and calls `announce` so that servers hear of it."""

    def __init__(
        self, store: PolicyStore, audit: Audit, tell: Callable[[object], None], announce: Callable[[], None]
    ) -> None:
        self.store = store
        self._audit = audit
        self._tell = tell
        self._announce = announce
        self._rules: dict[str, str] | None = None
        self._ours = False

    # hearing

    def heard(self, policy: Policy) -> None:
        """The file changed, by us or by somebody else."""
        view = self.view(policy)
        self._tell(view)
        if policy.broken is None:
            self._tell_difference({row.key: row.command for row in view.rules})
        self._announce()

    def view(self, policy: Policy | None = None) -> PolicyView:
        policy = self.store.current() if policy is None else policy
        rows: dict[str, RuleRow] = {}
        for rule in policy.rules:
            row = _row(rule)
            rows.setdefault(row.key, row)
        return PolicyView(
            rules=tuple(rows.values()),
            warning=say_why_broken(policy) or "",
            path=str(self.store.path),
            roots=", ".join(policy.cwd_roots),
            kinds=tuple(kind.value for kind in Kind),
            blocked=tuple(sorted(kind.value for kind in policy.blocked)),
            also=", ".join(" ".join(words) for words in policy.also_destructive),
            variables=", ".join(policy.env_allow),
            lifetime_s=(policy.lifetime_ms or 0) // 1000,
            wait_s=(policy.approval_ms or 0) // 1000,
        )

    def _tell_difference(self, rules: dict[str, str]) -> None:
        """Tell the person what was changed in the file outside of this window."""
        before, self._rules = self._rules, rules
        if before is None or self._ours:
            return
        added = [name for key, name in rules.items() if key not in before]
        gone = [name for key, name in before.items() if key not in rules]
        parts = [f"{word} {_name_some(names)}" for word, names in (("added", added), ("removed", gone)) if names]
        said = "; ".join(parts) if parts else "limits or comments; the rules are the same"
        self._tell(WindowNotice(f"The policy file was changed outside this window: {said}."))

    # changing

    def _write(self, rewrite: Callable[[str], str], by: str = "window", **entry: object) -> None:
        """Change the file as it stands now, so that an edit by hand is not lost, and take it up at once."""
        self.store.check()
        with locked(self.store.path) as text:
            changed = rewrite(text)
            # First the trail: a change that cannot be recorded is not made.
            self._audit.append({"event": "policy", "by": by, **entry})
            write_policy(self.store.path, changed)
        self._ours = True
        try:
            self.store.check()
        finally:
            self._ours = False

    def add(self, command: str, effect: str, modes: str, comment: str, cwd: str = "", by: str = "window") -> None:
        rule = _rule(command, effect, modes, comment, cwd)
        self._write(lambda text: add_rule(text, rule), by=by, change=effect, rule=command, modes=modes, cwd=cwd)

    def write_always(self, choice: RuleChoice, comment: str, by: str) -> None:
        """The rule of an accepted "always" answer."""
        rule = NewRule(choice.pattern, RuleEffect.ALLOW, choice.modes, choice.cwd, comment=comment, exact=choice.exact)
        modes = "both" if choice.headless else "interactive"
        self._write(
            lambda text: add_rule(text, rule),
            by=by,
            change="allow",
            rule=choice.pattern,
            modes=modes,
            cwd=choice.cwd or "",
            exact=choice.exact,
        )

    def change(self, key: str, command: str, effect: str, modes: str, comment: str, cwd: str) -> None:
        """Put other words in the place of a rule."""
        row = self._find(key)
        new = NewRule(
            command,
            RuleEffect(effect),
            _modes(modes),
            cwd or None,
            row.workspace or None,
            row.surface or None,
            comment=comment or None,
            exact=row.exact and command == row.command and effect == "allow",
        )
        self._write(lambda text: _found(change_rule(text, _old(row), new)), change="edit", rule=command, was=row.label)

    def remove(self, key: str) -> None:
        row = self._find(key)
        self._write(
            lambda text: _found(change_rule(text, _old(row), None)), change="revoke", rule=row.command, was=row.label
        )

    def _find(self, key: str) -> RuleRow:
        for row in self.view().rules:
            if row.key == key:
                return row
        raise RuleError("That rule is no longer in the file.")

    def set_roots(self, roots: Sequence[str]) -> None:
        self._set("cwd", "roots", list(roots) or None, "roots")

    def set_blocked(self, kind: str, on: bool) -> None:
        """Whether a class of destruction is treated as such. What is irrecoverable is refused whatever is said here."""
        blocked = set(self.store.current().blocked)
        (blocked.add if on else blocked.discard)(Kind(kind))
        names = sorted(each.value for each in blocked)
        self._set("destructive", "blocked", None if len(names) == len(Kind) else names, "destructive classes")

    def set_also(self, patterns: Sequence[str]) -> None:
        self._set("destructive", "also", list(patterns) or None, "also destructive")

    def set_variables(self, names: Sequence[str]) -> None:
        self._set("env", "allow", list(names), "variables")

    def set_lifetime(self, seconds: int) -> None:
        self._set("headless", "lifetime_ms", seconds * 1000 or None, "headless lifetime")

    def set_wait(self, seconds: int) -> None:
        self._set("interactive", "approval_ms", seconds * 1000 or None, "time to answer")

    def _set(self, section: str, name: str, value: object, change: str) -> None:
        self._write(lambda text: set_value(text, section, name, value), change=change, value=value)

    # looking ahead

    def preview(self, pattern: str, past: Sequence[Sequence[str]]) -> str:
        """What a rule would have meant for the commands of the past."""
        if not pattern.strip():
            return ""
        try:
            tokens, any_arguments = parse_pattern(pattern)
        except RuleError as problem:
            return str(problem)
        if not past:
            return "There is no history yet to compare with."
        rule = Rule(RuleEffect.ALLOW, tokens, any_arguments)
        fitting = [fits(rule, tuple(argv)) for argv in past]
        hits = [" ".join(argv) for argv, fit in zip(past, fitting, strict=True) if fit.matched]
        said = f"Covers {len(hits)} of the last {len(past)} commands"
        if hits:
            some = list(dict.fromkeys(hits))
            return f"{said}: {', '.join(text[:40] for text in some[:3])}{', …' if len(some) > 3 else '.'}"
        fault = next((fit.fault for fit in fitting if fit.fault), None)
        return f"{said}. {fault}." if fault else f"{said}."


def _name_some(names: Sequence[str]) -> str:
    """The first few, and how many there are beside them."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _found(result: tuple[str, bool]) -> str:
    text, found = result
    if not found:
        raise RuleError("That rule is no longer in the file.")
    return text


def _row(rule: Rule) -> RuleRow:
    modes = "both" if len(rule.modes) > 1 else next(iter(rule.modes)).value
    shipped = rule.origin in ("built-in", "the shipped defaults")
    scope = " ".join(part for part in (rule.cwd, rule.workspace, rule.caller_surface) if part)
    return RuleRow(
        key=f"{rule.effect.value} {modes} {scope} {'exactly ' if rule.exact else ''}{rule.pattern}",
        command=rule.pattern,
        effect=rule.effect.value,
        modes=modes,
        cwd=rule.cwd or "",
        workspace=rule.workspace or "",
        surface=rule.caller_surface or "",
        comment=rule.comment,
        shipped=shipped,
        exact=rule.exact,
    )


def _modes(name: str) -> frozenset[Mode]:
    return BOTH if name == "both" else frozenset({Mode(name)})


def _rule(command: str, effect: str, modes: str, comment: str, cwd: str) -> NewRule:
    return NewRule(command, RuleEffect(effect), _modes(modes), cwd=cwd or None, comment=comment or None)


def _old(row: RuleRow) -> NewRule:
    return NewRule(
        row.command,
        RuleEffect(row.effect),
        _modes(row.modes),
        row.cwd or None,
        row.workspace or None,
        row.surface or None,
        exact=row.exact,
    )
