"""Where things go on NATS, and who may publish and subscribe there.

    wsh.FLEET.call.NODE          calls, stream messages and cancellations for a node, sealed; the node alone subscribes
    wsh.FLEET.inbox.NODE.>       answers to a node; the node alone subscribes, and only who was asked may publish
    wsh.FLEET.event.NODE         what happened at a node: stream of events, bounded by age
    wsh.FLEET.audit.NODE         what a node decided: stream of audit, without delete and purge
    $KV.wsh_FLEET_nodes.NODE     its lease: expires two seconds after the last beat
    $KV.wsh_FLEET_members.NODE   its facts: version, tags, which start it is
    $KV.wsh_FLEET_sessions.NODE.SESSION
    $KV.wsh_FLEET_approvals.NODE.ID

Every name is one token: a full stop in it is written as `=2E`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from wsh.host.fleet.credential import NodeRole

Bucket: TypeAlias = Literal["nodes", "members", "sessions", "approvals"]
BUCKETS: tuple[Bucket, ...] = ("nodes", "members", "sessions", "approvals")
RESPONSE_S = 120
"""How long NATS lets a node answer a message; askers repeat theirs more often than that."""


def to_token(name: str) -> str:
    return name.replace(".", "=2E")


def from_token(token: str) -> str:
    return token.replace("=2E", ".")


@dataclass(frozen=True)
class FleetNames:
    """The names of one fleet."""

    fleet: str

    @property
    def prefix(self) -> str:
        return f"wsh.{to_token(self.fleet)}"

    def call(self, node: str) -> str:
        return f"{self.prefix}.call.{to_token(node)}"

    def inbox(self, node: str) -> str:
        return f"{self.prefix}.inbox.{to_token(node)}"

    def event(self, node: str) -> str:
        return f"{self.prefix}.event.{to_token(node)}"

    def audit(self, node: str) -> str:
        return f"{self.prefix}.audit.{to_token(node)}"

    @property
    def event_stream(self) -> str:
        return f"wsh_{self._plain}_events"

    @property
    def audit_stream(self) -> str:
        return f"wsh_{self._plain}_audit"

    def bucket(self, bucket: Bucket) -> str:
        return f"wsh_{self._plain}_{bucket}"

    @property
    def _plain(self) -> str:
        """Streams and buckets take no full stop."""
        return self.fleet.replace(".", "_")


@dataclass(frozen=True)
class NodePermissions:
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def list_permissions(names: FleetNames, node: str, role: NodeRole) -> NodePermissions:
    """A node's own subjects and nothing else; one that only serves can neither call others nor read the list."""
    token = to_token(node)
    own = [
        names.event(node),
        names.audit(node),
        *(f"$KV.{names.bucket(bucket)}.{token}" for bucket in ("nodes", "members")),
        *(f"$KV.{names.bucket(bucket)}.{token}.*" for bucket in ("sessions", "approvals")),
    ]
    read = ["$JS.FC.>"]
    for bucket in BUCKETS:
        keys = f"$KV.{names.bucket(bucket)}"
        stream = f"KV_{names.bucket(bucket)}"
        # One that only serves may see what stands under its own keys, as left from an earlier start.
        seen = (f"{keys}.>",) if role != "serve" else (f"{keys}.{token}", f"{keys}.{token}.*", f"{keys}.{token}.>")
        read += [f"$JS.API.CONSUMER.CREATE.{stream}.*.{subject}" for subject in seen]
        read += [f"$JS.API.CONSUMER.INFO.{stream}.*"]
    if role != "serve":
        own.append(names.call("*"))
        read += [f"$JS.API.CONSUMER.CREATE.{names.event_stream}.*.>"]
    return NodePermissions((*own, *read), (names.call(node), f"{names.inbox(node)}.>"))
