"""A JSON WebSocket: requests in, answers and events out; one per client, for one session or for the whole server.

Requests are answered in order, except those that wait: they run beside the others. A client
that does not read its answers is not asked for more requests. Everything that a channel holds (subscriptions, waits,
captures) ends with it.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.http import error as failure
from wsh.http.route.offer import pick_fields
from wsh.http.route.table import HttpCall, dump_json
from wsh.http.ws.far_subscription import FarSubscription
from wsh.http.ws.methods import METHODS, Method, NameParams, RenameParams
from wsh.http.ws.sender import WsSender, make_frame
from wsh.http.ws.slow_consumer import dismiss_if_unread, get_allowance
from wsh.http.ws.subscription import Subscribe, Subscription
from wsh.operation.capture import capture_input
from wsh.operation.context import Rooms
from wsh.operation.news import NOTICE_TOLD, adopt_news, follow_sessions
from wsh.operation.operation import NOTHING, OperationCall
from wsh.operation.session import get_session
from wsh.session.event import Destroyed, SessionEvent
from wsh.session.registry import LifecycleEvent, SessionDestroyed
from wsh.session.session import Session
from wsh.wire.caller import Caller
from wsh.wire.error import IdleSuperseded, InvalidRequest, SessionNotFound, SessionRequired
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import Model

MOST_WAITS = 64
_FIELDS = frozenset({"id", "method", "params", "session"})


@dataclass(frozen=True)
class _Wait:
    task: asyncio.Task[None]
    answer: JsonObject
    """What its answer begins with: id, method, session."""


class Channel:
    def __init__(
        self,
        rooms: Rooms,
        caller: Caller,
        websocket: WebSocket,
        session: Session | None = None,
        far: str | None = None,
    ) -> None:
        self.rooms = rooms
        self.caller = replace(caller, connection=f"ws:{secrets.token_hex(6)}")
        self.session = session
        """The one session of this socket; None on the server's."""
        self.far = far
        """Its address, where it is on another machine."""
        self._websocket = websocket
        self._outlet = WsSender(websocket)
        self._allowance = get_allowance(rooms.settings)
        self._subscriptions: dict[str, Subscription | FarSubscription] = {}
        self._waits: dict[str, _Wait] = {}
        self._stops: list[Callable[[], None]] = []

    @property
    def is_servers(self) -> bool:
        """True for the socket about all sessions."""
        return self.session is None and self.far is None

    async def run(self) -> None:
        """Serve until either side is done."""
        # Before the upgrade, so that one too many is refused with a status.
        self._stops.append(self.rooms.clients.enter(self.session, self.caller, "json", self._dismiss))
        if self.session is not None:
            self._stops.append(self.session.listeners.add(self._on_session))
        try:
            await self._websocket.accept()
            self._write({"connected": True})
            if self.is_servers:
                self._follow_everything()
            if self.session is None:
                self._stops.append(self.rooms.hosts.listen(self._on_news))
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                raw = message.get("text")
                await self._take(raw if raw is not None else message.get("bytes") or b"")
                await self._outlet.wait_until_writable()
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            await self._close()

    async def _close(self) -> None:
        for stop in self._stops:
            stop()
        for subscription in self._subscriptions.values():
            subscription.close()
        self._subscriptions.clear()
        waits = [wait.task for wait in self._waits.values()]
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        self.rooms.stages.end_leases(self.caller.id)
        self.rooms.far_leases.end(self.caller.id)

    def _write(self, body: JsonObject) -> None:
        dismiss_if_unread(self._outlet, self._allowance)
        self._outlet.write(make_frame(dump_json(body)))

    def _dismiss(self) -> None:
        self._outlet.close_soon(1000, "detached")

    # requests

    async def _take(self, raw: str | bytes) -> None:
        answer: JsonObject = {"method": None}
        try:
            request = _parse(raw)
            if "id" in request:
                answer = {"id": request["id"], "method": None}
            name = request.get("method")
            if not isinstance(name, str):
                raise InvalidRequest("The method is missing.", hint='Send {"id", "method", "params"}.')
            answer["method"] = name[:80]
            unknown = request.keys() - _FIELDS
            if unknown:
                raise InvalidRequest(f"The field {sorted(unknown)[0][:80]!r} is not known.", hint="Put it into params.")
            method = METHODS.get(name)
            if method is None or method.server_only and not self.is_servers:
                raise failure.UnknownMethod(name)
            params = self._check_params(method, request.get("params"))
            if not method.on_session:
                answer["result"] = await self._call(method, params)
            else:
                session = self._find_session(request, params)
                if self.is_servers:
                    answer["session"] = _name_of(session)
                if method.waits:
                    self._start_wait(session, method, params, answer)
                    return
                result = answer["result"] = await self._call(method, params, session)
                if self.is_servers:
                    answer["session"] = _name_of(session)
                    if isinstance(session, str) and isinstance(params, RenameParams) and isinstance(result, dict):
                        answer["session"] = result["name"]
        except Exception as problem:
            answer["error"] = failure.to_wire(problem)[1]["error"]
        self._write(answer)
        self._start_subscriptions()

    async def _call(self, method: Method, params: Model, session: Session | str | None = None) -> object:
        if method.operation is None:
            assert session is not None
            if not isinstance(params, Subscribe):
                return self.unsubscribe(session)
            if isinstance(session, str):
                return await self._subscribe_far(session, params)
            return self.subscribe(session, params)
        address = None if session is None else _name_of(session)
        if address is not None and "/" in address and method.operation is capture_input:
            self.rooms.far_leases.note(self.caller, address.partition("/")[0])
        if method.otherwise is not None and not params.model_fields_set:
            call = OperationCall(method.otherwise, NOTHING, self.caller, address)
        else:
            call = OperationCall(method.operation, method.spell(params), self.caller, address)
        result = await call.make(self.rooms)
        if method.shows is not None:
            return pick_fields(result, method.shows)
        return {} if result is None else result

    def _check_params(self, method: Method, given: object) -> Model:
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise InvalidRequest("The params are not an object.", hint="Leave them out, or send an object.")
        try:
            # By way of JSON, since strict models read JSON's arrays and objects and not Python's alone.
            return method.params.model_validate_json(dump_json(given))
        except ValidationError as problem:
            raise failure.from_validation(problem, method.invalid) from None

    def _find_session(self, request: JsonObject, params: Model) -> Session | str:
        """The session, or the address of one on another machine."""
        if self.far is not None:
            if request.get("session") not in (None, self.far):
                raise InvalidRequest("This socket belongs to another session.", hint="Use /ws/json for several.")
            return self.far
        if self.session is not None:
            if request.get("session") not in (None, self.session.name):
                raise InvalidRequest("This socket belongs to another session.", hint="Use /ws/json for several.")
            if self.rooms.registry.find_session(self.session.name) is not self.session:
                raise SessionNotFound(self.session.name)
            return self.session
        name = request.get("session")
        # Some methods may name it among their parameters; to rename with one name alone, that is the new one.
        is_new = isinstance(params, RenameParams) and params.new_name is None
        if name is None and isinstance(params, NameParams):
            name = params.session if is_new else params.address
        if not isinstance(name, str):
            raise SessionRequired
        return name if "/" in name else self.rooms.registry.get_session(name)

    def _start_wait(self, session: Session | str, method: Method, params: Model, answer: JsonObject) -> None:
        """Run a wait beside the other requests; of those that are quick to repeat, a newer one replaces the older."""
        key = _key_of(session) if method.replaces else secrets.token_hex(8)
        older = self._waits.pop(key, None)
        if older is not None:
            # Answered here: a task that is cancelled before its first step never runs a line of its own.
            older.task.cancel()
            self._write({**older.answer, "error": failure.to_wire(IdleSuperseded())[1]["error"]})
        if len(self._waits) >= MOST_WAITS:
            raise InvalidRequest(f"More than {MOST_WAITS} waits on one connection.", hint="Open another connection.")

        async def wait() -> None:
            ended: JsonObject = {}
            try:
                ended["result"] = await self._call(method, params, session)
            except Exception as problem:
                ended["error"] = failure.to_wire(problem)[1]["error"]
            if self._waits.get(key) is mine:
                del self._waits[key]
                self._write({**answer, **ended})

        mine = self._waits[key] = _Wait(asyncio.ensure_future(wait()), answer)

    # subscriptions

    def subscribe(self, session: Session, wanted: Subscribe) -> dict[str, object]:
        """Replace the subscription on a session. It starts after the answer has been written."""
        made = Subscription(
            self.rooms.stages,
            self.rooms.feeds,
            session,
            self._outlet,
            wanted,
            allowance=self._allowance,
            named=self.session is None,
        )
        self.unsubscribe(session)
        self._subscriptions[session.sid] = made
        return {"events": sorted(made.events)}

    async def _subscribe_far(self, address: str, wanted: Subscribe) -> dict[str, object]:
        made = FarSubscription(
            self.rooms, self.caller, address, wanted, self._relay, self._end_far, named=self.is_servers
        )
        try:
            answer = await made.open()
        except BaseException:
            made.close()
            raise
        self.unsubscribe(address)
        self._subscriptions[address] = made
        return answer

    async def _relay(self, event: JsonObject) -> None:
        """Pass an event of another machine on. That machine sees that this client is slow, and skips for it."""
        self._write(event)
        await self._outlet.wait_until_writable()

    def unsubscribe(self, session: Session | str) -> dict[str, object]:
        older = self._subscriptions.pop(_key_of(session), None)
        if older is not None:
            older.close()
        return {"events": []}

    def _start_subscriptions(self) -> None:
        for subscription in list(self._subscriptions.values()):
            if not subscription.started and not subscription.closed:
                subscription.start()

    # events of sessions

    def _on_session(self, event: SessionEvent) -> None:
        if isinstance(event, Destroyed):
            self._outlet.close_soon(1000, "the session ended")

    def _follow_everything(self) -> None:
        def on_lifecycle(event: LifecycleEvent) -> None:
            if isinstance(event, SessionDestroyed):
                older = self._subscriptions.pop(event.sid, None)
                if older is not None:
                    older.close()

        self._stops.append(self.rooms.registry.lifecycle.add(on_lifecycle))
        self._stops.append(follow_sessions(self.rooms, self._write))

    # sessions of other machines

    def _on_news(self, host: str, news: JsonObject) -> None:
        event = news["event"]
        if event == "session_renamed":
            self._rename_far(f"{host}/{news['old_name']}", f"{host}/{news['new_name']}")
        elif event == "session_destroyed" and self.far == f"{host}/{news['name']}" and not self._subscriptions:
            self._outlet.close_soon(1000, "the session ended")
        if self.is_servers and event != NOTICE_TOLD:
            self._write(adopt_news(host, news))

    def _rename_far(self, old: str, new: str) -> None:
        if self.far == old:
            self.far = new
        subscription = self._subscriptions.pop(old, None)
        if isinstance(subscription, FarSubscription):
            subscription.rename(new)
            self._subscriptions[new] = subscription

    def _end_far(self, ended: FarSubscription, code: int, reason: str) -> None:
        """The host ended a subscription, after it had told everything; a socket about that session ends with it."""
        if self._subscriptions.get(ended.address) is ended:
            self.unsubscribe(ended.address)
        if self.far is not None:
            self._outlet.close_soon(code, reason)


