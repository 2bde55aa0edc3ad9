"""Connected adapters, one per configuration, shared by all requests that mean the same desktop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from wsh.bridge.frame import MAX_FRAME_BYTES, PolicyFrame
from wsh.contract.adapters.base import ConnectInput, RuntimeAdapter
from wsh.contract.adapters.container_bridge import ContainerBridgeAdapter
from wsh.contract.adapters.discover import discover
from wsh.contract.adapters.inputs import BridgeInputs, read_bridge_inputs, read_trace
from wsh.contract.adapters.local import BundledAdapter, LocalAdapter
from wsh.contract.adapters.mode import resolve_mode
from wsh.contract.request.correlation import make_id
from wsh.contract.request.model import DEFAULT_SPAWN_TIMEOUT_MS, Runtime


@dataclass(frozen=True)
class PoolOptions:
    """`base_environ` is what a started desktop inherits; `info` its runtime file."""

    info: Path
    base_environ: Mapping[str, str] = field(default_factory=dict)
    bundled_path: str | None = None
    listed_binaries: tuple[str, ...] = ()
    name: str = "wsh"
    trail: str = ""
    """Names this server's audit log."""
    max_frame_bytes: int = MAX_FRAME_BYTES
    on_policy: Callable[[BridgeInputs, PolicyFrame], None] | None = None
    """Hears the policy of a desktop across a container's bridge."""


class AdapterPool:
    def __init__(self, options: PoolOptions) -> None:
        self.options = options
        self.runtime_session_id = make_id("rt")
        self._adapters: dict[Hashable, RuntimeAdapter] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def get(
        self, environ: Mapping[str, str], runtime: Runtime, trace_id: str, *, may_launch: bool = True
    ) -> RuntimeAdapter:
        """A ready adapter for these surroundings: checked before a request is sent, reconnected where it dropped."""
        key, make = self._choose(environ, runtime)
        spawn_s = (runtime.spawn_timeout_ms or DEFAULT_SPAWN_TIMEOUT_MS) / 1000
        return await self._ready(key, make, ConnectInput(trace_id, may_launch, spawn_s))

    async def reattach(self, adapter: RuntimeAdapter, trace_id: str) -> RuntimeAdapter:
        """The same adapter, connected again if it dropped. Starts nothing: a new desktop would know nothing."""
        await self._recover(adapter, ConnectInput(trace_id, may_launch=False))
        return adapter

    async def _recover(self, adapter: RuntimeAdapter, asked: ConnectInput) -> None:
        """One at a time for each adapter, so that it never has two connections. Taken inside the lock of its key."""
        async with self._locks.setdefault(id(adapter), asyncio.Lock()):
            if not (await adapter.health_check()).healthy:
                await adapter.recover(asked)

    async def _ready(self, key: Hashable, make: Callable[[], RuntimeAdapter], asked: ConnectInput) -> RuntimeAdapter:
        async with self._locks.setdefault(key, asyncio.Lock()):
            adapter = self._adapters.get(key)
            if adapter is None:
                adapter = make()
                await adapter.connect(asked)
                self._adapters[key] = adapter
            else:
                await self._recover(adapter, asked)
            return adapter

    def _choose(self, environ: Mapping[str, str], runtime: Runtime) -> tuple[Hashable, Callable[[], RuntimeAdapter]]:
        options = self.options
        resolved = resolve_mode(runtime.adapter_override, environ)
        if resolved.mode == "container_bridge":
            inputs = read_bridge_inputs(environ)
            return ("container_bridge", inputs), lambda: ContainerBridgeAdapter(
                inputs,
                self.runtime_session_id,
                name=options.name,
                max_frame_bytes=options.max_frame_bytes,
                on_policy=partial(options.on_policy, inputs) if options.on_policy is not None else None,
            )
        candidates = discover(
            resolved.mode,
            environ,
            binary_path=runtime.binary_path,
            listed_binaries=options.listed_binaries,
            bundled_path=options.bundled_path,
            search_path=options.base_environ.get("PATH", os.defpath),
        )
        trace = read_trace(environ)
        kind = BundledAdapter if resolved.mode == "bundled" else LocalAdapter
        return (resolved.mode, tuple(candidates), trace), lambda: kind(
            candidates,
            options.info,
            options.base_environ,
            self.runtime_session_id,
            name=options.name,
            trail=options.trail,
            trace=trace,
            max_frame_bytes=options.max_frame_bytes,
        )

    async def aclose(self) -> None:
        adapters = list(self._adapters.values())
        self._adapters.clear()
        await asyncio.gather(*(adapter.close() for adapter in adapters))
