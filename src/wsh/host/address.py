"""Addresses of sessions: `train` is one of this server, `gpu1/train` one of the host `gpu1`."""

from __future__ import annotations

from typing import NamedTuple

from wsh.wire.error import InvalidHostName
from wsh.wire.name import is_name


class Address(NamedTuple):
    host: str | None
    """None for this server."""
    name: str
    """Empty in `gpu1/`, which means the host as a whole."""

    def __str__(self) -> str:
        return self.name if self.host is None else f"{self.host}/{self.name}"


def parse_address(text: str) -> Address:
    """The first slash ends the host. The name is not checked: the server that has the session says whether it can be one."""
    host, slash, name = text.partition("/")
    if not slash:
        return Address(None, text)
    return Address(check_host_name(host), name)


def check_host_name(name: object) -> str:
    """Names of hosts are made of the same characters as those of sessions."""
    if not isinstance(name, str) or not is_name(name) or name in {".", ".."}:
        raise InvalidHostName(name)
    return name
