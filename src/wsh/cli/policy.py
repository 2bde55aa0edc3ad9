"""`wsh policy`: what may run, why, who changed it, and what was decided.

Reads and explains for anybody. Changing needs a person at a terminal who types a confirmation, and is refused to
whatever runs inside wsh.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

from wsh.cli.declare import Argument, Failure, Option, WrongUse, echo, group, json_option
from wsh.cli.output import print_json, style
from wsh.policy import Mode, Policy, PolicyRequest, Reason, Risk, RuleEffect, RuleError, Verdict, parse_pattern
from wsh.policy.audit import Audit
from wsh.policy.describe import describe_moment, describe_policy
from wsh.policy.execute.place import canonical_cwd
from wsh.policy.explain import explain_request
from wsh.policy.file.document import PolicyError, parse_policy
from wsh.policy.file.store import PolicyStore
from wsh.policy.rule.rule import BOTH
from wsh.policy.verdict import Effect
from wsh.wire.error import CwdNotFound, Refused
from wsh.wire.json.object import JsonObject
from wsh.wire.setting import load
from wsh.wire.system.owner import find_own_fault
from wsh.wire.system.place import find_places

policy_option = Option(
    "--policy", key="file", kind=Path, metavar="FILE", help="Another policy file than the configured one."
)
mode_option = Option("--mode", choices=[mode.value for mode in Mode], default="headless", show_default=True)
command_argument = Argument("command", rest=True)


@group("policy")
def policy() -> None:
    """Show, explain and change what may run."""


def _store(file: Path | None) -> PolicyStore:
    if file is not None and not file.exists():
        raise WrongUse(f"there is no file {file}")
    return PolicyStore(file or find_places().policy_file)


# reading


@policy.command("show", policy_option, json_option)
def show(file: Path | None, as_json: bool) -> None:
    """Show the policy in force: rules, limits, and whether the file can be used."""
    store = _store(file)
    held = store.current()
    if as_json:
        print_json(describe_policy(store))
        return
    if store.warning:
        echo(style(f"warning: {store.warning}", "31", err=True), err=True)
    exists = store.path.exists()
    echo(f"file         {store.path}{'' if exists else ' (does not exist: the shipped defaults hold)'}")
    echo(f"folders      {', '.join(held.cwd_roots) or 'any'}")
    echo(f"variables    {', '.join(held.env_allow) or 'none'}")
    echo(f"blocked      {', '.join(sorted(kind.value for kind in held.blocked)) or 'only what is irrecoverable'}")
    for prefix in held.also_destructive:
        echo(f"destructive  {' '.join(prefix)}")
    if held.lifetime_ms is not None:
        echo(f"lifetime     {held.lifetime_ms} ms")
    if held.approval_ms is not None:
        echo(f"to answer    {held.approval_ms} ms")
    for rule in held.rules:
        modes = "" if rule.modes == BOTH else f" [{', '.join(sorted(mode.value for mode in rule.modes))}]"
        scope = "".join(
            f" {name}={value}"
            for name, value in (
                ("cwd", rule.cwd),
                ("workspace", rule.workspace),
                ("caller_surface", rule.caller_surface),
                ("expires", describe_moment(rule.expires)),
            )
            if value
        )
        comment = f"  # {rule.comment}" if rule.comment else ""
        words = f"exactly {rule.pattern}" if rule.exact else rule.pattern
        echo(f"{rule.effect.value:5}  {words}{modes}{scope}  ({rule.origin}){comment}")


@policy.command(
    "explain",
    policy_option,
    mode_option,
    Option("--cwd", help="Where the command would run; the current folder if left out."),
    json_option,
    command_argument,
)
def explain(file: Path | None, mode: str, cwd: str | None, as_json: bool, command: tuple[str, ...]) -> None:
    """Say what would happen to COMMAND, and why. Runs nothing.

    One word is read as a command line, several are taken as program and arguments. With `-`, JSON lines
    {"command": "..."} or {"argv": [...]} come on stdin, and one JSON verdict per line goes out.
    """
    store = _store(file)
    if command == ("-",):
        for line in _lines():
            echo(json.dumps(_explain_line(line, store.current(), mode, cwd)))
            sys.stdout.flush()
        return
    given: JsonObject = {"command": command[0]} if len(command) == 1 else {"argv": list(command)}
    verdict = _explain(given, store.current(), mode, cwd)
    if as_json:
        print_json(verdict.to_wire())
        return
    if store.warning:
        echo(style(f"warning: {store.warning}", "31", err=True), err=True)
    _print_verdict(verdict)


def _lines() -> Iterator[bytes]:
    for raw in sys.stdin.buffer:
        if raw.strip():
            yield raw


def _explain_line(raw: bytes, held: Policy, mode: str, cwd: str | None) -> dict[str, object]:
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        return _unreadable(f"the line is not JSON: {problem}").to_wire()
    if not isinstance(given, dict):
        return _unreadable("the line is not a JSON object").to_wire()
    return _explain(given, held, mode, cwd).to_wire()


def _unreadable(what: str) -> Verdict:
    return Verdict(Effect.DENY, Risk.NONE, Reason.PARSE_ERROR, f"The request was not understood: {what}.")


def _explain(given: JsonObject, held: Policy, mode: str, cwd: str | None) -> Verdict:
    """The verdict on {"command"} or {"argv"}, with optional "mode", "cwd" and "env" of its own."""
    text, argv, env = given.get("command"), given.get("argv"), given.get("env", {})
    if (text is None) == (argv is None):
        return _unreadable("give either command or argv")
    if text is not None and not isinstance(text, str):
        return _unreadable("command must be a text")
    if argv is not None and not (isinstance(argv, list) and all(isinstance(word, str) for word in argv)):
        return _unreadable("argv must be a list of texts")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        return _unreadable("env must hold texts")
    chosen = given.get("mode", mode)
    if chosen not in [known.value for known in Mode]:
        return _unreadable(f"there is no mode {chosen!r}")
    where = given.get("cwd", cwd)
    if where is not None and not isinstance(where, str):
        return _unreadable("cwd must be a text")
    try:
        place = canonical_cwd(where, os.getcwd())
    except (CwdNotFound, OSError) as problem:
        return Verdict(Effect.DENY, Risk.NONE, Reason.CWD_OUTSIDE_ROOTS, str(problem))
    request = PolicyRequest(
        actor="explain",
        command=text,
        argv=tuple(argv) if argv is not None else None,
        cwd=place,
        env=env,
        mode=Mode(chosen),
        workspace=given.get("workspace") if isinstance(given.get("workspace"), str) else None,
        caller_surface=given.get("caller_surface") if isinstance(given.get("caller_surface"), str) else None,
        home=os.environ.get("HOME"),
        now=time.time(),
    )
    places = find_places()
    return explain_request(request, held, (places.config, places.runtime, places.state))


_COLOURS = {Effect.ALLOW: "1;32", Effect.ASK: "1;33", Effect.DENY: "1;31"}


def _print_verdict(verdict: Verdict) -> None:
    effect = style(verdict.effect.value, _COLOURS[verdict.effect])
    echo(f"{effect}  {verdict.reason.value}  risk {verdict.risk.value}")
    echo(_visible(verdict.message))
    if verdict.rule:
        echo(f"rule: {verdict.rule}")
    for index, segment in enumerate(verdict.argv):
        joint = f"  {verdict.operators[index]}" if index < len(verdict.operators) else ""
        echo(f"argv: {json.dumps(list(segment), ensure_ascii=True)}{joint}")
    for found in verdict.risk_reasons:
        echo(_visible(f"{found.risk.value}: {found.what} ({found.command})"))
    for label in verdict.labels:
        echo(_visible(f"{label.label.spoken}: {label.what}"))
    if verdict.hint:
        echo(f"hint: {verdict.hint}")


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


@policy.command("test", policy_option, json_option, Argument("given", kind=Path, metavar="FILE", required=False))
def test(file: Path | None, as_json: bool, given: Path | None) -> None:
    """Check a policy file: its schema, its rules, its examples. The status is 1 if it cannot be used."""
    path = given or file or find_places().policy_file
    rules: int | None = None
    problems: list[tuple[int | None, str]] = []
    try:
        rules = len(parse_policy(path.read_bytes().decode(), str(path), time.time()).rules)
    except FileNotFoundError:
        if given or file:
            raise WrongUse(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as problem:
        problems = [(None, str(problem))]
    except PolicyError as problem:
        problems = [(line or None, what) for line, what in problem.problems]
    if as_json:
        told = [{"line": line, "message": what} for line, what in problems]
        print_json({"file": str(path), "usable": not problems, "rules": rules, "problems": told})
    elif problems:
        for line, what in problems:
            echo(f"{path}:{line}: {what}" if line else f"{path}: {what}", err=True)
    elif rules is None:
        echo(f"{path} does not exist: the shipped defaults hold.")
    else:
        echo(f"{path} can be used: {rules} rules.")
    sys.exit(1 if problems else 0)


# changing


def _need_a_person() -> None:
    fault = find_own_fault(find_places().socket)
    if fault is not None:
        raise Refused(
            f"What runs inside wsh may not change its policy, and this process {fault}.",
            hint="Open a terminal outside wsh, and do it there.",
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("Changing the policy needs a person at a terminal.", hint="Run it without pipes.")


def _confirm(word: str, *, err: bool) -> None:
    echo(f"Type {word!r} to confirm: ", err=err, end="")
    if sys.stdin.readline().strip() != word:
        raise Refused("Nothing was changed.", hint=f"The confirmation was not {word!r}.")


def _change(path: Path, rewrite: Callable[[str], str], told: str, word: str, *, err: bool) -> None:
    """Tell, ask, and write. The file is taken after the answer and as it stands then, so no other writer waits for somebody's typing."""
    from wsh.policy.file.edit import locked, read_policy_text, write_policy

    try:
        rewrite(read_policy_text(path))
        echo(told, err=err)
        _confirm(word, err=err)
        with locked(path) as text:
            write_policy(path, rewrite(text))
    except PolicyError as problem:
        raise Failure(f"the policy file must be corrected first: {problem}") from None


