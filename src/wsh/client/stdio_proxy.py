"""`wsh mcp`: lines of JSON-RPC between a host's pipes and the server, over the server's unix socket.

A raw pump. It knows framing and ids, so that it can answer what is no message and fail what a dead server left open;
it knows nothing of tools or results but one: where it has just started the server, it gives the answer to the handshake
itself (`wire.json.handshake`), since the server takes a second until it could. Both directions are one exchange that begins as HTTP (see
`wsh.mcp.transport.stdio` for the other end), so the order of messages is that of the host. A line that needs nothing but passing on is passed on
by the callback that read it; every other one waits for a task, and whatever came behind it waits, too. Standard library and uvloop only: importing the SDK would cost a second
before the first answer.

When the server goes away the pump gets the next one (or starts it), repeats the handshake and the subscriptions under
ids of its own, and goes on; the host sees failures for the requests that were under way and nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import secrets
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import cast

from wsh.client.launch import BegunServer, ServerRecord, ensure_server, read_record
from wsh.wire.error import ServerGone, WshError
from wsh.wire.json import rpc
from wsh.wire.json.handshake import FAMILIES, make_answer
from wsh.wire.line_feed import LineFeed
from wsh.wire.setting import SettingError, load
from wsh.wire.system.place import Places

GOVERNING = ("ALLOWED_", "PM_", "WSH_")
CHUNK = 1 << 18
# Of the host. As much as a pipe holds, and less than what the allocator maps and unmaps each time.
READ_BYTES = 1 << 16
# Answers that are about to come get this long after the host closed its end, unless the host is gone altogether.
DRAIN_S = 10.0
# A server that restarts gets this long before the pump starts one itself.
RESTART_S = 0.5
# How long a server that dies under the greeting may be followed by others that do.
START_S = 10.0
HAND_OVERS = 5
# A connection that ends sooner may be ended by what is repeated on it.
SHORT_LIFE_S = 1.0
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0

_REQUEST_HEAD = (
    b"POST /mcp/stdio HTTP/1.1\r\nHost: localhost\r\nWsh-Role: agent\r\nWsh-Agent: mcp\r\n"
    b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_ANSWERED = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"(?:[^"\\]|\\.)*"),"(result|error)":')
_ACKNOWLEDGED = re.compile(rb'\{"jsonrpc":"2\.0","method":"notifications/subscriptions/acknowledged"')
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_PRIVATE = "wsh-pump-"
# Of these nothing has to be remembered but that they are under way.
_PLAIN = {"tools/call", "tools/list", "resources/read", "resources/list", "prompts/get", "prompts/list", "ping"}
_PUBLIC_CODES = {"disk_full": "DISK_FULL", "no_descriptors": "QUEUE_OVERLOADED"}


class ConnectionRefused(Exception):
    """The server is there and does not want us."""


class _Unready(ServerGone):
    """The server is there and cannot speak MCP now; `code` of its error says why."""

    def __init__(self, error: Mapping[str, object]) -> None:
        WshError.__init__(self, str(error.get("message")), hint=str(error.get("hint") or ""))
        self.public_code = _PUBLIC_CODES.get(str(error.get("code")), "INTERNAL")


class _Broken(Exception):
    """The connection ended before the greeting was over."""


class Upstream:
    """One exchange with one server: lines in the chunks of an HTTP exchange, or, if the server knows how, without anything around them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lines = self._read_lines()
        self._raw: _RawLines | None = None

    @classmethod
    async def open(
        cls,
        places: Places,
        greeting: Mapping[str, object],
        *,
        start: bool,
        wait_s: float,
        last: ServerRecord | None = None,
    ) -> Upstream:
        """Connect (starting a server if need be and `start`) and greet. Raises ServerGone or Refused."""
        deadline = time.monotonic() + (START_S if start else 0.0)
        while True:
            try:
                return await cls._open_once(places, greeting, start, wait_s, last)
            except _Broken as problem:
                # The socket of a server that is being killed takes connections until the kernel has closed it.
                if time.monotonic() >= deadline:
                    raise ServerGone(f"the connection broke while greeting ({problem})") from None
                await asyncio.sleep(0.02)

    @classmethod
    async def _open_once(
        cls, places: Places, greeting: Mapping[str, object], start: bool, wait_s: float, last: ServerRecord | None
    ) -> Upstream:
        upstream = cls(*await _connect(places, start, wait_s, last))
        writer = upstream._writer
        try:
            writer.write(_REQUEST_HEAD)
            await upstream.send(rpc.dump({"wsh": {**greeting, "raw": True}}))
            await upstream._read_head()
            line = await anext(upstream._lines, None)
            answer = json.loads(line).get("wsh") if line else None
        except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
            upstream.close()
            raise _Broken(str(problem)) from None
        if answer is None:
            upstream.close()
            raise _Broken("it ended")
        if not isinstance(answer, dict) or "refused" in answer:
            upstream.close()
            raise ConnectionRefused(str(answer["refused"]) if answer else "The server gave no greeting.")
        if answer.get("raw") is True:
            # It says no more before it hears from us, so nothing is on its way that was meant for the old protocol.
            transport = writer.transport
            upstream._raw = _RawLines(transport)
            transport.set_protocol(upstream._raw)
        return upstream

    async def _read_head(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = head.split(b" ", 2)[1]
        if status == b"503":
            raise ConnectionResetError("it is shutting down")
        if status != b"200":
            error = await self._read_error(head)
            if error is not None:
                raise _Unready(error)
            raise ConnectionRefused(
                f"The server answered with status {status.decode(errors='replace')}; is it an older version?"
            )

    async def _read_error(self, head: bytes) -> dict[str, object] | None:
        """What an answer that is no stream says, if it is one of our errors."""
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        if length is None:
            return None
        try:
            error = json.loads(await self._reader.readexactly(int(length[1])))["error"]
        except (ValueError, KeyError, TypeError):
            return None
        return error if isinstance(error, dict) else None

    async def _read_lines(self) -> AsyncIterator[bytes]:
        """Lines of the chunked response, newline included; ends with it. Raises OSError where it breaks off."""
        arrived = bytearray()
        """Bytes of the response that are not yet read as chunks."""
        pending = bytearray()
        """The beginning of a line whose end has not come."""
        while True:
            data = await self._reader.read(CHUNK)
            if not data:
                raise ConnectionResetError("the server went away")
            arrived += data
            ended = _take_chunks(arrived, pending)
            end = pending.rfind(b"\n") + 1
            if end:
                complete = bytes(pending[:end])
                del pending[:end]
                for line in complete.splitlines(keepends=True) if complete.count(b"\n") > 1 else (complete,):
                    yield line
            if ended:
                return

    def read(self, at_once: Callable[[bytes], bool]) -> AsyncIterator[bytes]:
        """What the server says, line by line, but for lines that `at_once` has taken."""
        if self._raw is None:
            return self._lines
        self._raw.feed.at_once = at_once
        return self._raw.read()

    def send_now(self, line: bytes) -> bool:
        """False if that would have to wait, or to be found out first."""
        return self._raw is not None and self._raw.send_now(line)

    async def send(self, line: bytes) -> None:
        if self._raw is not None:
            await self._raw.send(line)
            return
        self._writer.write(b"%x\r\n%b\r\n" % (len(line), line))
        await self._writer.drain()

    def end(self) -> None:
        """Send nothing more. Calls under way end."""
        if self._raw is None:
            self._writer.write(b"0\r\n\r\n")

    def close(self) -> None:
        self._writer.transport.close()


class _RawLines(asyncio.Protocol):
    """Lines to and from the server, without HTTP."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        reading = cast(asyncio.ReadTransport, transport)
        self.feed = LineFeed(pause=reading.pause_reading, resume=self._resume)
        self._reading = reading
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = False

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._reading.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.feed.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._writable.set()
        self.feed.end(exc or ConnectionResetError("the server went away"))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def read(self) -> AsyncIterator[bytes]:
        async for line in self.feed:
            assert line is not None  # no line is too long here
            yield line + b"\n"

    def send_now(self, line: bytes) -> bool:
        if self._transport.is_closing() or not self._writable.is_set():
            return False
        self._transport.write(line)
        return True

    async def send(self, line: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(line)
        else:
            await asyncio.sleep(0)  # its end is about to be told
        await self._writable.wait()
        if self._lost:
            raise ConnectionResetError("the connection was lost")


def _take_chunks(arrived: bytearray, body: bytearray) -> bool:
    """Move the whole chunks at the front of `arrived` to `body`. True at the last one."""
    while (head := arrived.find(b"\r\n")) >= 0:
        size = int(bytes(arrived[:head]), 16)
        if size == 0:
            return True
        start = head + 2
        if len(arrived) < start + size + 2:
            return False
        body += memoryview(arrived)[start : start + size]
        del arrived[: start + size + 2]
    return False


async def _connect(
    places: Places, start: bool, wait_s: float, last: ServerRecord | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A server that restarts is given `wait_s` to come back, a persistent one longer; then one is started."""
    patience = time.monotonic() + wait_s
    deadline = patience + START_S
    while True:
        try:
            return await asyncio.open_unix_connection(str(places.socket), limit=1 << 20)
        except OSError as problem:
            now = time.monotonic()
            if now >= patience and (not start or now >= deadline):
                raise ServerGone(str(problem)) from None
        if time.monotonic() < patience:
            await asyncio.sleep(0.02)
        else:
            # What this finds may be the end of the last server; then the next turn finds nothing and starts one.
            await ensure_server(places, last=last)


class ReconnectPause:
    """How long to wait before the next connection: not at all, or ever longer while they break off at once."""

    def __init__(self) -> None:
        self._pause_s = 0.0

    def note_end(self, lived_s: float) -> float:
        """The pause after a connection that held for `lived_s`."""
        longer = min(max(2 * self._pause_s, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)
        self._pause_s = longer if lived_s < SHORT_LIFE_S else 0.0
        return self._pause_s


class StdioProxy:
    def __init__(
        self,
        places: Places,
        *,
        toolsets: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        cwd: str | None = None,
        begun: BegunServer | None = None,
    ) -> None:
        """`begun` is a server that is being started for us."""
        env = os.environ if environ is None else environ
        self._places = places
        self._greeting = {
            "id": secrets.token_hex(16),
            "cwd": cwd or os.getcwd(),
            "environ": {k: v for k, v in env.items() if k.startswith(GOVERNING)},
            "toolsets": list(toolsets),
        }
        self._toolsets = toolsets
        self._upstream: Upstream | None = None
        self._last_server: ServerRecord | None = None
        self._following: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._open: dict[str, rpc.Message] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._begun = begun
        self._opening: asyncio.Task[None] | None = None
        self._answers_first = False
        """Whether the next message may be a handshake that we answer ourselves."""
        self._answered_first = False
        self._handshake: bytes | None = None
        self._initialized: bytes | None = None
        self._handing_initialized = False
        self._subscribed: dict[str, None] = {}
        """What the host subscribed to with success."""
        self._reconnect_pause = ReconnectPause()
        self._acknowledged: set[str] = set()
        """Listen streams of which the host knows that they are open."""
        self._carried: set[str] = set()
        """Requests that are being handed over: no end of a server fails them."""
        self._sent_on: dict[str, Upstream] = {}
        self._last: tuple[rpc.Message, bytes] | None = None
        self._wire: Wire | None = None
        self._ended = asyncio.Event()
        self._failure: str | None = None

    async def run(self) -> int:
        """Pump until the host closes stdin (0) or the server refuses us for good (1)."""
        self._wire = wire = Wire()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended.set)
        feeding = asyncio.ensure_future(self._feed(wire))
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait({feeding, ending}, return_when=asyncio.FIRST_COMPLETED)
            if feeding.done() and not self._ended.is_set():
                feeding.result()
                await self._drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the host is gone in both directions
        finally:
            for task in (feeding, ending, self._opening, self._following):
                if task is not None:
                    task.cancel()
            if self._upstream is not None:
                self._upstream.end()
                self._upstream.close()
            wire.close()
        if self._failure is not None:
            print(f"wsh mcp: {self._failure}", file=sys.stderr)
            return 1
        return 0

    async def _drain(self) -> None:
        """The host closed its end: answers that are about to come still go out, the rest is cancelled."""
        assert self._wire is not None
        deadline = time.monotonic() + DRAIN_S
        while self._awaits_answers and not (self._ended.is_set() or self._wire.is_unread()):
            if time.monotonic() > deadline:
                return
            try:
                await asyncio.wait_for(self._idle.wait(), 0.05)
            except TimeoutError:
                pass
        # The last answer may be under way to a host that reads slowly.
        flushing = asyncio.ensure_future(self._wire.flush())
        while not (flushing.done() or self._ended.is_set() or self._wire.is_unread() or time.monotonic() > deadline):
            await asyncio.wait({flushing}, timeout=0.05)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)

    @property
    def _awaits_answers(self) -> bool:
        """Whether a request is under way that ends by itself; one that listens is answered as long as the host stays."""
        return any(message.method != "subscriptions/listen" for message in self._open.values())

    # host to server

    async def _feed(self, wire: Wire) -> None:
        await self._open_first()
        async for line in wire.read_lines(self._pass_at_once):
            if line is None:
                problem_text = f"Invalid Request: a message may have {rpc.MAX_MESSAGE_BYTES} bytes."
                await wire.write(rpc.dump(rpc.make_error(None, rpc.INVALID_REQUEST, problem_text)))
            elif line.strip():
                await self._pass_on(wire, line)
            if self._ended.is_set():
                return

    async def _open_first(self) -> None:
        """Connect. With a server that has just begun to listen this goes on beside the first message."""
        begun, self._begun = self._begun, None
        try:
            if begun is not None:
                await begun.wait_until_listening()
                self._answers_first = True
                self._opening = asyncio.ensure_future(self._open_first())
            else:
                await self._get_upstream(wait_s=0.0)
        except ServerGone as problem:
            print(f"wsh mcp: {problem.message}", file=sys.stderr)  # each request will say so, too

    def _make_first_answer(self, read: rpc.Message) -> bytes | None:
        """Our own answer to a handshake that comes before the new server can give one."""
        may, self._answers_first = self._answers_first, False
        if not may or self._upstream is not None or read.method != "initialize" or not read.is_request:
            return None
        try:
            usual = load(self._places.config_file).origins["mcp.toolsets"] == "default"
        except SettingError:
            return None
        answer = make_answer(read.params, self._toolsets or FAMILIES) if usual else None
        return None if answer is None else rpc.dump({"jsonrpc": "2.0", "id": read.id, "result": answer})

    async def _pass_on(self, wire: Wire, line: bytes) -> None:
        read = rpc.parse(line)
        if isinstance(read, rpc.BadMessage):
            await wire.write(rpc.dump(read.to_wire()))
            return
        out = rpc.dump(read.body) if read.normalised else line.strip() + b"\n"
        answer = self._make_first_answer(read)
        if answer is not None:
            self._handshake, self._answered_first = out, True
            await wire.write(answer)
            return
        self._remember(read, out)
        await self._hand_over(wire, read, out)

    def _pass_at_once(self, line: bytes) -> bool:
        """The short way of `_pass_on`, where a server is there and takes it."""
        upstream = self._upstream
        if upstream is None or self._answers_first or self._connecting.locked() or self._ended.is_set():
            return False
        read = rpc.parse(line)
        if isinstance(read, rpc.BadMessage) or read.normalised or read.method not in _PLAIN:
            return False
        out = line.strip() + b"\n"
        if not upstream.send_now(out):
            return False
        self._last = (read, out)
        if read.id is not None:
            key = rpc.canonical_id(read.id) or ""
            self._open[key] = read
            self._sent_on[key] = upstream
            self._idle.clear()
        return True

    async def _hand_over(self, wire: Wire, read: rpc.Message, out: bytes) -> None:
        """Give one message to a server. A message that could not be written was not read either, so the next server gets it."""
        text, code = "The wsh server went away.", "INTERNAL"
        key = rpc.canonical_id(read.id) if read.is_request else None
        if key is not None:
            self._carried.add(key)
        self._handing_initialized |= read.is_notification and read.method == "notifications/initialized"
        try:
            for _ in range(HAND_OVERS):
                try:
                    upstream = await self._get_upstream(wait_s=RESTART_S)
                    self._last = (read, out)
                    if key is not None:
                        self._sent_on[key] = upstream
                    await upstream.send(out)
                except ServerGone as problem:
                    text = problem.message
                    code = problem.public_code if isinstance(problem, _Unready) else code
                    break
                except OSError:
                    self._let_go(upstream)
                    continue
                if self._upstream is upstream or key not in self._open:
                    return
                break  # it ended meanwhile, and nobody knows what it had read
        finally:
            self._carried.discard(key or "")
            self._handing_initialized &= read.method != "notifications/initialized"
        self._forget(read)
        if read.is_request:
            await wire.write(rpc.dump(_gone(read, text, code)))

    def _let_go(self, upstream: Upstream) -> None:
        upstream.close()
        if self._upstream is upstream:
            self._upstream = None

    def _remember(self, read: rpc.Message, line: bytes) -> None:
        if read.is_request:
            self._open[rpc.canonical_id(read.id) or ""] = read
            self._idle.clear()
        if read.method == "initialize":
            self._handshake = line
        elif read.is_request and str(read.method).startswith("notifications/"):
            return  # refused by the server: it takes back nothing, and is no end of a handshake
        elif read.method == "notifications/initialized":
            self._initialized = line
        elif read.method == "resources/unsubscribe":
            self._subscribed.pop(str(read.params.get("uri")), None)
        elif read.method == "notifications/cancelled":
            # No answer will come for it.
            self._close_request(rpc.canonical_id(read.params.get("requestId")) or "")

    def _forget(self, read: rpc.Message) -> None:
        if read.is_request:
            self._close_request(rpc.canonical_id(read.id) or "")

    def _close_request(self, key: str) -> rpc.Message | None:
        closed = self._open.pop(key, None)
        self._sent_on.pop(key, None)
        self._acknowledged.discard(key)
        if not self._open:
            self._idle.set()
        return closed

    # server to host

    async def _get_upstream(self, *, start: bool = True, wait_s: float) -> Upstream:
        """The connection that is there, or a new one with everything repeated that a new server must know."""
        if self._upstream is not None and not self._connecting.locked():
            return self._upstream
        async with self._connecting:
            if self._upstream is not None:
                return self._upstream
            try:
                upstream = await Upstream.open(
                    self._places, self._greeting, start=start, wait_s=wait_s, last=self._last_server
                )
                await self._repeat(upstream)
            except ConnectionRefused as refusal:
                self._failure = str(refusal)
                self._ended.set()
                raise ServerGone(str(refusal)) from None
            except OSError as problem:
                raise ServerGone(f"the connection broke ({problem})") from None
            except SettingError as problem:
                raise ServerGone(str(problem)) from None
            self._upstream = upstream
            self._last_server = read_record(self._places)
            missed = self._make_missed_news() if self._following is not None else []
            self._following = asyncio.ensure_future(self._follow(upstream, missed))
            return upstream

    async def _repeat(self, upstream: Upstream) -> None:
        waiting = [message for key, message in self._open.items() if key not in self._carried]
        listening = [message for message in waiting if message.method == "subscriptions/listen"]
        greeted = self._following is not None or self._answered_first
        if greeted and self._handshake is not None:
            await upstream.send(_under_private_id(self._handshake, "initialize"))
            if self._initialized is not None and not self._handing_initialized:
                await upstream.send(self._initialized)
            for number, uri in enumerate(self._subscribed):
                body = {"jsonrpc": "2.0", "id": f"{_PRIVATE}{number}", "method": "resources/subscribe"}
                await upstream.send(rpc.dump(body | {"params": {"uri": uri}}))
        if self._following is not None:
            for message in listening:
                await upstream.send(rpc.dump(message.body))

    def _make_missed_news(self) -> list[bytes]:
        """For each subscription of the host, that its subject may have changed: nobody told it between two servers."""
        told = [_make_news("resources/updated", uri=uri) for uri in self._subscribed]
        if self._initialized is not None:
            told.append(_make_news("resources/list_changed"))
        for key in self._acknowledged:
            listen = self._open[key]
            wanted = listen.params.get("notifications")
            if isinstance(wanted, dict):
                meta = {_SUBSCRIPTION: listen.id}
                told += [
                    _make_news("resources/updated", _meta=meta, uri=uri)
                    for uri in wanted.get("resourceSubscriptions") or ()
                ]
                if wanted.get("resourcesListChanged"):
                    told.append(_make_news("resources/list_changed", _meta=meta))
        return told

    async def _follow(self, upstream: Upstream, missed: Sequence[bytes] = ()) -> None:
        """Copy what the server says to the host until it ends; then fail what was under way and reconnect."""
        assert self._wire is not None
        unread = False
        began = time.monotonic()
        try:
            for news in missed:
                await self._wire.write(news)
            async for line in upstream.read(self._copy_at_once):
                if self._is_for_host(line):
                    await self._wire.write(line)
        except (BrokenPipeError, ConnectionResetError) as problem:
            if self._wire.broken:
                self._ended.set()
                return
            # The kernel says so when the server died before it had read all that we sent.
            unread = problem.errno == errno.ECONNRESET
        except OSError:
            pass
        self._let_go(upstream)
        pause_s = self._reconnect_pause.note_end(time.monotonic() - began)
        again = self._find_unread(upstream) if unread else None
        spared = rpc.canonical_id(again[0].id) if again is not None else None
        await self._fail_open(upstream, "The wsh server went away while this request was under way.", spared)
        if again is not None:
            await self._hand_over(self._wire, *again)
        if self._initialized is not None or self._open:
            await asyncio.sleep(pause_s)
            await self._await_next_server()

    def _copy_at_once(self, line: bytes) -> bool:
        assert self._wire is not None
        if not self._wire.is_free:
            return False
        return not self._is_for_host(line) or self._wire.write_now(line + b"\n")

    def _is_for_host(self, line: bytes) -> bool:
        """Notes what `line` answers. False for what the host did not ask for."""
        answered = _ANSWERED.match(line)
        if answered is not None:
            id = answered.group(1)
            key = id.decode() if id[:1] != b'"' else str(json.loads(id))
            if key.startswith(_PRIVATE):
                return False
            closed = self._close_request(key)
            if closed is not None and closed.method not in _PLAIN and answered.group(2) == b"result":
                self._note_success(closed)
        elif _ACKNOWLEDGED.match(line):
            known = rpc.canonical_id(json.loads(line)["params"].get("_meta", {}).get(_SUBSCRIPTION)) or ""
            if known in self._acknowledged:
                return False
            if known in self._open:
                self._acknowledged.add(known)
        return True

    def _note_success(self, read: rpc.Message) -> None:
        if read.method == "resources/subscribe":
            self._subscribed[str(read.params.get("uri"))] = None
        elif read.method == "resources/unsubscribe":
            self._subscribed.pop(str(read.params.get("uri")), None)

    def _find_unread(self, upstream: Upstream) -> tuple[rpc.Message, bytes] | None:
        """The request that was sent there last, if it waits for its answer: a part of it at least was never read."""
        if self._last is None or not self._last[0].is_request:
            return None
        key = rpc.canonical_id(self._last[0].id) or ""
        # While the host read slowly, the next server may have been given one already.
        there = self._sent_on.get(key) is upstream
        return self._last if there and key in self._open and key not in self._carried else None

    async def _fail_open(self, upstream: Upstream, text: str, spared: str | None) -> None:
        assert self._wire is not None
        for key, message in list(self._open.items()):
            kept = message.method == "subscriptions/listen" or key == spared or key in self._carried
            if not kept and self._sent_on.get(key) is upstream:
                self._close_request(key)
                await self._wire.write(rpc.dump(_gone(message, text)))

    async def _await_next_server(self) -> None:
        """Somebody may be listening, so be connected before the next request; but only a request starts a server."""
        pause = 0.05
        while self._upstream is None and not self._ended.is_set():
            try:
                await self._get_upstream(start=False, wait_s=0.0)
            except ServerGone:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 2.0)


