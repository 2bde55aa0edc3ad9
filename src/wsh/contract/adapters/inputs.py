"""The inputs of the container bridge, from the environment of the connection: checked as a whole, named when wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wsh.bridge.frame import DEFAULT_PORT
from wsh.contract.reply.fault import ContractFault

PREFIX = "PM_INTERACTIVE_TERMINAL_"
TOKEN = PREFIX + "TOKEN"
HOST_ALIAS = PREFIX + "HOST_ALIAS"
HOST_FALLBACK_ALIAS = PREFIX + "HOST_FALLBACK_ALIAS"
HOST_PORT = PREFIX + "HOST_PORT"
CONNECT_TIMEOUT = PREFIX + "CONNECT_TIMEOUT_MS"
REQUEST_TIMEOUT = PREFIX + "REQUEST_TIMEOUT_MS"
TRACE_BRIDGE = PREFIX + "TRACE_BRIDGE"
BINARY = PREFIX + "BINARY"

DEFAULT_ALIAS = "host.containers.internal"
DEFAULT_FALLBACK_ALIAS = "host.docker.internal"
DEFAULT_CONNECT_TIMEOUT_MS = 3000
DEFAULT_REQUEST_TIMEOUT_MS = 30_000

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?")


@dataclass(frozen=True)
class BridgeInputs:
    token: str = field(repr=False)
    aliases: tuple[str, ...] = (DEFAULT_ALIAS, DEFAULT_FALLBACK_ALIAS)
    port: int = DEFAULT_PORT
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    trace: bool = False


def read_bridge_inputs(environ: Mapping[str, str]) -> BridgeInputs:
    """Raises PM_TERM_INVALID_MODE naming every variable that is missing or malformed; values are not repeated."""
    reader = _Reader(environ)
    token = environ.get(TOKEN, "")
    if not token.strip():
        reader.missing.append(TOKEN)
    aliases = [reader.host(HOST_ALIAS, DEFAULT_ALIAS), reader.host(HOST_FALLBACK_ALIAS, DEFAULT_FALLBACK_ALIAS)]
    inputs = BridgeInputs(
        token=token,
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias)),
        port=reader.number(HOST_PORT, DEFAULT_PORT, 1, 65_535),
        connect_timeout_ms=reader.number(CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT_MS, 1, 600_000),
        request_timeout_ms=reader.number(REQUEST_TIMEOUT, DEFAULT_REQUEST_TIMEOUT_MS, 1, 3_600_000),
        trace=reader.flag(TRACE_BRIDGE),
    )
    reader.check()
    return inputs


def read_trace(environ: Mapping[str, str]) -> bool:
    reader = _Reader(environ)
    trace = reader.flag(TRACE_BRIDGE)
    reader.check()
    return trace


def read_request_timeout_ms(environ: Mapping[str, str]) -> int:
    """How long an interactive request waits when it does not say."""
    reader = _Reader(environ)
    timeout = reader.number(REQUEST_TIMEOUT, DEFAULT_REQUEST_TIMEOUT_MS, 1, 3_600_000)
    reader.check()
    return timeout


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.missing: list[str] = []
        self.malformed: list[dict[str, str]] = []

    def number(self, name: str, default: int, low: int, high: int) -> int:
        raw = self.environ.get(name, "").strip()
        if not raw:
            return default
        if not raw.isascii() or not raw.isdigit() or not low <= int(raw[:12]) <= high:
            self.malformed.append({"name": name, "problem": f"must be a whole number from {low} to {high}"})
            return default
        return int(raw)

    def host(self, name: str, default: str) -> str:
        raw = self.environ.get(name, "").strip()
        if not raw:
            return default
        if len(raw) > 253 or not _HOST.fullmatch(raw):
            self.malformed.append({"name": name, "problem": "must be a host name or an address, without a port"})
        return raw

    def flag(self, name: str) -> bool:
        raw = self.environ.get(name, "").strip().lower()
        if raw in {"1", "true", "yes", "on"}:
            return True
        if raw not in {"", "0", "false", "no", "off"}:
            self.malformed.append({"name": name, "problem": "must be 1 or 0"})
        return False

    def check(self) -> None:
        if not self.missing and not self.malformed:
            return
        words = [f"{name} is missing" for name in self.missing]
        words += [f"{entry['name']} {entry['problem']}" for entry in self.malformed]
        raise ContractFault(
            "PM_TERM_INVALID_MODE",
            f"The desktop bridge is not configured: {'; '.join(words)}.",
            missing=self.missing,
            malformed=self.malformed,
            next_recommended_action="Set these variables where the server (or `wsh mcp`) is started.",
        )
