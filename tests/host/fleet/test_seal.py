"""A message between nodes is taken once, from whom it says, by whom it is for, and in time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from wsh.host.carrier import ForwardedCaller
from wsh.host.fleet.credential import (
    NodeCertificate,
    NodeCredential,
    NodeRole,
    find_public_key,
    make_seed,
    read_credential,
)
from wsh.host.fleet.receive import admit
from wsh.host.fleet.seal import PieceBox, SealBroken, SealCheck, Sealer, split_pieces
from wsh.host.fleet.subject import FleetNames, from_token, list_permissions, to_token
from wsh.wire.error import InvalidRequest, Refused

AUTHORITY = make_seed("account")
NOW = 1_000_000.0


def make_credential(name: str, role: NodeRole = "owner", authority: str = AUTHORITY) -> NodeCredential:
    seed = make_seed()
    certificate = NodeCertificate("home", name, find_public_key(seed), role, ("gpu",)).sign(authority)
    return NodeCredential("nats://127.0.0.1:4222", seed, find_public_key(authority), certificate)


class Pair:
    """Ann sends to bob, each with a clock of their own."""

    def __init__(self) -> None:
        self.now = {"ann": NOW, "bob": NOW}
        self.ann, self.bob = make_credential("ann"), make_credential("bob")
        self.sealer = Sealer(self.ann, lambda: self.now["ann"])
        self.check = SealCheck(self.bob, "start", 30.0, lambda: self.now["bob"])

    def seal(self, to: str = "bob", instance: str = "start") -> bytes:
        return self.sealer.seal(to, instance, "call", "id", b"content")

    def refuse(self, message: bytes) -> str:
        with pytest.raises(SealBroken) as broken:
            self.check.open(message)
        return broken.value.fault


def test_a_sealed_message_says_who_sent_it() -> None:
    pair = Pair()
    opened = pair.check.open(pair.seal())
    assert (opened.sender.name, opened.kind, opened.id, opened.content) == ("ann", "call", "id", b"content")


def test_a_copy_of_a_message_is_refused() -> None:
    pair = Pair()
    first, second = pair.seal(), pair.seal()
    pair.check.open(first)
    pair.check.open(second)
    assert pair.refuse(first) == pair.refuse(second) == "replayed"


def test_a_copy_that_was_kept_over_a_restart_is_refused() -> None:
    pair = Pair()
    kept = pair.seal()
    pair.check.open(kept)
    pair.check = SealCheck(pair.bob, "next start", 30.0, lambda: NOW)
    assert pair.refuse(kept) == "restarted"


def test_a_message_that_is_late_or_from_the_future_is_refused() -> None:
    for seconds in (31, -31):
        pair = Pair()
        message = pair.seal()
        pair.now["bob"] += seconds
        assert pair.refuse(message) == "late"


def test_numbers_are_remembered_for_as_long_as_a_copy_would_be_in_time() -> None:
    pair = Pair()
    pair.now["ann"] += 29  # a clock that is ahead makes a copy last longest
    message = pair.seal()
    pair.check.open(message)
    pair.now["bob"] += 58
    pair.check.open(Sealer(pair.ann, lambda: pair.now["bob"]).seal("bob", "start", "call", "id", b""))
    assert pair.refuse(message) == "replayed"


def test_a_message_for_another_node_is_refused() -> None:
    pair = Pair()
    assert pair.refuse(pair.seal(to="carol")) == "other"


@pytest.mark.parametrize("at", [0, 63, 64, 200, -1])
def test_a_message_that_was_changed_is_refused(at: int) -> None:
    pair = Pair()
    message = bytearray(pair.seal())
    message[at] ^= 1
    assert pair.refuse(bytes(message)) in ("unsigned", "malformed")


def test_a_node_of_another_authority_is_refused() -> None:
    pair = Pair()
    stranger = make_credential("ann", authority=make_seed("account"))
    assert pair.refuse(Sealer(stranger, lambda: NOW).seal("bob", "start", "call", "id", b"")) == "unsigned"


def test_a_node_cannot_call_itself_another_or_give_itself_a_role() -> None:
    pair = Pair()
    worker = make_credential("worker", "agent")
    for changed in (replace(worker.certificate, name="ann"), replace(worker.certificate, role="owner")):
        forged = Sealer(replace(worker, certificate=changed), lambda: NOW)
        assert pair.refuse(forged.seal("bob", "start", "call", "id", b"")) == "unsigned"


@pytest.mark.parametrize("garbage", [b"", b"x" * 64, b"x" * 64 + b"{}\n", b"x" * 64 + b"[]\n", b"\n" * 100])
def test_garbage_is_refused(garbage: bytes) -> None:
    assert Pair().refuse(garbage) == "malformed"


def test_a_caller_gets_no_more_than_its_node_may_give() -> None:
    owner = ForwardedCaller("owner", "ann", "claims to be elsewhere")
    assert admit(owner, make_credential("laptop").certificate) == replace(owner, host="laptop")
    assert admit(owner, make_credential("worker", "agent").certificate).role == "agent"
    assert admit(replace(owner, role="agent"), make_credential("laptop").certificate).role == "agent"
    with pytest.raises(Refused):
        admit(owner, make_credential("worker", "serve").certificate)


def test_large_messages_are_put_together_from_pieces_and_bounded() -> None:
    box = PieceBox(100)
    whole = bytes(range(90))
    pieces = split_pieces(whole, 32)
    assert [len(piece) for piece in pieces] == [32, 32, 26]
    assert [box.add("ann", "1", (at, 3), piece) for at, piece in enumerate(pieces)] == [None, None, whole]
    for at in range(3):
        assert box.add("ann", "2", (at, 4), b"x" * 32) is None
    with pytest.raises(InvalidRequest) as refused:
        box.add("ann", "2", (3, 4), b"x" * 32)
    assert "fleet.max_call_bytes" in str(refused.value.hint)
    for number in range(20):
        box.add("ann", f"never whole {number}", (0, 2), b"x" * 32)
    assert box._bytes <= 200
    assert box.add("bob", "1", (0, 1), b"whole") == b"whole"


def test_credentials_are_private_and_fit_together(tmp_path: Path) -> None:
    path = tmp_path / "wsh" / "fleet.json"
    credential = make_credential("ann")
    credential.write(path)
    assert read_credential(path) == credential
    assert credential.seed not in repr(credential)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "seed": make_seed()}))
    with pytest.raises(InvalidRequest, match="do not fit together"):
        read_credential(path)
    path.chmod(0o644)
    with pytest.raises(InvalidRequest, match="Others can read"):
        read_credential(path)
    with pytest.raises(InvalidRequest, match="no credentials"):
        read_credential(tmp_path / "missing")


def test_a_node_may_publish_and_subscribe_only_where_its_name_stands() -> None:
    names = FleetNames("home")
    for role in ("owner", "agent", "serve"):
        allowed = list_permissions(names, "gpu.1", role)
        written = [subject for subject in allowed.publish if not subject.startswith("$JS.")]
        assert [s for s in written if "gpu=2E1" not in s] == ([] if role == "serve" else ["wsh.home.call.*"])
        assert allowed.subscribe == ("wsh.home.call.gpu=2E1", "wsh.home.inbox.gpu=2E1.>")
        assert not [s for s in allowed.publish if any(word in s for word in ("DELETE", "PURGE", "UPDATE", "STREAM.C"))]
    assert from_token(to_token("a.b-c_d")) == "a.b-c_d"
