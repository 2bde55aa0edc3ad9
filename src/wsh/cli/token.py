from __future__ import annotations

import time

from wsh.cli.declare import Option, command, echo, json_option
from wsh.cli.output import print_json, print_table
from wsh.wire.error import Refused
from wsh.wire.owner import find_own_fault
from wsh.wire.place import find_places
from wsh.wire.token import TokenFile


@command(
    "token",
    Option("--agent", metavar="NAME", help="Make a token for this agent, replacing the one it had; shown only now."),
    Option("--revoke", metavar="NAME", help="End this agent's token."),
    Option("--list", key="list_", kind=bool, help="List the agents that have tokens."),
    Option("--rotate", kind=bool, help="Make a new owner's token; the old one ends at once."),
    json_option,
)
def token(agent: str | None, revoke: str | None, list_: bool, rotate: bool, as_json: bool) -> None:
    """Print the owner's token, or look after agents' tokens.

    The owner's token opens everything. An agent's token cannot approve, change policy, make tokens or take sessions over.
    """
    places = find_places()
    fault = find_own_fault(places.socket)
    if fault is not None:
        raise Refused(
            f"Tokens are for people, and this process {fault}.", hint="Run `wsh token` in a terminal of your own."
        )
    tokens = TokenFile(places.tokens)
    if list_:
        agents = tokens.list_agents()
        if as_json:
            print_json([{"name": a.name, "created": a.created} for a in agents])
        else:
            rows = [(a.name, time.strftime("%Y-%m-%d %H:%M", time.localtime(a.created))) for a in agents]
            print_table(("agent", "made"), rows, empty="No agent has a token. Make one with: wsh token --agent NAME")
        return
    if revoke is not None:
        tokens.remove_agent(revoke)
        if as_json:
            print_json({"revoked": revoke})
        return
    found = tokens.add_agent(agent) if agent is not None else tokens.rotate_owner() if rotate else tokens.owner
    if as_json:
        print_json({"token": found, "role": "agent" if agent else "owner"})
    else:
        echo(found)
