from __future__ import annotations

import json
import sys
import time

from wsh.cli.declare import Argument, Failure, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json, print_table, style
from wsh.cli.request import call, is_server_there, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EVERY_S = 0.5
_WORD = "run"
_id = Argument("id", metavar="ID")


@command("approvals", json_option)
def approvals(as_json: bool) -> None:
    """Answer agents' requests without a window. Alone: list what waits."""
    _list(as_json)


@approvals.command("list", json_option)
def list_(as_json: bool) -> None:
    """List what waits, and what became of the last requests."""
    _list(as_json)


def _list(as_json: bool) -> None:
    found = _fetch()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["id"],
            _state(one),
            ", ".join([*([one["risk"]] if one["risk"] != "none" else []), *(each["title"] for each in one["badges"])]),
            one["asker"],
            one["command"][:80] or "opens a terminal",
        )
        for one in found["requests"]
    ]
    print_table(("id", "state", "risk", "asked by", "command"), rows, empty="Nothing waits.")
    if not found["server"]:
        echo("Answers are not taken here: turn that on with `wsh approvals on`.", err=True)


def _fetch() -> dict[str, Any]:
    if not is_server_there():
        return {"requests": [], "answered_in": [], "server": False, "now": time.time()}
    found: dict[str, Any] = call("GET", "/approvals", start=False)
    return found


def _state(one: dict[str, Any]) -> str:
    if one["state"] == "waiting":
        left = max(0, round(one["deadline"] - time.time()))
        return f"waiting, {left // 60} min left" if left > 90 else f"waiting, {left} s left"
    run = one.get("run")
    if run is None:
        return str(one["state"])
    if run["running"]:
        return "approved, runs"
    status = "not known" if run["exit_code"] is None else run["exit_code"]
    return "terminated" if run["terminated"] else f"approved, exit {status}"


@approvals.command("show", json_option, _id)
def show(as_json: bool, id: str) -> None:
    """Show one request with all its evidence, and its output once it ran."""
    one = _get(id)
    if as_json:
        print_json(one)
    else:
        _print_card(one)


def _get(id: str) -> dict[str, Any]:
    """By its id, or by the beginning of it if that is one request alone."""
    known = [one["id"] for one in _fetch()["requests"]]
    close = [each for each in known if each.startswith(id)]
    name = id if id in known or len(close) != 1 else close[0]
    found: dict[str, Any] = call("GET", f"/approvals/{quote(name)}", start=False)
    return found


def _print_card(one: dict[str, Any]) -> None:
    card = one["evidence"] or {}
    grave = bool(card.get("hold"))
    echo(style(f"{card.get('title') or one['kind']}: {_state(one)}", "1;31" if grave else "1"))
    echo(f"  {card.get('command') or one['command'] or 'a shell'}")
    if len(card.get("script") or ()) > 1:
        echo("  the script, line by line:")
        for line in card["script"]:
            echo(f"    {line}")
    if one["risk"] != "none":
        echo(style(f"  {one['risk']}", "31"))
    for badge in one["badges"]:
        echo(style(f"  {badge['title']}: {badge['sentence']}", "31" if badge["hold"] else "33"))
    facts = [
        ("in", card.get("cwd") or one["cwd"]),
        ("runs in", card.get("place_name") or one["place"]),
        ("program", card.get("executable")),
        ("sets", "  ".join(card.get("env") or ())),
        ("asked by", one["asker"]),
        ("it says", f'"{one["note"]}" (its own words, not checked)' if one["note"] else None),
        ("because", "; ".join(one["reasons"])),
        ("sha256", card.get("executable_sha256")),
        ("answered", f"{one['by']} ({one['where']})" if one["by"] else None),
        ("reason", one["reason"]),
        ("trace", one["trace_id"]),
    ]
    for name, value in facts:
        if value:
            echo(f"  {name:<9} {value}")
    run = one.get("run")
    if run is not None:
        if run.get("session"):
            echo(f"  watch it  wsh attach {run['session']}")
        if run.get("output"):
            echo(run["output"].rstrip("\n"))


