from __future__ import annotations

from wsh.cli.declare import Argument, Failure, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_KINDS = ("request", "hidden", "asks", "failed", "finished", "exited", "quiet", "told")
_CHANNELS = ("page", "push", "desktop", "webhook", "line")


@command("notify", json_option)
def notify(as_json: bool) -> None:
    """Show what you are told of, and by which channels. Alone: the rules.

    A rule says which happenings of which sessions are told by which channels: page, push, desktop, webhook, or a line that is typed
    into a session.
    """
    found = call("GET", "/notices/rules", start=False)
    if as_json:
        print_json(found)
        return
    _print_rules(found)
    echo("")
    rows = [(one["name"], "yes" if one["there"] else "no", one["leads_to"]) for one in found["channels"]]
    print_table(("channel", "there", "leads to"), rows, empty="")


def _print_rules(found: dict[str, Any]) -> None:
    rows = [
        (
            str(number),
            ", ".join(one["on"]),
            one["session"],
            f"{one['after_s']:g} s" if one["after_s"] else "",
            ", ".join(one["to"]),
            f"{one['into']}: {one['line']}" if one["line"] else "",
        )
        for number, one in enumerate(found["rules"], 1)
    ]
    print_table(("rule", "on", "session", "after", "to", "line"), rows, empty="Nothing is told: there is no rule.")
    if found["usual"]:
        echo("These are the usual rules; `wsh notify add` begins a list of your own with them.", err=True)
    if found["warning"]:
        echo(found["warning"], err=True)


@notify.command(
    "add",
    Option("--on", multiple=True, choices=_KINDS, metavar="KIND", help="What is told: " + ", ".join(_KINDS) + "."),
    Option("--to", multiple=True, choices=_CHANNELS, metavar="CHANNEL", help="How: " + ", ".join(_CHANNELS) + "."),
    Option("--session", metavar="PATTERN", default="*", help="Of which sessions, such as 'build*'; all if left out."),
    Option(
        "--after",
        kind=float,
        metavar="SECONDS",
        default=0.0,
        help="Only commands that took so long; for quiet, how long the silence lasts.",
    ),
    Option("--into", metavar="SESSION", help="For --to line: the session that is typed into."),
    Option("--line", metavar="TEXT", help="For --to line: what is typed, with Enter."),
    json_option,
)
def add(
    on: Sequence[str],
    to: Sequence[str],
    session: str,
    after: float,
    into: str | None,
    line: str | None,
    as_json: bool,
) -> None:
    """Add a rule. The first one is added to the usual rules."""
    if not on or not to:
        raise WrongUse("Say what is told with --on, and how with --to.")
    if ("line" in to) != (into is not None and line is not None):
        raise WrongUse("--to line goes with --into SESSION and --line TEXT.")
    rule = {"on": list(on), "to": list(to), "session": session, "after_s": after}
    rule |= {"into": into, "line": line} if into is not None else {}
    _put([*call("GET", "/notices/rules")["rules"], rule], as_json)


@notify.command("remove", json_option, Argument("number", kind=int))
def remove(as_json: bool, number: int) -> None:
    """Remove rule NUMBER, as `wsh notify` counts them."""
    rules = call("GET", "/notices/rules")["rules"]
    if not 1 <= number <= len(rules):
        raise Failure(f"There is no rule {number}; `wsh notify` counts them.")
    _put([*rules[: number - 1], *rules[number:]], as_json)


@notify.command("reset", json_option)
def reset(as_json: bool) -> None:
    """Go back to the usual rules."""
    _put(None, as_json)


def _put(rules: list[dict[str, Any]] | None, as_json: bool) -> None:
    found = call("PUT", "/notices/rules", json_body={"rules": rules})
    if as_json:
        print_json(found)
    else:
        _print_rules(found)


@notify.command(
    "test",
    Option("--to", choices=_CHANNELS, metavar="CHANNEL", help="One channel; all that lead somewhere if left out."),
    json_option,
)
def test(to: str | None, as_json: bool) -> None:
    """Send a notice that says it is a test."""
    there = [one["name"] for one in call("GET", "/notices/rules")["channels"] if one["there"] and one["name"] != "line"]
    sent = [call("POST", "/notices/test", json_body={"channel": one}) for one in ([to] if to else there)]
    if as_json:
        print_json(sent)
        return
    told = [one["deliveries"][0] for one in sent]
    print_table(("channel", "state", "why"), [(one["channel"], one["state"], one["why"]) for one in told], empty="")
    if any(one["state"] != "sent" for one in told):
        raise Failure("Not every channel took it.")


@notify.command(
    "list", Option("--limit", kind=int, default=20, metavar="COUNT", least=1, help="The newest so many."), json_option
)
def list_(limit: int, as_json: bool) -> None:
    """List the newest notices, and what became of each at every channel."""
    found = call("GET", "/notices", query={"limit": limit}, start=False)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            str(one["seq"]),
            one["kind"],
            one["session"] or "",
            one["text"],
            ", ".join(f"{each['channel']} {each['state']}" for each in one["deliveries"]),
        )
        for one in found["notices"]
    ]
    print_table(("number", "kind", "session", "text", "channels"), rows, empty="Nothing was told yet.")