def _gone(message: rpc.Message, text: str, code: str = "INTERNAL") -> dict[str, object]:
    data = {
        "code": code,
        "hint": "Sessions outlive the server; look at the screen before you repeat what may have been done.",
    }
    return rpc.make_error(message.id, rpc.SERVER_GONE, text, data)


def _make_news(name: str, **params: object) -> bytes:
    return rpc.dump({"jsonrpc": "2.0", "method": f"notifications/{name}", **({"params": params} if params else {})})


def _under_private_id(line: bytes, name: str) -> bytes:
    body = json.loads(line)
    body["id"] = _PRIVATE + name
    return rpc.dump(body)


class Wire:
    """The host's pipes. Stray prints of this process go to stderr, never onto the wire."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        self.broken = False
        self._loop = asyncio.get_running_loop()
        self._blocking = os.get_blocking(self._out)
        self._lock = asyncio.Lock()
        self._writers = 0
        """How many write, or wait to."""
        self._finishing: asyncio.Task[None] | None = None
        self._feed = LineFeed(pause=self._pause, resume=self._resume, most_bytes=rpc.MAX_MESSAGE_BYTES)
        self._feed_ended = False
        self._listening = False
        self._reading: asyncio.Task[None] | None = None
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._waitable = _is_waitable(self._out)
        if self._waitable:
            os.set_blocking(self._out, False)

    def read_lines(self, at_once: Callable[[bytes], bool]) -> AsyncIterator[bytes | None]:
        """Lines from the host; None stands for one that was too long and has been skipped. Those that `at_once` takes are left out."""
        self._feed.at_once = at_once
        try:
            self._listen()
        except PermissionError:  # files and /dev/null cannot be waited for
            self._reading = asyncio.ensure_future(self._read_file())
        return self._feed

    def _listen(self) -> None:
        if not self._feed_ended:
            self._loop.add_reader(self._in, self._take)
            self._listening = True

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._in)

    def _take(self) -> None:
        try:
            data = os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._feed.feed(data)
        else:
            self._end_feed()

    def _end_feed(self) -> None:
        self._feed_ended = True
        self._stop_listening()
        self._feed.end(whole=False)

    async def _read_file(self) -> None:
        while True:
            await self._may_read.wait()
            try:
                data = await asyncio.to_thread(os.read, self._in, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            self._feed.feed(data)
        self._end_feed()

    def _pause(self) -> None:
        self._may_read.clear()
        self._stop_listening()

    def _resume(self) -> None:
        self._may_read.set()
        if self._reading is None:
            self._listen()

    @property
    def is_free(self) -> bool:
        """True if no write is under way or waiting."""
        return self._writers == 0

    def write_now(self, line: bytes) -> bool:
        """Write if `is_free`. False if no byte could be written now; a rest is written by a task."""
        try:
            written = os.write(self._out, line)
        except OSError:
            return False
        if written < len(line):
            self._writers += 1
            self._finishing = asyncio.ensure_future(self._finish(line[written:]))
        return True

    async def _finish(self, rest: bytes) -> None:
        try:
            await self._write_all(rest)
        except BrokenPipeError:
            pass  # the next one to write hears of it
        finally:
            self._writers -= 1

    async def write(self, line: bytes) -> None:
        """Raises BrokenPipeError when the host is gone."""
        self._writers += 1
        try:
            async with self._lock:
                if self._finishing is not None:
                    await asyncio.wait({self._finishing})
                    self._finishing = None
                await self._write_all(line)
        finally:
            self._writers -= 1

    async def flush(self) -> None:
        """Wait for the end of pending writes. Raises BrokenPipeError when the host is gone."""
        await self.write(b"")

    async def _write_all(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                await self._wait_until(self._loop.add_writer, self._loop.remove_writer, self._out)
            except OSError as problem:
                self.broken = True
                raise BrokenPipeError(str(problem)) from None

    def is_unread(self) -> bool:
        """True if no process holds the other end of our output any more."""
        asked = select.poll()
        asked.register(self._out, 0)
        return bool(asked.poll(0))

    @staticmethod
    async def _wait_until(add: Callable[..., object], remove: Callable[[int], object], fd: int) -> None:
        # Registered for one wait alone: a callback that stays would fire on every turn of the loop.
        ready = asyncio.Event()
        add(fd, ready.set)
        try:
            await ready.wait()
        finally:
            remove(fd)

    def close(self) -> None:
        self._stop_listening()
        for task in (self._reading, self._finishing):
            if task is not None:
                task.cancel()
        if self._waitable:
            os.set_blocking(self._out, self._blocking)


def _is_waitable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def run_stdio_proxy(places: Places, toolsets: Sequence[str] = (), begun: BegunServer | None = None) -> int:
    """Entry of the command. Ends the process's threads with it: one may still sit in a read."""

    async def run() -> int:
        return await StdioProxy(places, toolsets=toolsets, begun=begun).run()

    import uvloop  # four milliseconds at the start, a fifth of every exchange after it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(run())
    if threading.active_count() > 1:
        sys.stderr.flush()
        os._exit(status)
    return status
