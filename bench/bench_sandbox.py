"""What a sandbox adds to the start of a session, until its program has printed something.

Open and held sessions take turns. Other load on the machine only adds, so the fastest quarter of each side is compared.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.private import private_places
from bench.row import Row, at_most
from wsh.sandbox.profile import WORKSPACE
from wsh.sandbox.section import Backend, SandboxPolicy
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.setting import load

ROUNDS = 60
LIMITS_MS: dict[Backend, float] = {"bubblewrap": 15.0, "landlock": 3.0}


def run() -> list[Row]:
    with private_places() as places, tempfile.TemporaryDirectory() as folder:

        async def main() -> list[Row]:
            registry = await SessionRegistry.open(places, load(None, {}, {}))
            try:
                return await _measure(registry, Path(folder))
            finally:
                await registry.stop()

        return asyncio.run(main())


async def _measure(registry: SessionRegistry, folder: Path) -> list[Row]:
    held = [
        backend
        for backend in ("bubblewrap", "landlock")
        if registry.sandboxes.find_missing("bubblewrap" if backend == "bubblewrap" else "landlock") is None
    ]
    times: dict[str, list[float]] = {name: [] for name in ("open", *held)}
    for _ in range(ROUNDS):
        for name in times:
            times[name].append(await _start(registry, folder, name))
    best = {name: sum(sorted(each)[: ROUNDS // 4]) / (ROUNDS // 4) for name, each in times.items()}
    rows = []
    for backend, limit in LIMITS_MS.items():
        if backend in best:
            title = f"start of a session in {backend} beyond that of an open one"
            added, note = best[backend] - best["open"], f"open: {best['open']:.2f} ms"
            rows.append(at_most("sandbox", title, added, limit, "ms", note))
    return rows


async def _start(registry: SessionRegistry, folder: Path, name: str) -> float:
    spec = SessionSpec(argv=["/bin/sh", "-c", "echo ready; exec cat"], cwd=str(folder))
    if name != "open":
        policy = SandboxPolicy(backend="landlock" if name == "landlock" else "bubblewrap", accept_weaker=True)
        spec = replace(spec, sandbox=WORKSPACE, sandbox_policy=policy)
    began = time.perf_counter()
    session = await registry.open_session(spec)
    await session.wait(WaitSpec(text="ready", generation=0, max_wait_ms=60_000))
    took = (time.perf_counter() - began) * 1000
    await registry.kill(session.name)
    return took
