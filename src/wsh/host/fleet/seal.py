"""Messages between nodes, signed: who sent it, to whom, when, and that it was not seen before.

A sealed message is a signature (64 bytes), a line of JSON, and the content. Each names the start of the sender and of the receiver
that it is for, and a number that rises: a copy has a number that was taken already, and a copy kept over a restart is for a start that
is over. Times only bound how long numbers must be remembered.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.host.fleet.credential import NodeCertificate, NodeCredential, Signer, is_signed
from wsh.wire.error import InvalidRequest, WshError

Fault: TypeAlias = Literal["malformed", "unsigned", "other", "restarted", "late", "replayed"]
_MESSAGES: dict[Fault, str] = {
    "malformed": "The message is not one of this fleet.",
    "unsigned": "The message is not signed by a node of this fleet.",
    "other": "The message is for another node.",
    "restarted": "The message is for an earlier start of the node.",
    "late": "The message is too old, or a clock is wrong.",
    "replayed": "The message came before.",
}
_SIGNATURE_BYTES = 64


class SealBroken(Exception):
    """A message that is not taken, and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(_MESSAGES[fault])
        self.fault = fault


@dataclass(frozen=True)
class Sealed:
    """What a message says, after everything about it was checked."""

    sender: NodeCertificate
    instance: str
    """Which start of the sender it was."""
    kind: str
    id: str
    """Which exchange it belongs to."""
    content: bytes
    piece: tuple[int, int] = (0, 1)
    """Which of how many, from 0."""


class Sealer:
    """Seals what one start of a node sends. The number rises in the order of sealing, which must be that of sending."""

    def __init__(self, credential: NodeCredential, clock: Callable[[], float] = time.time) -> None:
        self.instance = secrets.token_hex(8)
        self._credential = credential
        self._signer = Signer(credential.seed)
        self._clock = clock
        self._number = 0

    def seal(
        self, to: str, to_instance: str, kind: str, id: str, content: bytes, piece: tuple[int, int] = (0, 1)
    ) -> bytes:
        self._number += 1
        head = {
            "certificate": self._credential.certificate.to_wire(),
            "from": self.instance,
            "to": [to, to_instance],
            "number": self._number,
            "time": self._clock(),
            "kind": kind,
            "id": id,
            "piece": piece,
        }
        signed = json.dumps(head, separators=(",", ":")).encode() + b"\n" + content
        return self._signer.sign(signed) + signed


class SealCheck:
    """Opens what is sealed for one start of a node. Bounded by the number of senders within `max_skew_s`."""

    def __init__(
        self,
        credential: NodeCredential,
        instance: str,
        max_skew_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._credential = credential
        self._instance = instance
        self._max_skew_s = max_skew_s
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        """Of each start of a sender: its highest number, and when that came."""
        self._certified: set[NodeCertificate] = set()

    def open(self, data: bytes) -> Sealed:
        """Raises SealBroken."""
        signature, signed = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        line, newline, content = signed.partition(b"\n")
        try:
            if not newline:
                raise ValueError
            head = json.loads(line)
            sender = NodeCertificate.from_wire(head["certificate"])
            instance, number, sent = str(head["from"]), int(head["number"]), float(head["time"])
            to, to_instance = map(str, head["to"])
            index, count = map(int, head["piece"])
            kind, id = str(head["kind"]), str(head["id"])
        except (ValueError, KeyError, TypeError, WshError):
            raise SealBroken("malformed") from None
        if not self._is_certified(sender) or not is_signed(sender.key, signed, signature):
            raise SealBroken("unsigned")
        if to != self._credential.name:
            raise SealBroken("other")
        if to_instance != self._instance:
            raise SealBroken("restarted")
        now = self._clock()
        if abs(now - sent) > self._max_skew_s:
            raise SealBroken("late")
        self._check_number((sender.key, instance), number, now)
        if not 0 <= index < count or len(id) > 64:
            raise SealBroken("malformed")
        return Sealed(sender, instance, kind, id, content, (index, count))

    def _is_certified(self, sender: NodeCertificate) -> bool:
        if sender in self._certified:
            return True
        if not sender.is_of(self._credential.fleet, self._credential.authority):
            return False
        self._certified.add(sender)
        return True

    def _check_number(self, source: tuple[str, str], number: int, now: float) -> None:
        highest, _ = self._seen.get(source, (0, now))
        if number <= highest:
            raise SealBroken("replayed")
        if source not in self._seen:
            old = now - 2 * self._max_skew_s
            self._seen = {key: value for key, value in self._seen.items() if value[1] >= old}
        self._seen[source] = (number, now)


class PieceBox:
    """Puts messages together that came in pieces. Holds `max_bytes` in all; what is incomplete for long is dropped first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: dict[tuple[str, str], dict[int, bytes]] = {}
        self._bytes = 0

    def add(self, source: str, id: str, piece: tuple[int, int], content: bytes) -> bytes | None:
        """The whole, once its last piece is there. Raises InvalidRequest for one that cannot be held."""
        index, count = piece
        if count == 1:
            return content
        held = self._held.setdefault((source, id), {})
        if index == 0 and held:
            self._bytes -= sum(map(len, held.values()))
            held.clear()
        self._bytes += len(content) - len(held.get(index, b""))
        held[index] = content
        if sum(map(len, held.values())) > self._max_bytes or count > 4096:
            self._drop((source, id))
            raise InvalidRequest(
                f"A call to another node, or the answer, is larger than {self._max_bytes} bytes.",
                hint="Raise fleet.max_call_bytes, or ask for less at a time.",
            )
        if len(held) == count:
            self._drop((source, id))
            return b"".join(held[at] for at in range(count))
        while self._bytes > 2 * self._max_bytes:
            self._drop(next(iter(self._held)))
        return None

    def _drop(self, key: tuple[str, str]) -> None:
        self._bytes -= sum(map(len, self._held.pop(key).values()))


def split_pieces(content: bytes, piece_bytes: int) -> list[bytes]:
    """At least one, of at most `piece_bytes` each."""
    return [content[at : at + piece_bytes] for at in range(0, len(content), piece_bytes)] or [b""]