@approvals.command(
    "approve",
    Option("--session", kind=bool, key="for_session", help="This exact command, until the caller goes away."),
    Option("--always", kind=bool, help="Write a rule that allows exactly these words, where a person can watch."),
    Option("--rule", metavar="PATTERN", help="With --always: another pattern than the exact words."),
    Option("--headless", kind=bool, help="With --always: the rule holds in headless mode, too."),
    Option("--edit", metavar="COMMAND", help="Run this instead."),
    json_option,
    _id,
)
def approve(
    for_session: bool, always: bool, rule: str | None, headless: bool, edit: str | None, as_json: bool, id: str
) -> None:
    """Run what request ID asks for. What is hard to take back wants a word typed first."""
    if (rule is not None or headless) and not always:
        raise WrongUse("--rule and --headless go with --always.")
    if for_session + always + (edit is not None) > 1:
        raise WrongUse("Choose one of --session, --always and --edit.")
    one = _get(id)
    card = one["evidence"] or {}
    body: dict[str, object] = {"digest": one["digest"] or "-", "decision": "approve"}
    if for_session or always:
        body["scope"] = "always" if always else "session"
    if rule is not None:
        body["rule"] = rule
    if headless:
        body["headless"] = True
    if edit is not None:
        body["command"] = edit
    if not as_json or card.get("hold"):
        _to_stderr(one)
    if card.get("hold"):
        _hold()
        body["confirm"] = True
    try:
        _finish(_answer(one["id"], body), as_json)
    except Exception as problem:
        if getattr(problem, "code", "") != "confirmation_needed" or "confirm" in body:
            raise
        # Edited words may be graver than those that were asked for.
        echo(f"{problem} {'; '.join(getattr(problem, 'facts', {}).get('reasons', []))}", err=True)
        _hold()
        _finish(_answer(one["id"], {**body, "confirm": True}), as_json)


def _to_stderr(one: dict[str, Any]) -> None:
    card = one["evidence"] or {}
    echo(f"{card.get('command') or one['command']}\n  in {card.get('cwd') or one['cwd']}", err=True)
    for badge in one["badges"]:
        echo(f"  {badge['title']}: {badge['sentence']}", err=True)
    for reason in one["reasons"]:
        echo(f"  {reason}", err=True)


def _hold() -> None:
    echo(f"Type {_WORD!r} to run it: ", err=True, end="")
    if sys.stdin.readline().strip() != _WORD:
        raise Failure(f"Nothing was run: the word was not {_WORD!r}.")


@approvals.command("decline", Option("--reason", help="Why; the caller is told."), json_option, _id)
def decline(reason: str | None, as_json: bool, id: str) -> None:
    """Refuse what request ID asks for."""
    one = _get(id)
    body: dict[str, object] = {"digest": one["digest"] or "-", "decision": "decline"}
    if reason:
        body["reason"] = reason
    _finish(_answer(one["id"], body), as_json)


def _answer(id: str, body: dict[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = call("POST", f"/approvals/{quote(id)}", json_body=body, start=False, doing="starting")
    return found


def _finish(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    run = one.get("run") or {}
    where = f" Watch it: wsh attach {run['session']}" if run.get("session") else ""
    echo(f"{str(one['state']).capitalize()}.{where}")


@approvals.command("watch", json_option)
def watch(as_json: bool) -> None:
    """Tell of each request as it comes and as it ends, until Ctrl+C."""
    told: dict[str, str] = {}
    first = True
    try:
        while True:
            for one in reversed(_fetch()["requests"]):
                state = _state(one) if one["state"] != "waiting" else "waiting" if one["digest"] else "arriving"
                if told.get(one["id"]) == state or state == "arriving":
                    continue
                known = one["id"] in told
                told[one["id"]] = state
                if first and one["state"] != "waiting":
                    continue
                if as_json:
                    echo(json.dumps(one))
                elif known:
                    echo(f"{one['id']}  {state}  {one['command'][:80]}")
                else:
                    _print_card(one)
                    if one["state"] == "waiting":
                        echo(f"  answer    wsh approvals approve {one['id']}   or: decline {one['id']}")
                sys.stdout.flush()
            first = False
            time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return


@approvals.command("on", json_option)
def on(as_json: bool) -> None:
    """Let this server take answers, and let requests wait and run here where no window is connected."""
    _switch(True, as_json)


@approvals.command("off", json_option)
def off(as_json: bool) -> None:
    """Leave approvals to the window again."""
    _switch(False, as_json)


def _switch(wanted: bool, as_json: bool) -> None:
    import os

    from wsh.wire.error import Refused
    from wsh.wire.system.config_file import SettingFixed, write_setting
    from wsh.wire.system.owner import find_own_fault
    from wsh.wire.system.place import find_places

    places = find_places()
    fault = find_own_fault(places.socket)
    if fault is not None:
        raise Refused(
            f"What runs inside wsh may not change who approves, and this process {fault}.",
            hint="Open a terminal outside wsh, and do it there.",
        )
    running = False
    if os.path.exists(places.socket):
        try:
            call("PUT", "/approvals/mode", json_body={"server": wanted}, start=False)
            running = True
        except Exception as problem:
            if getattr(problem, "code", "") != "server_gone":
                raise
    try:
        write_setting(places.config_file, "approvals.server", wanted, "wsh approvals")
    except SettingFixed as fixed:
        raise Failure(str(fixed)) from None
    if as_json:
        print_json({"server": wanted, "file": str(places.config_file), "running": running})
        return
    if wanted:
        echo("On: requests without a window wait here. Answer them at the page, or with `wsh approvals`.")
    else:
        echo("Off: requests are answered in the window alone.")
    echo(f"Written to {places.config_file}{', and the running server knows' if running else ''}.")
