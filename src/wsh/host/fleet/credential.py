"""Who a node is: its key, and a certificate in which the fleet's authority says its name and what it may.

The authority's seed stays where `wsh fleet up` ran. A node's credentials are one file of mode 0600 that names the server, the
authority and the node; the holder of the file is the node, until its key is taken out of the server's configuration.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from wsh.wire.error import CapabilityMissing, InvalidRequest
from wsh.wire.system.private_file import ensure_private, write_private

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

NodeRole: TypeAlias = Literal["owner", "agent", "serve"]
"""What the callers of a node may be on others: people, agents at most, or nothing: it serves and does not call."""
_FORMAT = 1


def need_extra() -> None:
    """Raises CapabilityMissing where the packages of the extra `fleet` are not installed."""
    try:
        for name in ("nacl", "nats", "nkeys", "cryptography"):
            importlib.import_module(name)
    except ImportError:
        raise CapabilityMissing(
            f"A fleet needs the package {name}.", hint="Install the extra: pip install 'wsh-terminal[fleet]'."
        ) from None


def make_seed(kind: Literal["user", "account"] = "user") -> str:
    """A new private key, as nkeys spell one."""
    import nkeys

    prefix = nkeys.PREFIX_BYTE_USER if kind == "user" else nkeys.PREFIX_BYTE_ACCOUNT
    return str(nkeys.encode_seed(os.urandom(32), prefix).decode())


def find_public_key(seed: str) -> str:
    import nkeys

    return str(nkeys.from_seed(bytearray(seed.encode())).public_key.decode())


class Signer:
    """Signs with one private key."""

    def __init__(self, seed: str) -> None:
        import nkeys

        _, raw = nkeys.decode_seed(bytearray(seed.encode()))
        from nacl.signing import SigningKey

        self._key = SigningKey(bytes(raw))

    def sign(self, data: bytes) -> bytes:
        """64 bytes."""
        return self._key.sign(data).signature


def is_signed(public_key: str, data: bytes, signature: bytes) -> bool:
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        raw = base64.b32decode(public_key + "=" * (-len(public_key) % 8))
        VerifyKey(raw[1:33]).verify(data, signature)
    except (CryptoError, binascii.Error, ValueError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class NodeCertificate:
    """The authority's word for a node."""

    fleet: str
    name: str
    key: str
    role: NodeRole
    tags: tuple[str, ...] = ()
    signature: str = ""

    def _content(self) -> bytes:
        content = [_FORMAT, self.fleet, self.name, self.key, self.role, list(self.tags)]
        return json.dumps(content, separators=(",", ":")).encode()

    def sign(self, authority_seed: str) -> NodeCertificate:
        return replace(self, signature=base64.b64encode(Signer(authority_seed).sign(self._content())).decode())

    def is_of(self, fleet: str, authority: str) -> bool:
        """True if the authority of that fleet signed it."""
        try:
            signature = base64.b64decode(self.signature, validate=True)
        except binascii.Error:
            return False
        return self.fleet == fleet and is_signed(authority, self._content(), signature)

    def to_wire(self) -> JsonObject:
        return {**asdict(self), "tags": list(self.tags)}

    @classmethod
    def from_wire(cls, wire: object) -> NodeCertificate:
        given = wire if isinstance(wire, dict) else {}
        texts = [given.get(key) for key in ("fleet", "name", "key", "signature")]
        tags, role = given.get("tags"), given.get("role")
        if not all(isinstance(text, str) for text in texts) or not isinstance(tags, list):
            raise InvalidRequest("The certificate of a node lacks a part.")
        fleet, name, key, signature = map(str, texts)
        for known in get_args(NodeRole):
            if role == known:
                return cls(fleet, name, key, known, tuple(map(str, tags)), signature)
        raise InvalidRequest(f"The certificate of the node {name!r} has no role that is known here.")


@dataclass(frozen=True)
class NodeCredential:
    """All that a node needs to join."""

    url: str
    seed: str
    authority: str
    certificate: NodeCertificate
    ca: str = ""
    """PEM of the authority that signed the NATS server's TLS certificate; empty for the system's."""

    @property
    def name(self) -> str:
        return self.certificate.name

    @property
    def fleet(self) -> str:
        return self.certificate.fleet

    def __repr__(self) -> str:
        return f"NodeCredential({self.fleet}/{self.name} at {self.url})"

    def write(self, path: Path) -> None:
        """Into a folder that only the owner can enter."""
        ensure_private(path.parent)
        self.write_to(path)

    def write_to(self, path: Path) -> None:
        """With mode 0600, in any folder."""
        content = {
            "wsh_fleet": _FORMAT,
            "url": self.url,
            "seed": self.seed,
            "authority": self.authority,
            "certificate": self.certificate.to_wire(),
            "ca": self.ca,
        }
        write_private(path, json.dumps(content, indent=1).encode() + b"\n")


def read_credential(path: Path) -> NodeCredential:
    """Raises InvalidRequest, which says what is wrong with the file."""
    again = "Ask for new ones with `wsh fleet invite` where the fleet was set up."
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise InvalidRequest(f"Others can read the credentials in {path}.", hint=f"chmod 600 {path}")
            given = json.load(file)
    except FileNotFoundError:
        raise InvalidRequest(f"There are no credentials of a fleet at {path}.", hint=again) from None
    except OSError as problem:
        raise InvalidRequest(f"{path} cannot be read: {problem.strerror}.", hint=again) from None
    except ValueError:
        raise InvalidRequest(f"{path} does not hold the credentials of a node.", hint=again) from None
    if not isinstance(given, dict) or given.get("wsh_fleet") != _FORMAT:
        raise InvalidRequest(f"{path} does not hold the credentials of a node.", hint=again)
    certificate = NodeCertificate.from_wire(given.get("certificate"))
    url, seed, authority, ca = (str(given.get(key) or "") for key in ("url", "seed", "authority", "ca"))
    if not certificate.is_of(certificate.fleet, authority) or find_public_key(seed) != certificate.key:
        raise InvalidRequest(f"The credentials in {path} do not fit together.", hint=again)
    return NodeCredential(url, seed, authority, certificate, ca)
