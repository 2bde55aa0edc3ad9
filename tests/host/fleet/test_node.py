"""Nodes on a real NATS server: calls and streams between them, who is there, and what a stolen key is worth."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client

from tests.support.fleet import (
    DEBIAN_PROGRAM,
    OWNER,
    NatsForTest,
    NodeForTest,
    make_call,
    make_info,
    open_nats,
    open_nodes,
)
from tests.support.waiting import HANG_S, until
from wsh.host.carrier import StreamRequest
from wsh.host.fleet import tell
from wsh.host.fleet.carrier import NatsCarrier
from wsh.host.fleet.connection import ConnectionLost
from wsh.host.fleet.credential import NodeCredential
from wsh.host.fleet.deploy import StreamLimits, connect_as_admin, make_streams, make_tls, start_nats
from wsh.host.fleet.directory import Member
from wsh.host.fleet.node import FleetOptions
from wsh.host.fleet.subject import FleetNames
from wsh.operation.fleet import FleetNodeInfo
from wsh.wire.error import HostUnreachable, InvalidRequest
from wsh.wire.json.object import JsonObject
from wsh.wire.model.session import SessionInfo

pytestmark = pytest.mark.accept

NAMES = FleetNames("test")
VIEW = StreamRequest("view", "train", {"rows": "24"}, OWNER)


async def test_calls_streams_and_sessions_reach_another_node(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann"), server.invite("b.ob", tags=("gpu",))) as (ann, bob):
            bob.add_session("train")
            carrier = await ann.see("b.ob")
            assert carrier.state.target == "fleet, gpu" and carrier.state.version
            answer = await carrier.call(make_call("echo", "1", text="hello"))
            assert answer.unwrap() == {"node": "b.ob", "params": {"text": "hello"}}
            assert bob.calls[0].caller.host == "ann", "the node that signed, whatever the call says"
            large = "x" * 2_000_000
            answer = await carrier.call(make_call("echo", "2", text=large))
            assert answer.unwrap() == {"node": "b.ob", "params": {"text": large}}
            stream = await carrier.open_stream(VIEW)
            for message in ("text", b"\x00\xff", "", "é" * 300_000):
                await stream.send(message)
                assert await stream.receive() == message
            assert bob.streams[0].request.query == {"rows": "24"}
            await stream.send("close")
            assert await stream.receive() is None and stream.closed == (1000, "asked to")
            await until(lambda: [one["name"] for one in carrier.list_sessions()] == ["train"])
            bob.sessions.clear()
            bob.node.sessions.mark("train")
            await until(lambda: carrier.list_sessions() == [])


async def test_a_slow_viewer_stops_its_own_sender_and_nobody_elses(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            carrier = await ann.see("bob")
            slow, quick = await carrier.open_stream(VIEW), await carrier.open_stream(VIEW)
            await slow.send("flood")
            await until(lambda: bob.streams[0].sent * 10_000 >= 256 * 1024)
            for number in range(50):
                await quick.send(str(number))
                assert await quick.receive() == str(number)
            sent = bob.streams[0].sent
            assert sent * 10_000 <= 256 * 1024 + 30_000, "no more than its credit"
            for _ in range(200):
                assert await slow.receive() == b"x" * 10_000
            assert bob.streams[0].sent > sent
            await slow.aclose()
            await quick.aclose()


async def test_a_call_under_way_is_made_once_when_nats_is_killed(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            carrier = await ann.see("bob")
            stream = await carrier.open_stream(VIEW)
            calling = asyncio.ensure_future(carrier.call(make_call("wait", "1")))
            await until(lambda: bob.calls)
            server.kill()
            with pytest.raises(HostUnreachable):
                await stream.receive()
            await until(lambda: ann.node.problem is not None and bob.node.problem is not None)
            assert (state := ann.state("bob")) is not None and not state.online
            bob.add_session("made-alone")
            bob.release.set()
            await server.start()
            assert (await calling).unwrap() == {"node": "bob", "params": {}}
            assert len(bob.calls) == 1
            await ann.see("bob")
            await until(lambda: [one["name"] for one in carrier.list_sessions()] == ["made-alone"])


async def test_a_dead_node_is_seen_and_its_sessions_stay_in_the_list(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        credential = server.invite("bob")
        async with open_nodes(server.invite("ann"), credential) as (ann, bob):
            bob.add_session("train")
            carrier = await ann.see("bob")
            await until(lambda: carrier.list_sessions() != [])
            calling = asyncio.ensure_future(carrier.call(make_call("wait", "1")))
            await until(lambda: bob.calls)
            await bob.die()
            await ann.see("bob", online=False)
            assert [one["name"] for one in carrier.list_sessions()] == ["train"]
            with pytest.raises(HostUnreachable) as refused:
                await carrier.call(make_call("echo", "2"))
            assert refused.value.facts["last_seen"] is not None
            async with open_nodes(credential) as (again,):
                again.add_session("train")
                await ann.see("bob")
                assert (await carrier.call(make_call("echo", "3"))).unwrap()
                with pytest.raises(HostUnreachable, match="started anew"):
                    await calling


async def test_a_second_node_of_a_name_is_refused_and_says_why(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        credential = server.invite("bob")
        async with open_nodes(credential) as (first,):
            second = NodeForTest(credential)
            try:
                await until(lambda: "another node joined" in (second.node.problem or ""))
                assert first.node.problem is None
            finally:
                await second.node.aclose()


async def test_a_node_that_leaves_is_forgotten(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            bob.add_session("train")
            await ann.see("bob")
            await bob.node.aclose(forget=True)
            await until(lambda: "bob" not in ann.hosts)


@contextlib.asynccontextmanager
async def connect_by_hand(credential: NodeCredential, refused: list[str]) -> AsyncIterator[Client]:
    async def note(problem: Exception) -> None:
        refused.append(str(problem).lower())

    client = await nats.connect(
        credential.url,
        nkeys_seed_str=credential.seed,
        tls=make_tls(credential.ca),
        inbox_prefix=NAMES.inbox(credential.name),
        allow_reconnect=False,
        error_cb=note,
    )
    try:
        yield client
    finally:
        await client.close()


BOTH = pytest.mark.parametrize(
    "program", [pytest.param(None, id="newest"), pytest.param(DEBIAN_PROGRAM, id="debian", marks=pytest.mark.accept)]
)


@BOTH
async def test_a_stolen_key_can_neither_read_nor_answer_for_another_node(tmp_path: Path, program: str | None) -> None:
    async with open_nats(tmp_path, program) as server:
        stolen = server.invite("mallory", "agent")
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            carrier = await ann.see("bob")
            refused: list[str] = []
            async with connect_by_hand(stolen, refused) as thief:
                heard: list[object] = []
                for subject in (NAMES.call("bob"), f"{NAMES.inbox('ann')}.>", "wsh.>", ">", "_INBOX.>"):

                    async def hear(message: object) -> None:
                        heard.append(message)

                    await thief.subscribe(subject, cb=hear)
                forged = [
                    f"{NAMES.inbox('ann')}.x.1",
                    NAMES.event("bob"),
                    NAMES.audit("bob"),
                    *(f"$KV.{NAMES.bucket(b)}.bob" for b in ("nodes", "members")),
                    *(f"$KV.{NAMES.bucket(b)}.bob.x" for b in ("sessions", "approvals")),
                    f"$JS.API.STREAM.DELETE.{NAMES.audit_stream}",
                    f"$JS.API.STREAM.PURGE.{NAMES.audit_stream}",
                    f"$JS.API.STREAM.UPDATE.{NAMES.audit_stream}",
                    f"$JS.API.STREAM.MSG.DELETE.{NAMES.audit_stream}",
                    f"$JS.API.STREAM.MSG.GET.{NAMES.audit_stream}",
                    f"$JS.API.CONSUMER.CREATE.{NAMES.audit_stream}.x",
                    # The answer would go where the thief says, with what stands in the thief's own key.
                    f"$JS.API.DIRECT.GET.KV_{NAMES.bucket('members')}.$KV.{NAMES.bucket('members')}.mallory",
                ]
                for subject in forged:
                    await thief.publish(subject, b"{}")
                # What it may send to bob is not signed by a node that may call as it claims.
                await thief.publish(NAMES.call("bob"), b"x" * 100, f"{NAMES.inbox('mallory')}.x.1")
                await thief.flush()
                answer = await carrier.call(make_call("echo", "1", text="secret"))
                assert answer.unwrap() == {"node": "bob", "params": {"text": "secret"}}
                await until(lambda: len(refused) >= 5 + len(forged), seen=lambda: refused)
                assert all("permissions violation" in problem for problem in refused)
                assert heard == []
                assert len(bob.calls) == 1
            # Its key is taken back: from then on it is nobody.
            server.deployment.nodes.pop("mallory")
            server.deployment.write()
            server.deployment.reload()

            async def is_out() -> bool:
                try:
                    async with connect_by_hand(stolen, refused):
                        return False
                except (nats.errors.Error, OSError):
                    return True

            await until(is_out)


@BOTH
async def test_a_node_that_serves_can_be_called_and_cannot_call_or_list(tmp_path: Path, program: str | None) -> None:
    async with open_nats(tmp_path, program) as server:
        async with open_nodes(server.invite("ann"), server.invite("box", "serve")) as (ann, box):
            box.add_session("train")
            carrier = await ann.see("box")
            assert (await carrier.call(make_call("echo", "1"))).unwrap()
            await until(lambda: [one["name"] for one in carrier.list_sessions()] == ["train"])
            assert len(box.hosts) == 0
            refused: list[str] = []
            await box.node.aclose()
            async with connect_by_hand(box.credential, refused) as client:
                await client.publish(NAMES.call("ann"), b"x")
                await client.publish(f"$JS.API.CONSUMER.CREATE.KV_{NAMES.bucket('sessions')}.x.>", b"{}")
                await client.flush()
                await until(lambda: len(refused) == 2)


async def test_events_and_audit_reach_their_streams_once_and_cannot_be_taken_back(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann")) as (ann,):
            for number in range(20):
                ann.node.events.add(f"e{number}", {"number": number})
                ann.node.audit.add(f"a{number}", {"number": number})
                if number == 10:
                    server.kill()
                    await until(lambda: ann.node.problem is not None)
            await server.start()
            await until(lambda: not ann.node.events._waiting and not ann.node.audit._waiting)
            async with connect_as_admin(server.deployment) as admin:
                js = admin.jetstream()
                for stream in (NAMES.event_stream, NAMES.audit_stream):
                    info = await js.stream_info(stream)
                    assert info.state.messages == 20
                assert info.config.deny_delete and info.config.deny_purge
                with pytest.raises(nats.errors.Error):
                    await js.purge_stream(NAMES.audit_stream)


@BOTH
async def test_limits_of_the_streams_change_with_the_next_start(tmp_path: Path, program: str | None) -> None:
    async def read(server: NatsForTest) -> tuple[float | None, int | None, float | None]:
        async with connect_as_admin(server.deployment) as admin:
            js = admin.jetstream()
            events = (await js.stream_info(NAMES.event_stream)).config
            audit = (await js.stream_info(NAMES.audit_stream)).config
            lease = (await js.stream_info(f"KV_{NAMES.bucket('nodes')}")).config
            return events.max_age, audit.max_bytes, lease.max_age

    async with open_nats(tmp_path, program) as server:
        assert await read(server) == (7 * 86_400, 1024**3, 2.0)
        server.deployment.limits = StreamLimits(lease_s=4.0, events_keep_s=3600.0, audit_bytes=2 * 1024**3)
        assert await start_nats(server.deployment, server.program) is None
        assert await read(server) == (3600.0, 2 * 1024**3, 4.0)


@BOTH
async def test_how_a_call_goes_is_told_to_the_node_that_made_it(tmp_path: Path, program: str | None) -> None:
    async with (
        open_nats(tmp_path, program) as server,
        open_nodes(server.invite("ann"), server.invite("bob")) as (ann, _),
    ):
        told: list[object] = []
        carrier = await ann.see("bob")
        await carrier.call(make_call("echo", "1"), told.append)
        assert told == [{"message": "begun", "stream": "info", "phase": "progress"}]


async def test_what_a_node_says_of_itself_spoils_no_list(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        wrong: list[object] = [None, "text", 7, [1], {"a": 1}, float("nan"), float("inf")]
        async with open_nodes(server.invite("ann"), server.invite("bob"), server.invite("box", "serve")) as nodes:
            ann, bob, box = nodes
            bob.add_session("train")
            await ann.see("box")
            connection = box.node.connection
            assert connection is not None
            for each in wrong:
                keys = ("tags", "version", "role", "protocol", "start", "load", "sessions")
                said = {"instance": "b1", **dict.fromkeys(keys, each)}
                await connection.put("members", "box", said)
                await connection.publish(f"$KV.{NAMES.bucket('nodes')}.box", json.dumps(said).encode())
                await connection.put("sessions", "box.x", {"name": each})
                member = ann.node.directory.members["box"]
                told = json.dumps(each)
                await until(lambda member=member, told=told: json.dumps(member.facts.get("tags")) == told)  # type: ignore[misc]
                for node in ann.node.describe_nodes():
                    FleetNodeInfo.model_validate_json(json.dumps(node, allow_nan=False))
                assert [state.name for state in ann.hosts.list_hosts()] == ["bob", "box"]
                assert ann.carrier("box").list_sessions() == []
            await until(lambda: [one["name"] for one in ann.carrier("bob").list_sessions()] == ["train"])


async def test_an_answer_that_is_too_large_is_told_as_such_at_once(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("bob")) as (bob,):
        ann = NodeForTest(server.invite("ann"), options=FleetOptions("", linger_s=600, max_call_bytes=300_000))
        try:
            await ann.wait_joined()
            answer = await (await ann.see("bob")).call(make_call("large", "1", deadline_s=HANG_S))
            with pytest.raises(InvalidRequest, match="larger than 300000 bytes"):
                answer.unwrap()
            assert len(bob.calls) == 1
        finally:
            await ann.node.aclose()


async def test_a_node_that_leaves_and_joins_again_at_once_is_there(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server:
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            await ann.see("bob")
            facts = ann.node.directory.members["bob"].facts
            heard: list[object] = []
            ann.hosts.listen(lambda name, news: heard.append(news["event"]))
            # Both come in one piece where this server was busy, and are told without a pause between them.
            ann.node.directory._on_fact("bob", None)
            ann.node.directory._on_fact("bob", facts)
            assert "bob" in ann.hosts and heard == ["host_removed", "host_added"]
            bob.add_session("train")
            carrier = ann.carrier("bob")
            await until(lambda: [one["name"] for one in carrier.list_sessions()] == ["train"])
            assert (await (await ann.see("bob")).call(make_call("echo", "1"))).unwrap()


async def test_a_node_is_listed_once_the_host_of_its_name_is_removed(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("bob")) as (bob,):
        ann = NodeForTest(server.invite("ann"))
        ann.hosts.add(NatsCarrier(bob.node, Member("bob")))  # stands for any other carrier
        try:
            await ann.wait_joined()
            await until(lambda: "bob" in ann.node.directory.members)
            await ann.hosts.refresh()
            assert not ann.hosts.told_sessions, "the host that was added keeps its name"
            await ann.hosts.remove("bob")
            assert (await (await ann.see("bob")).call(make_call("echo", "1"))).unwrap()
        finally:
            await ann.node.aclose()


async def test_leaving_waits_once_for_a_nats_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("bob")) as (bob,):
        await bob.node.sessions.told_once.wait()
        for number in range(100):
            bob.sessions[f"s{number}"] = make_info(f"s{number}")
        connection, asked = bob.node.connection, []
        assert connection is not None

        async def put(bucket: str, key: str, value: object, last: int | None = None) -> int:
            asked.append(key)
            raise ConnectionLost("it does not answer")

        monkeypatch.setattr(connection, "put", put)
        await bob.node.aclose(forget=True)
        assert len(asked) < 10


async def test_a_stream_that_refuses_costs_the_node_neither_its_place_nor_the_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tell, "_AGAIN_S", 0.05)
    async with open_nats(tmp_path) as server, open_nodes(server.invite("ann")) as (ann,):
        connection = ann.node.connection
        async with connect_as_admin(server.deployment) as admin:
            js = admin.jetstream()
            await js.delete_stream(NAMES.event_stream)
            ann.node.events.add("e1", {"number": 1})
            await until(lambda: "does not take an event" in caplog.text)
            await make_streams(admin, NAMES, StreamLimits())
            await until(lambda: not ann.node.events._waiting)
            assert (await js.stream_info(NAMES.event_stream)).state.messages == 1
        assert ann.node.connection is connection and ann.node.problem is None


async def test_an_entry_that_is_larger_than_nats_takes_is_told_in_short(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("ann")) as (ann,):
        connection = ann.node.connection
        ann.node.audit.add("a1", {"seq": 7, "hash": "h", "argv": ["x" * 1_048_560]})
        ann.node.audit.add("a2", {"seq": 8})
        await until(lambda: not ann.node.audit._waiting)
        async with connect_as_admin(server.deployment) as admin:
            found = await admin.jetstream().get_msg(NAMES.audit_stream, 1)
        assert json.loads(found.data or b"") == {"seq": 7, "hash": "h", "left_out_bytes": 1_048_592}
        assert ann.node.connection is connection


@BOTH
async def test_confirmations_of_nats_that_are_sent_to_another_name_change_nothing(
    tmp_path: Path, program: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_nats(tmp_path, program) as server:
        stolen = server.invite("mallory", "serve")
        async with open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
            bob.add_session("train")
            carrier = await ann.see("bob")
            await until(lambda: carrier.list_sessions() != [])
            connection, lease = bob.node.connection, f"$KV.{NAMES.bucket('nodes')}.bob"
            places = (f"$KV.{NAMES.bucket('members')}.bob", f"$KV.{NAMES.bucket('sessions')}.bob.train", *[lease] * 20)
            async with connect_by_hand(stolen, []) as thief:
                for place in places:
                    # What is confirmed is the thief's own to write; whoever is named gets the confirmation.
                    await thief.publish(f"$KV.{NAMES.bucket('members')}.mallory", b"{}", place)
                    await thief.flush()
                await until(lambda: "cannot be; it is left out" in caplog.text)
                await until(lambda: "not told by a node" in caplog.text)
                before = bob.beats
                await until(lambda: bob.beats > before + 3)
            assert bob.node.connection is connection and bob.node.problem is None
            assert (await carrier.call(make_call("echo", "1"))).unwrap()
            assert [one["name"] for one in carrier.list_sessions()] == ["train"]


async def test_what_happens_to_a_session_of_another_node_is_told_as_it_is_there(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
        heard: list[JsonObject] = []
        ann.hosts.listen(lambda host, news: heard.append(news) if "host" not in str(news["event"]) else None)

        async def hear(event: str) -> JsonObject:
            await until(lambda: [one["event"] for one in heard] == [event], seen=lambda: heard)
            return heard.pop()

        await ann.see("bob")
        release = ann.node.directory.hold()
        bob.add_session("train")
        created = await hear("session_created")
        assert (created["session"], created["name"], created["params"]["command"]) == ("train", "train", "sleep 1000")
        assert SessionInfo.model_validate(created["info"])
        bob.add_session("train", tags=["gpu", "night"])
        await until(lambda: len(heard) == 2, seen=lambda: heard)
        tagged, _ = heard
        heard.clear()
        assert (tagged["tags"], tagged["added"], tagged["removed"]) == (["gpu", "night"], ["gpu", "night"], [])
        bob.sessions = {"eval": {**bob.sessions["train"], "name": "eval"}}
        bob.node.sessions.mark("train")
        bob.node.sessions.mark_renamed("train", "eval")
        await until(lambda: any(one["event"] == "session_renamed" for one in heard), seen=lambda: heard)
        carrier = ann.carrier("bob")
        kept = bob.node.connection
        assert kept is not None
        await until(lambda: [one["name"] for one in carrier.list_sessions()] == ["eval"])

        async def is_told_whole() -> bool:
            found, old = await kept.get("sessions", "bob.eval"), await kept.get("sessions", "bob.train")
            return found is not None and "renamed_from" not in (found[1] or {}) and old is not None and old[1] is None

        await until(is_told_whole)
        renamed, *rest = [
            one for one in heard if one["event"] in ("session_renamed", "session_created", "session_destroyed")
        ]
        assert (renamed["old_name"], renamed["new_name"], rest) == ("train", "eval", [])
        assert [one["name"] for one in carrier.list_sessions()] == ["eval"]
        release()


async def test_a_clock_that_jumps_while_a_call_is_made_does_not_make_it_undone(tmp_path: Path) -> None:
    async with open_nats(tmp_path) as server, open_nodes(server.invite("ann"), server.invite("bob")) as (ann, bob):
        carrier = await ann.see("bob")
        calling = asyncio.ensure_future(carrier.call(make_call("wait", "1")))
        await until(lambda: bob.calls)
        assert ann.node.connection is not None
        ann.node.connection.sealer._clock = lambda: 0.0
        with pytest.raises(HostUnreachable, match="clock") as refused:
            await calling
        assert refused.value.facts["made"] == "unknown"
        with pytest.raises(HostUnreachable, match="clock") as refused:
            await carrier.call(make_call("echo", "2"))
        assert refused.value.facts["made"] == "no" and len(bob.calls) == 1
