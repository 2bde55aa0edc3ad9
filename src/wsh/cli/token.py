from __future__ import annotations

import os
import time

from wsh.cli.declare import Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json, print_table
from wsh.wire.error import Refused
from wsh.wire.system.owner import find_own_fault
from wsh.wire.system.runtime_path import config_folder, server_socket
from wsh.wire.token_file import PASSING_S, TokenFile


@command(
    "token",
    Option("--new", metavar="NAME", help="Make a lasting owner's token of this name; shown only now."),
    Option("--agent", metavar="NAME", help="Make a token for this agent, replacing the one it had; shown only now."),
    Option("--revoke", metavar="NAME", help="End the token of this name."),
    Option("--list", key="list_", kind=bool, help="List the tokens that have a name."),
    Option("--rotate", kind=bool, help="Make a new owner's token; every other one, and every sign-in, ends at once."),
    json_option,
)
def token(new: str | None, agent: str | None, revoke: str | None, list_: bool, rotate: bool, as_json: bool) -> None:
    """Make an owner's token for a day and print it, or look after tokens.

    Tokens are kept as digests: what was printed once cannot be printed again. The owner's tokens open everything. An agent's
    token cannot approve, change policy, make tokens or take sessions over. On the unix socket the owner needs no token.
    """
    fault = find_own_fault(server_socket(os.environ))
    if fault is not None:
        raise Refused(
            f"Tokens are for people, and this process {fault}.", hint="Run `wsh token` in a terminal of your own."
        )
    if sum(given is not None for given in (new, agent, revoke)) + list_ + rotate > 1:
        raise WrongUse("--new, --agent, --revoke, --list and --rotate exclude each other.")
    tokens = TokenFile(os.path.join(config_folder(os.environ), "tokens.json"))
    if list_:
        _show(tokens, as_json)
    elif revoke is not None:
        tokens.remove(revoke)
        if as_json:
            print_json({"revoked": revoke})
    elif agent is not None:
        _print(tokens.add_agent(agent), "agent", as_json)
    elif new is not None:
        _print(tokens.add_owner(new), "owner", as_json)
    elif rotate:
        _print(tokens.rotate_owner(), "owner", as_json)
    else:
        _print(tokens.lend_owner(), "owner", as_json, expires=time.time() + PASSING_S)


def _print(made: str, role: str, as_json: bool, **facts: float) -> None:
    if as_json:
        print_json({"token": made, "role": role, **facts})
    else:
        echo(made)


def _show(tokens: TokenFile, as_json: bool) -> None:
    found = [("owner", each) for each in tokens.list_owners()] + [("agent", each) for each in tokens.list_agents()]
    if as_json:
        print_json([{"name": each.name, "role": role, "created": each.created} for role, each in found])
        return
    rows = [(each.name, role, time.strftime("%Y-%m-%d %H:%M", time.localtime(each.created))) for role, each in found]
    print_table(("name", "role", "made"), rows, empty="No token has a name. Make one with: wsh token --agent NAME")
