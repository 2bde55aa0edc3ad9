"""Desktops on this machine: one that runs already, or one that is started from a list of candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wsh.bridge.client import BridgeClient
from wsh.bridge.endpoint import Endpoint, find_endpoint
from wsh.bridge.fault import BridgeFault, Unreachable
from wsh.bridge.frame import MAX_FRAME_BYTES, PolicyFrame
from wsh.contract.adapters.base import AdapterType, ConnectInput, ConnectResult, RuntimeAdapter
from wsh.contract.adapters.classify import NEXT_STEP, classify
from wsh.contract.adapters.discover import DesktopCandidate
from wsh.contract.adapters.launch import LaunchFailed, Process, launch
from wsh.contract.reply.fault import ContractFault
from wsh.contract.reply.taxonomy import Code
from wsh.wire.system.place import ensure_private

TRACE_ID_VARIABLE = "PM_INTERACTIVE_TERMINAL_TRACE_ID"
RUNTIME_SESSION_VARIABLE = "PM_INTERACTIVE_TERMINAL_RUNTIME_SESSION_ID"


class LocalAdapter(RuntimeAdapter):
    """`connect` attaches to a desktop whose runtime file can be believed; else it starts the first candidate that
    becomes ready. One retry per candidate, for transient failures only."""

    adapter_type: AdapterType = "local"  # type: ignore[misc]  # a class attribute, typed more narrowly

    def __init__(
        self,
        candidates: Sequence[DesktopCandidate],
        info: Path,
        base_environ: Mapping[str, str],
        runtime_session_id: str,
        *,
        name: str = "wsh",
        trail: str = "",
        trace: bool = False,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_policy: Callable[[PolicyFrame], None] | None = None,
    ) -> None:
        super().__init__(
            runtime_session_id,
            name=name,
            trail=trail,
            trace=trace,
            max_frame_bytes=max_frame_bytes,
            on_policy=on_policy,
        )
        self.candidates = candidates
        self.info = info
        self.base_environ = base_environ
        self.process: Process | None = None

    async def connect(self, asked: ConnectInput) -> ConnectResult:
        if self._client is not None and self._client.is_open:
            return self._adopt(self._client, self.endpoint or "", [])
        self.state = "connecting"
        try:
            attached = await self._attach(asked)
            if attached is not None:
                return attached
            if not asked.may_launch:
                raise classify(Unreachable("No desktop is running."), attempted_candidates=[], spawn_errors=[])
            return await self._launch(asked)
        except BaseException:
            self.state = "dropped"
            raise

    async def _attach(self, asked: ConnectInput) -> ConnectResult | None:
        """Use the desktop that runs. One that runs and will not talk to us is an answer, not a reason to start more."""
        endpoint = find_endpoint(self.info)
        if endpoint is None:
            return None
        try:
            client = await self._open(endpoint, asked.trace_id, asked.spawn_timeout_s)
        except Unreachable:
            return None
        except BridgeFault as fault:
            running = {"source": "running", "path": None, "outcome": fault.message}
            raise classify(fault, adapter=self.adapter_type, attempted_candidates=[running], spawn_errors=[]) from None
        return self._adopt(client, _spoken(endpoint), [{"source": "running", "path": None, "outcome": "ready"}])

    async def _launch(self, asked: ConnectInput) -> ConnectResult:
        ensure_private(self.info.parent)
        log = self.info.with_suffix(".log")
        environ = {
            **self.base_environ,
            TRACE_ID_VARIABLE: asked.trace_id,
            RUNTIME_SESSION_VARIABLE: self.runtime_session_id,
        }
        attempted: list[dict[str, object]] = []
        errors: list[dict[str, object]] = []
        failures: set[str] = set()

        async def connect(endpoint: Endpoint, left_s: float) -> BridgeClient:
            return await self._open(endpoint, asked.trace_id, left_s)

        for candidate in self.candidates:
            tried: dict[str, object] = {"source": candidate.source, "path": candidate.path}
            attempted.append(tried)
            if candidate.problem is not None or candidate.path is None:
                tried["outcome"] = candidate.problem or "not found"
                continue
            for attempt in (1, 2):
                try:
                    process, client = await launch(
                        candidate.path, environ, self.info, log, asked.spawn_timeout_s, connect
                    )
                except LaunchFailed as failed:
                    tried["outcome"] = failed.failure
                    failures.add(failed.failure)
                    errors.append({"path": candidate.path, "attempt": attempt, "error": failed.message})
                    if failed.transient and attempt == 1:
                        continue
                    break
                tried["outcome"] = "ready"
                self.process = process
                process.reap_later()
                endpoint = find_endpoint(self.info)
                return self._adopt(client, _spoken(endpoint) if endpoint else candidate.path, attempted)
        code = _code_of(failures)
        raise ContractFault(
            code,
            _message_of(code, attempted),
            adapter=self.adapter_type,
            attempted_candidates=attempted,
            spawn_errors=errors,
            spawn_timeout_ms=int(asked.spawn_timeout_s * 1000),
            next_recommended_action=NEXT_STEP[code]
            if failures
            else "Install the extra `wsh-terminal[gui]`, or start interactive-terminal.",
        )

    async def _open(self, endpoint: Endpoint, trace_id: str, timeout_s: float) -> BridgeClient:
        return await BridgeClient.connect(
            endpoint.host,
            endpoint.port,
            self._greet(endpoint.token, trace_id),
            connect_timeout_s=timeout_s,
            handshake_timeout_s=timeout_s,
            max_frame_bytes=self.max_frame_bytes,
            trace=self.trace,
            on_policy=self.on_policy,
        )

    async def close(self) -> None:
        await super().close()
        if self.process is not None:
            self.process.let_go()
            self.process = None


class BundledAdapter(LocalAdapter):
    """The program that comes with us."""

    adapter_type: AdapterType = "bundled"  # type: ignore[misc]  # as in LocalAdapter


def _spoken(endpoint: Endpoint) -> str:
    return f"{endpoint.host}:{endpoint.port}"


def _code_of(failures: set[str]) -> Code:
    """One that hung is a timeout, one that spoke otherwise is a disconnect, anything else means there is no window."""
    if "timeout" in failures:
        return "PM_TERM_TIMEOUT"
    if "refused" in failures:
        return "PM_TERM_DISCONNECTED"
    return "PM_TERM_GUI_UNAVAILABLE"


def _message_of(code: Code, attempted: list[dict[str, object]]) -> str:
    tried = ", ".join(f"{entry['source']} ({entry['outcome']})" for entry in attempted) or "nothing"
    if code == "PM_TERM_TIMEOUT":
        return f"The desktop program was started and did not become ready in time; tried: {tried}."
    if code == "PM_TERM_DISCONNECTED":
        return f"The desktop program was started and refused the handshake; tried: {tried}."
    return f"No desktop program could be started; tried: {tried}."
