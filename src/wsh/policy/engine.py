"""The decision: one pure function from a request and a policy to a verdict.

Order of the questions: can it be understood, is it irrecoverable, does a rule forbid it, is it destructive, may it run
there and with those variables, is it more than literal words, does a rule allow it. Silence denies (headless) or asks
(interactive). Every bail-out denies.
"""

from __future__ import annotations

import posixpath

from wsh.policy.parse.hygiene import MAX_ARGUMENTS, find_argv_fault, find_fault, readable
from wsh.policy.parse.lexer import Broken, LiteralCommand, NotLiteral, lex
from wsh.policy.parse.shell import TooComplicated, parse, read_literal
from wsh.policy.policy import SHIPPED, Policy
from wsh.policy.request import Action, Mode, PolicyRequest
from wsh.policy.risk.assess import Assessment, CommandSetting, assess_argv, assess_text
from wsh.policy.risk.label import Label
from wsh.policy.rule.rule import Rule, RuleEffect, fits, forbids, is_within
from wsh.policy.verdict import Effect, Kind, Reason, Risk, RiskReason, Verdict

_NO_ASSESSMENT = Assessment()


class _Understanding:
    """What is known about the command of a request."""

    def __init__(self, request: PolicyRequest, policy: Policy) -> None:
        self.segments: tuple[tuple[str, ...], ...] = ()
        self.operators: tuple[str, ...] = ()
        self.fault: str | None = None
        """It is no command at all, or could not be read."""
        self.opaque: str | None = None
        """It uses shell syntax that is not understood word by word."""
        self.assessment = _NO_ASSESSMENT
        setting = CommandSetting(request.cwd, request.home, tuple(request.env.items()), policy.also_destructive)
        try:
            if request.argv is not None:
                self._read_argv(request.argv, setting)
            elif request.command is not None:
                self._read_text(request.command, setting)
            else:
                self.fault = "there is no command"
        except TooComplicated as problem:
            self._give_up(f"{problem.what}; that is too much to be understood")
        except RecursionError:
            self._give_up("it is nested too deeply to be understood")

    def _give_up(self, fault: str) -> None:
        self.segments, self.operators, self.fault = (), (), self.fault or fault
        unknown = RiskReason(Risk.DESTRUCTIVE, Kind.UNKNOWN, "what it does cannot be found out")
        self.assessment = Assessment([*self.assessment.reasons, unknown])

    def _read_argv(self, argv: tuple[str, ...], setting: CommandSetting) -> None:
        self.fault = find_argv_fault(argv)
        if self.fault is None:
            self.segments = (argv,)
            self.assessment = assess_argv(argv, setting)
        elif argv and len(argv) <= MAX_ARGUMENTS:
            self.assessment = assess_argv([readable(word) for word in argv], setting)

    def _read_text(self, text: str, setting: CommandSetting) -> None:
        self.fault = find_fault(text)
        if self.fault is not None:
            self.assessment = assess_text(readable(text), setting)
            return
        literal: LiteralCommand | None = None
        try:
            literal = lex(text)
        except NotLiteral as problem:
            self.opaque = problem.what
        except Broken as problem:
            self.fault = problem.what
        tree = parse(text)
        self.assessment = assess_text(text, setting, tree)
        if literal is None:
            if self.assessment.broken and self.fault is None:
                self.fault = "the shell grammar does not accept it"
            return
        # Two readers that know nothing of each other must agree on every word.
        if read_literal(tree) != literal:
            self.opaque = "something that two parsers read differently"
            return
        if any(not segment[0] for segment in literal.segments):
            self.fault = "it names no program"
            return
        self.segments, self.operators = literal.segments, literal.operators


