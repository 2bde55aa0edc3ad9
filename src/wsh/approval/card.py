"""What a person is shown of a request, and what they may press. Looks draw this and add nothing."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from wsh.approval.always import Proposal
from wsh.approval.answer import Pending, list_scopes
from wsh.approval.escape import escape_argument, escape_text
from wsh.approval.request import AnswerScope, ApprovalRequest, ApprovalValue, Badge, Id, Place, RequestKind, RiskName

if TYPE_CHECKING:
    from wsh.approval.approver import Approver

PressName: TypeAlias = Literal["once", "session", "always", "edit", "decline"]
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash"})
_INTERPRETERS = {"python": "-c", "python3": "-c", "perl": "-e", "ruby": "-e", "node": "-e", "php": "-r"}
TITLES: dict[RequestKind, str] = {
    "run": "Run a command",
    "open": "Open a terminal",
    "send": "Type into a terminal",
    "hook": "Let a program run a command",
    "hidden": "Type at a hidden prompt",
}


_PLACES: dict[RequestKind, tuple[Place, str]] = {
    "hook": ("host", "the program that asks, by itself"),
    "hidden": ("server", "its session at the server, where you can type it yourself instead"),
}
_VERBS: dict[RequestKind, str] = {"hook": "allow", "hidden": "type"}


class Press(ApprovalValue):
    """One thing that may be pressed. `hold`: only on purpose, by holding it or by typing a word."""

    name: PressName
    text: str
    hold: bool = False
    says: str = ""


class Card(ApprovalValue):
    """Every text in it is visible as it stands: nothing hides in an argument."""

    id: Id
    trace_id: Id
    request_id: Id
    kind: RequestKind
    title: str
    place: Place
    place_name: str
    command: str
    argv: list[str]
    script: list[str] = Field(default_factory=list)
    """The lines of a script given by `-c`, beside the exact form in `argv`."""
    cwd: str
    sandbox: str | None = None
    """The profile that holds it. Only to servers with the capability `sandbox`."""
    leaves: str | None = None
    """The profile that it asks to leave; it then runs without."""
    executable: str | None = None
    executable_sha256: str | None = None
    env: list[str] = Field(default_factory=list)
    risk: RiskName
    badges: list[Badge] = Field(default_factory=list)
    reasons: list[str] = Field(default_factory=list)
    rule: str | None = None
    asker: str
    client: str
    workspace: str = ""
    note: str = ""
    """The agent's own claim."""
    binding: str
    hold: bool
    presses: list[Press]
    scopes: list[AnswerScope] = Field(min_length=1)
    editable: str | None = None
    always: Proposal | None = None
    policy_file: str | None = None
    deadline: float
    """Unix time at which it expires, by the clock of the card's maker."""
    left_ms: int = Field(ge=0)


def make_card(pending: Pending, end: Approver) -> Card:
    request, evidence, judgement = pending.request, pending.evidence, pending.judgement
    proposal = end.propose_rule(pending) if "always" in list_scopes(pending) else None
    scopes = [scope for scope in list_scopes(pending) if scope != "always" or proposal is not None]
    runs = request.kind == "run"
    editable = runs and request.leaves is None
    # What is asked at a hidden prompt is described in a sentence, which needs no quotes.
    words = [escape_text(request.command)] if request.kind == "hidden" else list(evidence.shown_argv)
    left_s = pending.remaining_s
    return Card(
        id=request.id,
        trace_id=request.trace_id,
        request_id=request.request_id,
        kind=request.kind,
        title=TITLES[request.kind],
        place=_PLACES.get(request.kind, (end.place, ""))[0],
        place_name=_PLACES.get(request.kind, ("", ""))[1] or end.place_name,
        command=" ".join(words),
        argv=words,
        script=list_script_lines(evidence.argv)
        if runs
        else list_lines(evidence.argv[0])
        if request.kind == "hook"
        else [],
        cwd=escape_text(evidence.cwd),
        sandbox=evidence.sandbox,
        leaves=escape_text(request.leaves) if request.leaves is not None else None,
        executable=escape_text(evidence.executable) if evidence.executable is not None else None,
        executable_sha256=evidence.executable_sha256,
        env=list(evidence.shown_env),
        risk=judgement.risk,
        badges=list(judgement.badges),
        reasons=[escape_text(reason) for reason in judgement.reasons],
        rule=judgement.rule,
        asker=describe_asker(request),
        client=escape_text(pending.client),
        workspace=escape_text(request.asker.workspace_id or ""),
        note=escape_text(request.note or ""),
        binding=evidence.binding,
        hold=judgement.must_hold,
        presses=_list_presses(scopes, judgement.must_hold, editable, _VERBS.get(request.kind, "run")),
        scopes=scopes,
        editable=shlex.join(evidence.argv) if editable else None,
        always=proposal,
        policy_file=end.policy_file() if proposal is not None else None,
        deadline=time.time() + left_s,
        left_ms=int(left_s * 1000),
    )


def _list_presses(scopes: list[AnswerScope], hold: bool, editable: bool, verb: str = "run") -> list[Press]:
    once = f"Hold to {verb} once" if hold else f"{verb.capitalize()} once"
    presses = [Press(name="once", text=once, hold=hold, says="It is hard to take back." if hold else "")]
    if "session" in scopes:
        presses.append(
            Press(name="session", text="Allow for this session", says="This exact command, until the caller goes away.")
        )
    if "always" in scopes:
        presses.append(Press(name="always", text="Always…", says="Writes a rule, which is shown first."))
    if editable:
        presses.append(Press(name="edit", text="Edit…", hold=hold, says="Other words instead; they are judged anew."))
    presses.append(Press(name="decline", text="Decline"))
    return presses


def list_lines(text: str) -> list[str]:
    """The lines of a text; none if it is one line."""
    return [escape_text(line) for line in text.split("\n")] if "\n" in text else []


def list_script_lines(argv: tuple[str, ...]) -> list[str]:
    """The lines of a script among the words of `argv`; none if there is no script, or it is one line."""
    if len(argv) < 3:
        return []
    name = argv[0].rpartition("/")[2]
    flag = "-c" if name in _SHELLS else _INTERPRETERS.get(name)
    if flag is None:
        return []
    for at, word in enumerate(argv[1:-1], 1):
        if word == flag or (flag == "-c" and name in _SHELLS and word.startswith("-") and word.endswith("c")):
            return [escape_text(line) for line in argv[at + 1].split("\n")]
        if not word.startswith("-"):
            return []
    return []


def describe_asker(request: ApprovalRequest) -> str:
    """Who asks. What a program calls itself may be a lie, so it is quoted."""
    asker = request.asker
    caller = escape_text(asker.caller)
    return f"{escape_argument(asker.client)} ({caller})" if asker.client else caller
