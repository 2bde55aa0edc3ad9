from __future__ import annotations

from wsh.cli.declare import Argument, Failure, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call, is_server_there, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_id = Argument("id", metavar="ID")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@command("inbox", Option("--all", kind=bool, key="everything", help="With what is done or snoozed."), json_option)
def inbox(everything: bool, as_json: bool) -> None:
    """Show what waits for you and what has ended. Alone: list it.

    Requests for approval, programs that ask, failed commands, and those that took long, each with its age.
    """
    found = _fetch(everything)
    if as_json:
        print_json(found)
        return
    rows = [
        (_mark(one), _age(one["age_ms"]), one["session"] or "", one["line"] or one["what"], one["id"])
        for one in found["items"]
    ]
    print_table(("what", "age", "session", "line or command", "id"), rows, empty="Nothing waits for you.")


def _fetch(everything: bool) -> dict[str, Any]:
    if not is_server_there():
        return {"items": [], "wants": 0}
    found: dict[str, Any] = call("GET", "/inbox", query={"all": everything or None}, start=False)
    return found


def _mark(one: dict[str, Any]) -> str:
    word = str(one["kind"])
    if one["exit_code"]:
        word += f" {one['exit_code']}"
    if one["done"]:
        return f"{word}, done"
    return f"{word}, snoozed" if one["snoozed_until"] is not None else word


def _age(age_ms: int) -> str:
    seconds = age_ms // 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@inbox.command("done", json_option, _id)
def done(as_json: bool, id: str) -> None:
    """Mark entry ID as done: it does not come back. A part of the id is enough where only one has it."""
    _act(id, {"action": "done"}, "Done", as_json)


@inbox.command(
    "snooze",
    Option("--for", key="duration", metavar="TIME", default="1h", help="Such as 30m, 2h or 1d; an hour if left out."),
    json_option,
    _id,
)
def snooze(duration: str, as_json: bool, id: str) -> None:
    """Hide entry ID for a while."""
    number, unit = duration[:-1], duration[-1:]
    if unit.isdigit():
        number, unit = duration, "s"
    if not number.isdecimal() or unit not in _UNITS or int(number) < 1:
        raise WrongUse(f"--for takes a time such as 30m, 2h or 1d, not {duration!r}.")
    _act(id, {"action": "snooze", "for_s": int(number) * _UNITS[unit]}, f"Snoozed for {duration}", as_json)


@inbox.command("restore", json_option, _id)
def restore(as_json: bool, id: str) -> None:
    """Bring entry ID back that was done or snoozed."""
    _act(id, {"action": "restore"}, "Back again", as_json)


def _act(id: str, body: dict[str, object], said: str, as_json: bool) -> None:
    known = [str(one["id"]) for one in _fetch(True)["items"]]
    close = [each for each in known if id in each]
    if id not in known and len(close) > 1:
        raise Failure(f"{len(close)} entries have {id!r} in their id; give more of it.")
    name = id if id in known or not close else close[0]
    found = call("POST", f"/inbox/{quote(name)}", json_body=body, start=False)
    if as_json:
        print_json(found)
    else:
        echo(f"{said}: {name}")
