"""A server on loopback that takes notices: a webhook's other end, and a push service that decrypts what it gets and checks who signed it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Taken:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`status` is what it answers, `statuses` by path. `taken` has everything that came, in order; refused things are in `refused`."""

    url: str
    status: int = 201
    statuses: dict[str, int] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    refused: list[Taken] = field(default_factory=list)
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = b"0123456789abcdef"

    def json(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(one.body) for one in list(self.taken) if one.path == path]

    def subscription(self, path: str = "/push/1") -> dict[str, Any]:
        """As a browser would give it."""
        point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return {"endpoint": f"{self.url}{path}", "keys": {"p256dh": encode(point), "auth": encode(self.secret)}}

    def pushes(self, server_key: str) -> list[dict[str, Any]]:
        """What the browser would be given, decrypted. Fails for one that is not signed by the server's key for this service."""
        return [self.open(one, server_key) for one in list(self.taken) if one.path == "/push/1"]

    def open(self, one: Taken, server_key: str) -> dict[str, Any]:
        assert one.headers["content-encoding"] == "aes128gcm" and int(one.headers["ttl"]) > 0
        scheme, _, rest = one.headers["authorization"].partition(" ")
        assert scheme == "vapid"
        parts = dict(part.split("=", 1) for part in rest.split(","))
        assert parts["k"] == server_key
        head, claims, _ = parts["t"].split(".")
        assert json.loads(decode(head))["alg"] == "ES256"
        assert json.loads(decode(claims))["aud"] == self.url
        assert Vapid02.verify(one.headers["authorization"])
        plain = http_ece.decrypt(one.body, private_key=self.key, auth_secret=self.secret, version="aes128gcm")
        found: dict[str, Any] = json.loads(plain)
        return found


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return  # its sender died meanwhile
            one = Taken(self.path, {key.lower(): value for key, value in self.headers.items()}, body)
            status = receiver.statuses.get(self.path, receiver.status)
            (receiver.taken if status < 300 else receiver.refused).append(one)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{httpd.server_address[1]}")
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
