"""The server is in a container, the desktop on its host: reach it by the host's alias, token in the environment."""

from __future__ import annotations

from collections.abc import Callable

from wsh.bridge.client import BridgeClient
from wsh.bridge.fault import BridgeFault, Unreachable
from wsh.bridge.frame import MAX_FRAME_BYTES, PolicyFrame
from wsh.contract.adapters.base import AdapterType, ConnectInput, ConnectResult, RuntimeAdapter
from wsh.contract.adapters.classify import classify
from wsh.contract.adapters.inputs import BridgeInputs


class ContainerBridgeAdapter(RuntimeAdapter):
    adapter_type: AdapterType = "container_bridge"  # type: ignore[misc]  # a class attribute, typed more narrowly

    def __init__(
        self,
        inputs: BridgeInputs,
        runtime_session_id: str,
        *,
        name: str = "wsh",
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_policy: Callable[[PolicyFrame], None] | None = None,
    ) -> None:
        super().__init__(
            runtime_session_id, name=name, trace=inputs.trace, max_frame_bytes=max_frame_bytes, on_policy=on_policy
        )
        self.inputs = inputs

    async def connect(self, asked: ConnectInput) -> ConnectResult:
        """Try each alias in order. The first that accepts the connection is used: if it refuses, no other is tried."""
        if self._client is not None and self._client.is_open:
            return self._adopt(self._client, self.endpoint or "", [])
        self.state = "connecting"
        attempted: list[dict[str, object]] = []
        timeout_s = self.inputs.connect_timeout_ms / 1000
        last: BridgeFault | None = None
        for alias in self.inputs.aliases:
            try:
                client = await BridgeClient.connect(
                    alias,
                    self.inputs.port,
                    self._greet(self.inputs.token, asked.trace_id),
                    connect_timeout_s=timeout_s,
                    handshake_timeout_s=timeout_s,
                    max_frame_bytes=self.max_frame_bytes,
                    trace=self.trace,
                    on_policy=self.on_policy,
                )
            except BridgeFault as fault:
                attempted.append({"host": alias, "port": self.inputs.port, "error": fault.message})
                last = fault
                if not isinstance(fault, Unreachable):
                    break
            else:
                attempted.append({"host": alias, "port": self.inputs.port, "error": None})
                return self._adopt(client, f"{alias}:{self.inputs.port}", attempted)
        self.state = "dropped"
        assert last is not None
        raise classify(
            last,
            adapter=self.adapter_type,
            attempted_candidates=attempted,
            spawn_errors=[],
            connect_timeout_ms=self.inputs.connect_timeout_ms,
        )