@policy.command(
    "allow",
    Option("--mode", choices=("headless", "interactive", "both"), default="headless", show_default=True),
    Option("--cwd", help="Only in this folder and below."),
    Option("--workspace", help="Only for this workspace."),
    Option("--caller-surface", help="Only for this calling surface."),
    Option("--expires", help="Until then: 2030-01-31, a date and time, or a span such as 8h or 7d."),
    Option("--comment", help="Why."),
    json_option,
    command_argument,
)
def allow(
    mode: str,
    cwd: str | None,
    workspace: str | None,
    caller_surface: str | None,
    expires: str | None,
    comment: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Allow COMMAND: a program, or a program and its subcommand; ` *` at the end permits any arguments."""
    from wsh.policy.file.edit import NewRule, add_rule

    _need_a_person()
    pattern = " ".join(command)
    rule = NewRule(
        _checked_pattern(pattern),
        RuleEffect.ALLOW,
        BOTH if mode == "both" else frozenset({Mode(mode)}),
        canonical_cwd(cwd, os.getcwd()) if cwd else None,
        workspace,
        caller_surface,
        _parse_expiry(expires),
        comment,
    )
    path = find_places().policy_file
    told = f"This rule will be added to {path}:\n\n{rule.to_toml().rstrip()}\n"
    _change(path, lambda text: add_rule(text, rule, str(path)), told, "allow", err=as_json)
    _note("policy_allow", rule.to_toml())
    if as_json:
        print_json({"allowed": pattern, "file": str(path), "rule": rule.to_toml()})
    else:
        echo("Allowed.")


@policy.command(
    "init",
    Option(
        "--preset",
        key="presets",
        multiple=True,
        choices=("python", "node", "rust", "go", "make"),
        help="A kind of project; found out if left out.",
    ),
    Option("--mode", choices=("headless", "interactive", "both"), default="both", show_default=True),
    Option(
        "--sandbox",
        metavar="PROFILE",
        help="With --write: the sandbox that agents get from now on (read-only, workspace, workspace+network, off, or yours).",
    ),
    Option("--write", kind=bool, help="Write the rules, after a typed confirmation. Without it they are only shown."),
    json_option,
    Argument("folder", kind=Path, metavar="FOLDER", required=False),
)
def init(
    presets: tuple[str, ...], mode: str, sandbox: str | None, write: bool, as_json: bool, folder: Path | None
) -> None:
    """Look at the project in FOLDER and propose rules for its tests, linters and builds, and a sandbox for agents.

    Each rule holds in that folder and below, and says what it lets in. Nothing of the project is run. The sandbox holds for
    agents everywhere, and is written with --sandbox only.
    """
    from wsh.cli.policy_sandbox import offer_sandbox, say_sandbox
    from wsh.policy.file.edit import NewRule, add_rule, set_value
    from wsh.policy.rule.preset import find_presets, find_project_name, propose_rules

    place = Path(canonical_cwd(str(folder) if folder else None, os.getcwd()))
    chosen = list(presets) or find_presets(place)
    proposed = propose_rules(place, chosen)
    path = find_places().policy_file
    offer = offer_sandbox(find_places(), PolicyStore(path).current(), sandbox)
    told = {
        "folder": str(place),
        "presets": chosen,
        "file": str(path),
        "rules": [{"command": one.command, "lets_in": one.lets_in, "preset": one.preset} for one in proposed],
        "sandbox": offer,
    }
    if not as_json:
        kinds = ", ".join(chosen) or "nothing that is known here"
        echo(f"{find_project_name(place)} in {place}: {kinds}.")
        for one in proposed:
            echo(f"  {one.command:<24} {one.lets_in}  ({one.preset})")
        for line in say_sandbox(offer):
            echo(line)
    if not proposed and (sandbox is None or not write):
        if as_json:
            print_json(told | {"written": False})
        else:
            echo("No rules are proposed. Name a kind of project with --preset.")
        return
    if not write:
        if as_json:
            print_json(told | {"written": False})
        else:
            echo("Nothing is written. To write these rules for this folder: wsh policy init --write")
        return
    _need_a_person()
    modes = BOTH if mode == "both" else frozenset({Mode(mode)})

    def rewrite(text: str) -> str:
        for one in proposed:
            rule = NewRule(one.command, RuleEffect.ALLOW, modes, str(place), comment=f"wsh policy init: {one.lets_in}")
            text = add_rule(text, rule, str(path))
        return text if sandbox is None else set_value(text, "sandbox", "agents", sandbox, str(path))

    where = (
        "without asking, also where nobody looks"
        if mode != "interactive"
        else "without asking, where a person can watch"
    )
    said = []
    if proposed:
        said.append(f"These {len(proposed)} rules will be added to {path}: they run {where}, in {place} and below.")
    if sandbox is not None:
        said.append(f"Agents will get the sandbox {sandbox}, in every folder ({path}).")
    _change(path, rewrite, "\n".join(said), "init", err=as_json)
    changes = [one.command for one in proposed] + ([f"sandbox.agents = {sandbox}"] if sandbox is not None else [])
    _note("policy_init", "; ".join(changes))
    if as_json:
        print_json(told | {"written": True})
    else:
        echo("Written.")


@policy.command("revoke", json_option, command_argument)
def revoke(as_json: bool, command: tuple[str, ...]) -> None:
    """Take back what allows exactly COMMAND. One of the shipped defaults gets a rule that denies it."""
    from wsh.policy.file.edit import NewRule, add_rule, is_shipped, remove_rules

    _need_a_person()
    pattern = _checked_pattern(" ".join(command))
    path = find_places().policy_file

    def rewrite(text: str) -> str:
        shrunk, removed = remove_rules(text, pattern, str(path))
        listed = "allow" in (_section(shrunk, "headless") or {})
        if is_shipped(pattern) and not listed:
            return add_rule(shrunk, NewRule(pattern, RuleEffect.DENY), str(path))
        if not removed:
            raise Failure(f"no rule allows exactly {pattern!r}; `wsh policy show` lists them")
        return shrunk

    _change(path, rewrite, f"{pattern!r} will no longer be allowed.", "revoke", err=as_json)
    _note("policy_revoke", pattern)
    if as_json:
        print_json({"revoked": pattern, "file": str(path)})
    else:
        echo("Revoked.")


def _section(text: str, name: str) -> dict[str, object] | None:
    import tomllib

    found = tomllib.loads(text).get(name)
    return found if isinstance(found, dict) else None


def _checked_pattern(pattern: str) -> str:
    try:
        parse_pattern(pattern)
    except RuleError as problem:
        raise WrongUse(str(problem)) from None
    return pattern


def _parse_expiry(text: str | None) -> float | None:
    if text is None:
        return None
    units = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
    if text[:-1].isdigit() and text[-1:] in units:
        return time.time() + int(text[:-1]) * units[text[-1]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"--expires {text!r} is no date, and no span such as 8h or 7d") from None
    if len(text) == 10:
        moment = moment.replace(hour=23, minute=59, second=59)
    return (moment if moment.tzinfo else moment.astimezone()).timestamp()


def _note(kind: str, what: str) -> None:
    entry = {"kind": kind, "actor": f"uid:{os.getuid()}", "tool": "wsh policy", "trace_id": None, "change": what}
    _audit().append(entry)


# the trail


def _audit() -> Audit:
    places = find_places()
    settings = load(places.config_file)
    return Audit(places.audit_log, settings.get_int("audit.max_bytes"), settings.get_int("audit.keep"))


@policy.command(
    "audit",
    Option("--verify", kind=bool, help="Check the hash chain of all files; the status is 1 if it is broken."),
    Option("--limit", kind=int, least=1, default=20, show_default=True, help="Newest entries to show."),
    Option("--trace", help="Only entries of this trace_id."),
    json_option,
)
def audit(verify: bool, limit: int, trace: str | None, as_json: bool) -> None:
    """Show the newest decisions, or check that the trail is whole."""
    trail = _audit()
    if verify:
        report = trail.verify()
        if as_json:
            print_json(
                {
                    "intact": report.intact,
                    "entries": report.entries,
                    "problems": list(report.problems),
                    "notes": list(report.notes),
                }
            )
        else:
            for note in report.notes:
                echo(f"note: {note}")
            for problem in report.problems:
                echo(f"broken: {problem}", err=True)
            echo(f"{report.entries} entries, the chain is {'intact' if report.intact else 'BROKEN'}.")
        sys.exit(0 if report.intact else 1)
    found = (entry for entry in trail.read_backwards() if trace is None or entry.get("trace_id") == trace)
    for entry in reversed(list(islice(found, limit))):
        if as_json:
            echo(json.dumps(entry))
        else:
            echo(_visible(_summary(entry)))


def _summary(entry: JsonObject) -> str:
    what = entry.get("argv") or entry.get("command") or entry.get("change") or ""
    if isinstance(what, list):
        what = json.dumps(what, ensure_ascii=True)
    ended = "" if entry.get("exit_code") is None else f"exit {entry['exit_code']}"
    answered = f"by {entry['by']} ({entry.get('where') or 'window'})" if entry.get("by") else ""
    parts = [
        str(entry.get("ts", "")),
        str(entry.get("kind") or entry.get("event") or ""),
        str(entry.get("outcome") or entry.get("effect") or ("terminated" if entry.get("terminated") else ended)),
        answered,
        str(entry.get("reason") or ""),
        str(entry.get("actor") or ""),
        str(entry.get("trace_id") or ""),
        str(what)[:300],
    ]
    return "  ".join(part for part in parts if part)
