"""Routes that are WebSockets."""

from __future__ import annotations

from wsh.http.route.table import Route
from wsh.http.ws.host_link import serve_link
from wsh.http.ws.json import serve_server, serve_session
from wsh.http.ws.raw import serve_raw
from wsh.http.ws.view import ViewQuery, serve_view

GROUP = "websockets"

ROUTES: tuple[Route, ...] = (
    Route("WEBSOCKET", "/sessions/{name}/ws/raw", serve_raw, "The program's bytes both ways, a replay first.", GROUP),
    Route(
        "WEBSOCKET",
        "/sessions/{name}/ws/view",
        serve_view,
        "Composed pictures for an emulator, and its keys.",
        GROUP,
        query=ViewQuery,
    ),
    Route("WEBSOCKET", "/sessions/{name}/ws/json", serve_session, "Requests and events of one session.", GROUP),
    Route(
        "WEBSOCKET",
        "/host/link",
        serve_link,
        "Calls that another server of the owner's forwards.",
        GROUP,
        owner_only=True,
    ),
    Route("WEBSOCKET", "/ws/json", serve_server, "Requests and events of all sessions.", GROUP),
)
