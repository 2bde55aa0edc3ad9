"""One connection to NATS, as a node of the fleet, from its opening to its end.

It does not reconnect: whatever stands on it (lease, watches, streams) is made anew on the next one. A published message that was not sent
before the end is dropped, never sent late. `post` seals for another node; replies in this node's inbox go to the
exchange that they belong to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from wsh.host.carrier import ForwardedAnswer
from wsh.host.fleet.credential import NodeCredential
from wsh.host.fleet.deploy import make_tls, split_url
from wsh.host.fleet.seal import PieceBox, Sealer, split_pieces
from wsh.host.fleet.subject import Bucket, FleetNames
from wsh.wire.error import InvalidRequest, WshError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js.client import JetStreamContext

    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

PIECE_BYTES = 256 * 1024
ReplyListener: TypeAlias = Callable[[str, bytes], None]
"""Gets the kind and the content of what another node answered."""
_CONNECT_S = 5
_CLOSE_S = 3.0
_PING_S = 20
_CAUGHT_UP_S = 10.0


class ConnectionLost(ConnectionError):
    """NATS cannot be reached, or does not let us in."""


class FleetConnection:
    def __init__(self, client: Client, credential: NodeCredential, max_call_bytes: int) -> None:
        self.client = client
        self.credential = credential
        self.names = FleetNames(credential.fleet)
        self.js: JetStreamContext = client.jetstream(timeout=5)
        self.sealer = Sealer(credential)
        self.ended = asyncio.Event()
        """Set when the connection is gone."""
        self._exchanges: dict[str, ReplyListener] = {}
        self._pieces = PieceBox(max_call_bytes)

    @property
    def node(self) -> str:
        return self.credential.name

    async def open(self) -> None:
        await self.client.subscribe(f"{self.names.inbox(self.node)}.x.*", cb=self._on_reply)
        await self.client.flush(_CONNECT_S)

    def listen(self, id: str, listener: ReplyListener) -> Callable[[], None]:
        """Hear the answers of one exchange until the returned function is called."""
        self._exchanges[id] = listener

        def stop() -> None:
            self._exchanges.pop(id, None)

        return stop

    async def post(self, node: str, instance: str, kind: str, id: str, content: bytes = b"") -> None:
        """Send a sealed message to a node. Raises ConnectionLost."""
        pieces = split_pieces(content, PIECE_BYTES)
        for index, piece in enumerate(pieces):
            sealed = self.sealer.seal(node, instance, kind, id, piece, (index, len(pieces)))
            await self.publish(self.names.call(node), sealed, f"{self.names.inbox(self.node)}.x.{id}")

    async def reply(self, subject: str, kind: str, content: bytes = b"") -> None:
        """Answer a sealed message. NATS lets through only what answers one."""
        pieces = split_pieces(content, PIECE_BYTES)
        for index, piece in enumerate(pieces):
            head = json.dumps([kind, index, len(pieces)]).encode()
            await self.publish(subject, head + b"\n" + piece)

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        from nats.errors import Error

        try:
            await self.client.publish(subject, data, reply)
        except (Error, OSError) as problem:
            self.ended.set()
            raise ConnectionLost(str(problem) or type(problem).__name__) from None

    async def put(self, bucket: Bucket, key: str, value: JsonObject | None, last: int | None = None) -> int:
        """Write a key of a bucket, or delete it with None. With `last`, only onto that revision (0: none). Returns the new one.

        Raises RevisionTaken, or ConnectionLost if nobody said that it was written.
        """
        from nats.errors import Error
        from nats.js.errors import APIError

        headers = {} if last is None else {"Nats-Expected-Last-Subject-Sequence": str(last)}
        if value is None:
            headers["KV-Operation"] = "DEL"
        data = b"" if value is None else json.dumps(value, separators=(",", ":")).encode()
        subject = f"$KV.{self.names.bucket(bucket)}.{key}"
        try:
            done = await self.js.publish(subject, data, headers=headers or None, timeout=3)
        except APIError as problem:
            if problem.err_code in (10071, 10164):
                raise RevisionTaken(key) from None
            raise ConnectionLost(f"NATS refused {subject}: {problem.description}") from None
        except (Error, OSError) as problem:
            raise ConnectionLost(f"NATS did not take {subject}: {problem or type(problem).__name__}") from None
        return done.seq

    async def create(self, bucket: Bucket, key: str, value: JsonObject) -> int:
        """Write a key that is not there. Raises RevisionTaken if it is, or ConnectionLost."""
        try:
            return await self.put(bucket, key, value, 0)
        except RevisionTaken:
            found = await self.get(bucket, key)
            if found is None or found[1] is not None:
                raise
            return await self.put(bucket, key, value, found[0])

    async def get(self, bucket: Bucket, key: str) -> tuple[int, JsonObject | None] | None:
        """Revision and value of one key; the value is None for one that was deleted, the whole for one that was never there.

        By a consumer: what NATS answers to a direct request goes wherever the asker says, also into another node's keys.
        """
        found: list[tuple[int, JsonObject | None]] = []
        watch = await self.watch(bucket, key, lambda _, revision, value: found.append((revision, value)))
        try:
            await watch.wait_caught_up()
        finally:
            await watch.aclose()
        return found[-1] if found else None

    async def watch(self, bucket: Bucket, keys: str, listener: Callable[[str, int, JsonObject | None], None]) -> Watch:
        """Tell of every key as it is and as it changes: key, revision, value or None. Raises ConnectionLost."""
        return await Watch.open(self, bucket, keys, listener)

    async def _on_reply(self, message: Msg) -> None:
        id = message.subject.rpartition(".")[2]
        listener = self._exchanges.get(id)
        if listener is None:
            return
        if not message.data:
            # NATS says that nobody listens there: the node has just gone, or is about to come back.
            listener("restarted", b"")
            return
        line, _, content = message.data.partition(b"\n")
        try:
            kind, index, count = json.loads(line)
            whole = self._pieces.add("", f"{id}:{kind}", (int(index), int(count)), content)
        except InvalidRequest as problem:
            # It would be as large when it is asked for again.
            listener("answer", json.dumps(ForwardedAnswer.of_error(problem).to_wire()).encode())
            return
        except (ValueError, TypeError) as problem:
            log.warning("an answer of another node was dropped: %s", problem)
            return
        if whole is not None:
            listener(str(kind), whole)

    async def aclose(self) -> None:
        self.ended.set()
        await _close(self.client)


class RevisionTaken(Exception):
    """Somebody wrote the key before us."""


class Watch:
    """A consumer of a bucket. A message that is missing ends the connection, which starts everything anew."""

    def __init__(self, connection: FleetConnection, listener: Callable[[str, int, JsonObject | None], None]) -> None:
        self.caught_up = asyncio.Event()
        """Set when everything that was there at the start has been told."""
        self._connection = connection
        self._listener = listener
        self._last = 0
        self._prefix = ""
        self._closed = False
        self._stop: Callable[[], Awaitable[None]] | None = None

    @classmethod
    async def open(
        cls,
        connection: FleetConnection,
        bucket: Bucket,
        keys: str,
        listener: Callable[[str, int, JsonObject | None], None],
    ) -> Watch:
        from nats.errors import Error
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        made = cls(connection, listener)
        name = connection.names.bucket(bucket)
        made._prefix = f"$KV.{name}."
        config = ConsumerConfig(
            name=secrets.token_hex(8),
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
            ack_policy=AckPolicy.NONE,
            max_deliver=1,
            inactive_threshold=30.0,
            mem_storage=True,
            num_replicas=1,
        )
        try:
            subscription = await connection.js.subscribe(
                f"{made._prefix}{keys}",
                stream=f"KV_{name}",
                config=config,
                cb=made._on_message,
                manual_ack=True,
                flow_control=True,
                idle_heartbeat=10.0,
                pending_msgs_limit=1_000_000,
            )
            made._stop = subscription.unsubscribe
            info = await subscription.consumer_info()
        except (Error, OSError) as problem:
            raise ConnectionLost(f"the bucket {name} cannot be read: {problem or type(problem).__name__}") from None
        if not info.num_pending and info.delivered is not None and not info.delivered.consumer_seq:
            made.caught_up.set()
        return made

    async def wait_caught_up(self) -> None:
        """Raises ConnectionLost."""
        try:
            async with asyncio.timeout(_CAUGHT_UP_S):
                await self.caught_up.wait()
        except TimeoutError:
            raise ConnectionLost("NATS did not tell what is in its buckets") from None

    async def _on_message(self, message: Msg) -> None:
        if self._closed or self._connection.ended.is_set():
            return
        meta = message.metadata
        if meta.sequence.consumer != self._last + 1:
            log.warning("news of the fleet were missed; starting anew")
            self._connection.ended.set()
            return
        self._last = meta.sequence.consumer
        deleted = message.headers is not None and (
            "KV-Operation" in message.headers or "Nats-Marker-Reason" in message.headers
        )
        try:
            value = None if deleted else json.loads(message.data)
        except ValueError:
            value = None
        if value is None or isinstance(value, dict):
            self._listener(message.subject[len(self._prefix) :], meta.sequence.stream, value)
        if not meta.num_pending:
            self.caught_up.set()

    async def aclose(self) -> None:
        from nats.errors import Error

        self._closed = True
        if self._stop is not None:
            try:
                await self._stop()
            except (Error, OSError):
                pass


@asynccontextmanager
async def open_connection(credential: NodeCredential, url: str, max_call_bytes: int) -> AsyncIterator[FleetConnection]:
    """Raises ConnectionLost, which says why NATS cannot be had."""
    from nats.aio.client import Client
    from nats.errors import Error

    client = Client()
    holder: list[FleetConnection] = []

    async def on_error(problem: Exception) -> None:
        log.info("NATS: %s", problem)

    async def on_end() -> None:
        for made in holder:
            made.ended.set()

    host, port = split_url(url)
    shown = f"[{host}]" if ":" in host else host
    try:
        await asyncio.wait_for(
            client.connect(
                f"tls://{shown}:{port}",
                name=f"wsh {credential.name}",
                nkeys_seed_str=credential.seed,
                tls=make_tls(credential.ca),
                inbox_prefix=FleetNames(credential.fleet).inbox(credential.name),
                allow_reconnect=False,
                connect_timeout=_CONNECT_S,
                ping_interval=_PING_S,
                error_cb=on_error,
                closed_cb=on_end,
                disconnected_cb=on_end,
            ),
            _CONNECT_S + 1,
        )
    except BaseException as problem:
        await _close(client)  # it leaves its socket open where the server does not answer
        if isinstance(problem, Error | OSError | TimeoutError | WshError):
            raise ConnectionLost(_explain(problem, url)) from None
        raise
    # A task of the client that finds the connection broken closes it, and may fail once more at that; `ended` tells us.
    for task in (client._reading_task, client._flusher_task, client._ping_interval_task):
        if task is not None:
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
    connection = FleetConnection(client, credential, max_call_bytes)
    holder.append(connection)
    try:
        try:
            await connection.open()
        except (Error, OSError) as problem:
            raise ConnectionLost(_explain(problem, url)) from None
        yield connection
    finally:
        await connection.aclose()


async def _close(client: Client) -> None:
    try:
        async with asyncio.timeout(_CLOSE_S):
            await client.close()
    except (TimeoutError, OSError) as problem:
        log.info("the connection to NATS does not close: %s", problem or "no answer")


def _explain(problem: BaseException, url: str) -> str:
    text = str(problem).strip() or type(problem).__name__
    if "authorization" in text.lower():
        return f"NATS at {url} does not know these credentials; ask for new ones with `wsh fleet invite`"
    if isinstance(problem, TimeoutError):
        return f"NATS at {url} does not answer"
    return f"NATS at {url} cannot be reached: {text}"
