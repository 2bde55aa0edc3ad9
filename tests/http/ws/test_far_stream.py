"""The stream of a session on another machine, whose server may be of another version."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wsh.host.carrier import Carrier, ForwardedCaller, StreamRequest
from wsh.http.ws.far_stream import open_far_stream
from wsh.wire.error import InvalidRequest


class OlderHost:
    """Takes the words of `query` that it knows."""

    def __init__(self, *known: str) -> None:
        self._known = set(known)

    async def open_stream(self, request: StreamRequest) -> Any:
        unknown = set(request.query) - self._known
        if unknown:
            raise InvalidRequest(f"{min(unknown)}: this field is not known.")
        return dict(request.query)


def ask(**query: str) -> StreamRequest:
    return StreamRequest("view", "work", query, ForwardedCaller("owner", "owner", "here"))


async def test_a_server_of_an_earlier_version_is_asked_without_receipts() -> None:
    host = cast(Carrier, OlderHost("rows", "cols"))
    opened: Any = await open_far_stream(host, ask(rows="24", cols="80", input_id="7", typed="0"))
    assert opened == {"rows": "24", "cols": "80"}


async def test_what_no_version_knows_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="nonsense"):
        await open_far_stream(cast(Carrier, OlderHost("rows")), ask(rows="24", nonsense="1"))
