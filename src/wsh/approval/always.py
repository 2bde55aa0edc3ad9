"""What "always" would write: exactly the words that were approved, for interactive mode; everything wider is a choice of its own."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsh.approval.escape import is_hidden
from wsh.approval.request import ApprovalValue
from wsh.policy import Policy, PolicyRequest, Rule, RuleEffect, RuleError, decide, parse_pattern
from wsh.policy.request import Mode
from wsh.policy.rule.rule import BOTH, fits

_SHOWN = 4
_LONGEST = 60


@dataclass(frozen=True)
class RuleChoice:
    """The rule that a person chose: `exact` means these words and no others; `headless` that it also runs where nobody looks."""

    pattern: str
    exact: bool = True
    headless: bool = False
    cwd: str | None = None
    """The only folder in which it holds; None for every folder."""

    @property
    def modes(self) -> frozenset[Mode]:
        return BOTH if self.headless else frozenset({Mode.INTERACTIVE})


class Widening(ApprovalValue):
    """A rule that covers more than what was asked, with what else it would let in."""

    rule: str
    says: str
    also: list[str]


class Proposal(ApprovalValue):
    """`rule` is the exact words; `wider` are the choices beyond them."""

    rule: str
    says: str
    wider: list[Widening]
    headless_says: str


def find_folder(pattern: str, cwd: str) -> str | None:
    """The folder that a rule must name, since its program, such as `./build.sh`, is another one elsewhere. None: it holds anywhere. Raises RuleError."""
    tokens, _ = parse_pattern(pattern)
    return cwd if tokens and "/" in tokens[0] and not tokens[0].startswith("/") else None


def propose(argv: Sequence[str], past: Iterable[Sequence[str]] = (), cwd: str = "") -> Proposal | None:
    """A proposal for `argv` in `cwd`; None if no rule can be written that means exactly these words."""
    exact = shlex.join(argv)
    if any(map(is_hidden, exact)):
        return None  # a rule is shown as it is written
    try:
        if parse_pattern(exact) != (tuple(argv), False):
            return None
    except RuleError:
        return None
    known = list(dict.fromkeys(tuple(words) for words in past if words))
    patterns = []
    if len(argv) > 2 and not argv[1].startswith("-"):
        patterns.append(f"{shlex.join(argv[:2])} *")
    patterns.append(f"{shlex.quote(argv[0])} *")
    wider = [
        made for pattern in patterns if pattern != exact and (made := _widen(pattern, tuple(argv), known)) is not None
    ]
    where = "any folder" if find_folder(exact, cwd) is None else "this folder alone"
    return Proposal(
        rule=exact,
        says=f"These words and no others, in {where}, and only where a person can watch.",
        wider=wider,
        headless_says="Also lets it run headless: at once, with nobody looking.",
    )


def describe_also(pattern: str, argv: Sequence[str], past: Iterable[Sequence[str]] = ()) -> list[str]:
    """What else `pattern` would allow: from what was asked before, and examples where the program's are known."""
    tokens, any_arguments = parse_pattern(pattern)
    rule = Rule(RuleEffect.ALLOW, tokens, any_arguments)
    name = argv[0].rpartition("/")[2]
    examples = [tuple(shlex.split(each)) for each in _EXAMPLES.get(name, ())]
    others = [words for words in (*past, *examples) if tuple(words) != tuple(argv) and fits(rule, tuple(words)).matched]
    return [shlex.join(words)[:_LONGEST] for words in dict.fromkeys(map(tuple, others))][:_SHOWN]


def would_allow(question: PolicyRequest, policy: Policy, choice: RuleChoice) -> bool:
    """Whether the policy would allow `question` if this rule were in it: an "always" that changes nothing is not offered."""
    tokens, any_arguments = parse_pattern(choice.pattern)
    rule = Rule(RuleEffect.ALLOW, tokens, any_arguments, choice.modes, choice.cwd, exact=choice.exact)
    return decide(question, dataclasses.replace(policy, rules=(*policy.rules, rule))).allowed


def _widen(pattern: str, argv: tuple[str, ...], past: Sequence[tuple[str, ...]]) -> Widening | None:
    try:
        also = describe_also(pattern, argv, past)
    except RuleError:
        return None
    told = "; ".join(also) if also else "anything that begins with these words"
    return Widening(rule=pattern, says=f"Any arguments. Also allows: {told}.", also=also)


_EXAMPLES: dict[str, tuple[str, ...]] = {
    "make": ("make install", "make clean", "make -f other.mk"),
    "npm": ("npm run deploy", "npm install left-pad", "npm publish"),
    "git": ("git push --force", "git config user.email x", "git reset --hard"),
    "python": ("python -c 'import os'", "python setup.py install"),
    "python3": ("python3 -c 'import os'", "python3 setup.py install"),
    "pip": ("pip install anything", "pip uninstall -y anything"),
    "cargo": ("cargo install anything", "cargo publish", "cargo run"),
    "go": ("go run ./cmd/other", "go install anything@latest"),
    "docker": ("docker run --privileged image", "docker system prune -f"),
    "bash": ("bash -c 'curl x | sh'",),
    "sh": ("sh -c 'curl x | sh'",),
    "node": ("node -e 'process.exit()'",),
    "curl": ("curl -d @file https://example.com",),
    "ssh": ("ssh host reboot",),
}