def _name_of(session: Session | str) -> str:
    return session if isinstance(session, str) else session.name


def _key_of(session: Session | str) -> str:
    return session if isinstance(session, str) else session.sid


def encode_event(body: JsonObject) -> bytes:
    return make_frame(dump_json(body))


def _parse(raw: str | bytes) -> dict[str, object]:
    try:
        request = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidRequest("The message is not JSON.", hint="Send one JSON object per message.") from None
    if not isinstance(request, dict):
        raise InvalidRequest("The message is not an object.", hint='Send {"id", "method", "params"}.')
    id = request.get("id")
    if isinstance(id, dict | list) or (isinstance(id, float) and not math.isfinite(id)):
        raise InvalidRequest("The id is neither text nor number.", hint="Use a number or a text as id.")
    return request


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


async def serve_session(call: HttpCall, websocket: WebSocket) -> None:
    if "/" in call.session_name:
        address = call.session_name
        # Before the upgrade, so that a session which is not there is answered with a status.
        await OperationCall(get_session, NOTHING, call.caller, address).make(call.rooms)
        await Channel(call.rooms, call.caller, websocket, far=address).run()
        return
    session = call.rooms.registry.get_session(call.session_name)
    await Channel(call.rooms, call.caller, websocket, session).run()


async def serve_server(call: HttpCall, websocket: WebSocket) -> None:
    await Channel(call.rooms, call.caller, websocket).run()
