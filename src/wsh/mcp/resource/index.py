"""What hosts may read without a tool call, and who hears when it changes.

Notifications are coalesced: however much a session prints, each subscriber hears of each resource at most a few times
a second, and a client that does not read delays nobody. Legacy connections are told directly, modern ones by the
listen streams that hang on the bus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent, SubscriptionBus

from wsh.mcp.error import RpcFailure
from wsh.mcp.sdk_compat import Context, call_at_end, get_connection, send_list_changed
from wsh.wire import tool
from wsh.wire.error import SessionNotFound
from wsh.wire.json import rpc

log = logging.getLogger(__name__)

INTERVAL_S = 0.25
SESSIONS_URI = "wsh://sessions"
VIEWS = ("screen", "scrollback", "commands")


class ResourceSource(Protocol):
    """Where the contents come from, and the news."""

    def list_names(self) -> list[str]: ...

    async def read_sessions(self) -> str: ...

    async def read_view(self, name: str, view: str) -> str:
        """The JSON of one view of one session. Raises the room's own errors for what is not there."""

    def watch(self, resources: ResourceIndex) -> Callable[[], None]:
        """Tell `resources` of changes until the returned function is called."""


class _Reader:
    """A legacy connection: what it wants to hear, what it has not heard yet."""

    def __init__(self, connection: Connection) -> None:
        self.uris: set[str] = set()
        self._connection = connection
        self._pending: dict[str | None, None] = {}
        self._task: asyncio.Task[None] | None = None

    def tell(self, uri: str | None) -> None:
        """None stands for the list itself."""
        if uri is None or uri in self.uris:
            self._pending[uri] = None
            if self._task is None:
                self._task = asyncio.ensure_future(self._drain())

    async def settle(self) -> None:
        """Waits until what was told has been sent."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _drain(self) -> None:
        try:
            while self._pending:
                uri = next(iter(self._pending))
                del self._pending[uri]
                if uri is None:
                    await self._connection.send_resource_list_changed()
                else:
                    await self._connection.send_resource_updated(uri)
        except Exception:
            log.debug("a resource notification could not be sent", exc_info=True)
        finally:
            self._task = None

    def close(self) -> None:
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()


class CountingBus(SubscriptionBus):
    """The SDK's fan-out, which can also say whether anybody listens."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def __len__(self) -> int:
        return len(self._listeners)

    async def publish(self, event: ServerEvent) -> None:
        self.publish_nowait(event)

    def publish_nowait(self, event: ServerEvent) -> None:
        for listener in list(self._listeners.values()):
            listener(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None


class ResourceIndex:
    def __init__(self, source: ResourceSource) -> None:
        self._source = source
        self.bus = CountingBus()
        self._readers: dict[int, _Reader] = {}
        self._dirty: dict[str | None, None] = {}
        self._told: set[_Reader] = set()
        """Who has heard already that the list changed since the last flush."""
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_until = 0.0
        self._stop_watching: Callable[[], None] | None = None

    # what there is

    def list_resources(self) -> list[types.Resource]:
        found = [
            types.Resource(
                uri=SESSIONS_URI,
                name="sessions",
                title="Terminal sessions",
                description="All sessions: name, pid, command, size, whether the program runs.",
                mime_type="application/json",
            )
        ]
        for name in self._source.list_names():
            for view in VIEWS:
                what = _VIEW_TITLES[view]
                found.append(
                    types.Resource(
                        uri=f"{SESSIONS_URI}/{quote(name, safe='')}/{view}",
                        name=f"{name}/{view}",
                        title=f"{what} of {name}",
                        description=_VIEW_DESCRIPTIONS[view],
                        mime_type="application/json",
                    )
                )
        return found

    def list_templates(self) -> list[types.ResourceTemplate]:
        return [
            types.ResourceTemplate(
                uri_template=f"{SESSIONS_URI}/{{name}}/{view}",
                name=view,
                title=title,
                description=_VIEW_DESCRIPTIONS[view],
                mime_type="application/json",
            )
            for view, title in _VIEW_TITLES.items()
        ]

    async def read(self, uri: str) -> str:
        if uri == SESSIONS_URI:
            return await self._source.read_sessions()
        name, view = _split(uri)
        return await self._source.read_view(name, view)

    def complete(self, template: str, start: str) -> list[str]:
        """Session names that begin with `start`, for one of our templates."""
        if template not in {t.uri_template for t in self.list_templates()}:
            raise _not_found(template)
        return [name for name in self._source.list_names() if name.startswith(start)]

    # who wants to hear

    @property
    def wanted(self) -> bool:
        return bool(self._readers) or bool(len(self.bus))

    def greet(self, ctx: Context) -> None:
        """A legacy client has finished its handshake: from now on it hears of changes of the list."""
        self._get_reader(ctx)

    def subscribe(self, ctx: Context, uri: str) -> None:
        if uri != SESSIONS_URI:
            name, _ = _split(uri)
            if name not in self._source.list_names():
                raise SessionNotFound(name)
        self._get_reader(ctx).uris.add(uri)

    def unsubscribe(self, ctx: Context, uri: str) -> None:
        self._get_reader(ctx).uris.discard(uri)

    def _get_reader(self, ctx: Context) -> _Reader:
        connection = get_connection(ctx)
        key = id(connection)
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = _Reader(connection)

            def forget() -> None:
                self._readers.pop(key, None)
                reader.close()

            call_at_end(ctx, forget)
        return reader

    # news

    def start(self) -> None:
        self._stop_watching = self._source.watch(self)

    def stop(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note_list(self) -> None:
        """Sessions came, went, or got another name."""
        self._told.clear()
        self._note(None)
        self._note(SESSIONS_URI)

    def note_sessions(self) -> None:
        """What the list says of a session changed."""
        self._note(SESSIONS_URI)

    def note_session(self, name: str) -> None:
        """A session printed. Cheap when nobody listens."""
        if self.wanted:
            for view in VIEWS:
                self._note(f"{SESSIONS_URI}/{name}/{view}")

    def note_command(self, name: str, id: int) -> None:
        """A command of the session printed, or ended."""
        self._note(f"{SESSIONS_URI}/{name}/commands/{id}")

    def _note(self, uri: str | None) -> None:
        if not self.wanted:
            return
        self._dirty[uri] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.01, self._quiet_until - loop.time()), self._flush)

    async def tell_caller(self, ctx: Context) -> None:
        """A call is about to be answered: if the list changed meanwhile, its own caller hears it now, and only now."""
        reader = self._readers.get(id(get_connection(ctx)))
        if reader is None:
            return
        await reader.settle()  # news that was due before the answer is not behind it on a busy machine
        if None not in self._dirty or reader in self._told:
            return
        self._told.add(reader)
        try:
            await send_list_changed(ctx)
        except Exception:
            log.debug("a resource notification could not be sent", exc_info=True)

    def _flush(self) -> None:
        self._timer = None
        self._quiet_until = asyncio.get_running_loop().time() + INTERVAL_S
        dirty, self._dirty = self._dirty, {}
        told, self._told = self._told, set()
        for uri in dirty:
            self.bus.publish_nowait(ResourcesListChanged() if uri is None else ResourceUpdated(uri=uri))
            for reader in list(self._readers.values()):
                if uri is not None or reader not in told:
                    reader.tell(uri)


_VIEW_TITLES = {"screen": "Screen", "scrollback": "Scrollback", "commands": "Commands", "commands/{id}": "Command"}
_VIEW_DESCRIPTIONS = {
    "screen": "What the terminal shows now: styled lines, cursor, size, mode.",
    "scrollback": "The last 100 lines, the screen included, in the order they were printed.",
    "commands": "The commands an integrated shell ran here, with exit status and duration.",
    "commands/{id}": "One command with the whole of its output.",
}


def _split(uri: str) -> tuple[str, str]:
    name, _, view = uri.removeprefix(SESSIONS_URI + "/").partition("/")
    known = view in VIEWS or view.startswith("commands/")
    if not uri.startswith(SESSIONS_URI + "/") or not name or not known:
        raise _not_found(uri)
    return unquote(name), view


def _not_found(uri: str) -> RpcFailure:
    return RpcFailure(
        rpc.INVALID_PARAMS,
        f"There is no resource {uri[:200]!r}.",
        {
            "code": tool.NOT_FOUND,
            "uri": uri[:200],
            "hint": f"There are {SESSIONS_URI} and {SESSIONS_URI}/NAME/ with {', '.join(VIEWS)}.",
        },
    )