def decide(request: PolicyRequest, policy: Policy) -> Verdict:
    """What may happen with `request`. Never raises, never touches anything."""
    if request.action in (Action.READ_OUTPUT, Action.TERMINATE, Action.LIST):
        return Verdict(Effect.ALLOW, Risk.NONE, Reason.NO_COMMAND, "Nothing is run.")
    if request.action is Action.OPEN:
        if request.mode is Mode.HEADLESS:
            return Verdict(Effect.DENY, Risk.NONE, Reason.NOT_HEADLESS, "A terminal cannot be opened without a window.")
        return Verdict(Effect.ALLOW, Risk.NONE, Reason.NO_COMMAND, "A terminal is opened and nothing is run.")
    return _Decision(request, policy).verdict()


class _Decision:
    def __init__(self, request: PolicyRequest, policy: Policy) -> None:
        self.request = request
        self.policy = policy
        self.known = _Understanding(request, policy)
        self.headless = request.mode is Mode.HEADLESS

    def _say(
        self, effect: Effect, reason: Reason, message: str, rule: Rule | None = None, hint: str | None = None
    ) -> Verdict:
        known = self.known
        return Verdict(
            effect,
            known.assessment.risk,
            reason,
            message,
            rule.label if rule is not None else None,
            known.segments,
            known.operators,
            tuple(known.assessment.reasons),
            hint,
            tuple(known.assessment.labels),
        )

    def verdict(self) -> Verdict:
        known, request = self.known, self.request
        if known.fault is not None:
            return self._say(
                Effect.DENY,
                Reason.PARSE_ERROR,
                f"The command was not understood: {known.fault}.",
                hint="Write it plainer.",
            )
        wipes = [found for found in known.assessment.reasons if found.risk is Risk.IRRECOVERABLE]
        if wipes:
            return self._say(
                Effect.DENY,
                Reason.IRRECOVERABLE,
                f"Refused: {_tell(wipes[0])}, and nothing could bring it back.",
                hint="If it must be, a person has to do it by hand.",
            )
        forbidding = self._find_denial()
        if forbidding is not None:
            return self._say(
                Effect.DENY,
                Reason.DENIED_BY_RULE,
                f"The rule {forbidding.label!r} ({forbidding.origin}) forbids it.",
                forbidding,
            )
        blocking = [found for found in known.assessment.reasons if found.kind in self.policy.blocked]
        if blocking:
            return self._say(
                self._softly(),
                Reason.DESTRUCTIVE,
                f"It {_tell(blocking[0])}.",
                hint="Ask for it in interactive mode, where a person can approve it." if self.headless else None,
            )
        limited = self._check_place()
        if limited is not None:
            return limited
        if self.policy.broken is not None and self.headless:
            return self._say(
                Effect.DENY,
                Reason.POLICY_BROKEN,
                f"The policy file cannot be used, so nothing is allowed: {self.policy.broken}",
                hint="Correct the policy file; `wsh policy show` says where it is wrong.",
            )
        if known.opaque is not None:
            return self._syntax(known.opaque)
        if self.headless and known.operators:
            return self._syntax(f"the operator {known.operators[0]!r}")
        return self._check_rules(request)

    def _softly(self) -> Effect:
        return Effect.DENY if self.headless else Effect.ASK

    def _syntax(self, what: str) -> Verdict:
        return self._say(
            self._softly(),
            Reason.SHELL_SYNTAX,
            f"It uses {what}.",
            hint="No shell runs headless commands: give one program and its literal arguments."
            if self.headless
            else None,
        )

    def _check_place(self) -> Verdict | None:
        cwd, roots = self.request.cwd, self.policy.cwd_roots
        if cwd is not None and (not cwd.startswith("/") or posixpath.normpath(cwd) != cwd or "\0" in cwd):
            return self._say(Effect.DENY, Reason.CWD_OUTSIDE_ROOTS, f"The folder {cwd!r} is not a canonical path.")
        if roots and (cwd is None or not any(is_within(cwd, root) for root in roots)):
            return self._say(
                self._softly(),
                Reason.CWD_OUTSIDE_ROOTS,
                f"The folder {cwd!r} is outside {', '.join(roots)}." if cwd else "The folder to run in is not known.",
                hint="Choose a folder within the roots that the policy names.",
            )
        for name, value in self.request.env.items():
            if not name or "=" in name or "\0" in name + value:
                return self._say(Effect.DENY, Reason.ENV_NOT_ALLOWED, f"{name!r} cannot be an environment variable.")
            if _leads_astray(name, value):
                return self._say(
                    Effect.DENY,
                    Reason.ENV_NOT_ALLOWED,
                    f"The value of {name!r} leads to a file of the caller's choice.",
                    hint="Give the name of a language, a time zone or a terminal, not a path.",
                )
            if not self.policy.allows_variable(name):
                return self._say(
                    self._softly(),
                    Reason.ENV_NOT_ALLOWED,
                    f"The policy does not let callers set the environment variable {name!r}.",
                    hint="Leave it out, or have it added to [env] allow in the policy.",
                )
        return None

    def _find_denial(self) -> Rule | None:
        """The deny rule that wins over every allow rule, if there is one."""
        denials = [rule for rule in self.policy.rules if rule.effect is RuleEffect.DENY and rule.holds(self.request)]
        if not denials:
            return None
        outer = set(self.known.segments)
        for words in [*self.known.segments, *self.known.assessment.commands]:
            hits = [rule for rule in denials if forbids(rule, words)]
            if not hits:
                continue
            strongest = max(hits, key=lambda rule: rule.rank)
            allowing = self._find_allow(words)[0] if words in outer else None
            if allowing is None or strongest.rank >= allowing.rank:
                return strongest
        return None

    def _find_allow(self, argv: tuple[str, ...]) -> tuple[Rule | None, str | None]:
        """The most specific allow rule for `argv`, else why the nearest one does not fit."""
        best: Rule | None = None
        nearest: str | None = None
        for rule in self.policy.rules:
            if rule.effect is not RuleEffect.ALLOW or not rule.holds(self.request):
                continue
            fit = fits(rule, argv)
            if fit.matched and (best is None or rule.rank > best.rank):
                best = rule
            elif fit.fault is not None:
                nearest = fit.fault
        return best, nearest

    def _check_rules(self, request: PolicyRequest) -> Verdict:
        found: list[Rule] = []
        for segment in self.known.segments:
            rule, nearest = self._find_allow(segment)
            if rule is None:
                told = f": {nearest}" if nearest else ""
                return self._say(
                    self._softly(),
                    Reason.NOT_ALLOWLISTED,
                    f"No rule allows {segment[0]!r} with these arguments in {request.mode.value} mode{told}.",
                    hint="Ask for it in interactive mode, or have a rule added with `wsh policy allow`."
                    if self.headless
                    else None,
                )
            found.append(rule)
        secret = next((each for each in self.known.assessment.labels if each.label is Label.READS_SECRETS), None)
        if self.headless and secret is not None and any(rule.origin == SHIPPED for rule in found):
            return self._say(
                Effect.DENY,
                Reason.NOT_ALLOWLISTED,
                f"The shipped list does not cover it. {secret.what}",
                hint="Ask for it in interactive mode, or have a rule of your own added with `wsh policy allow`.",
            )
        broadest = min(found, key=lambda rule: rule.rank)
        return self._say(
            Effect.ALLOW, Reason.ALLOWED, f"The rule {broadest.label!r} ({broadest.origin}) allows it.", broadest
        )


def _leads_astray(name: str, value: str) -> bool:
    """Catalogues of messages, time zones and descriptions of terminals are read from where their names lead."""
    if name == "TZ":
        return value.lstrip(":").startswith("/") or ".." in value
    return "/" in value and (name in ("LANG", "LANGUAGE", "TERM") or name.startswith("LC_"))


def _tell(finding: RiskReason) -> str:
    return f"{finding.what} ({finding.command})" if finding.command else finding.what
