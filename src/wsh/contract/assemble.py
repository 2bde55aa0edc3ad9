"""The contract put together for a server: settings become limits, the plugs find their sockets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from wsh.contract.adapters.discover import PROGRAM
from wsh.contract.adapters.pool import AdapterPool, PoolOptions
from wsh.contract.adapters.server import ServerAdapter
from wsh.contract.adapters.server_approver import ApprovedRuns, RuleFile, ServerApprover
from wsh.contract.ask.kept import RequestFolder
from wsh.contract.dispatch import Contract
from wsh.contract.gate import Gate, Trail
from wsh.contract.headless import HeadlessOptions, HeadlessRoute
from wsh.contract.identity import IdentityRegistry
from wsh.contract.interactive import InteractiveOptions, InteractiveRoute
from wsh.contract.output.text import RenderText
from wsh.contract.policy_source import PolicySource
from wsh.contract.request.correlation import make_id
from wsh.contract.runner import CommandRunner
from wsh.policy.audit import name_trail
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places
from wsh.wire.version import VERSION


def make_contract(
    settings: Settings,
    places: Places,
    *,
    runner: CommandRunner,
    policy: RuleFile,
    trail: Trail,
    environ: Mapping[str, str],
    render: RenderText,
    approved: ApprovedRuns | None = None,
) -> Contract:
    """`render` makes text of what terminals print. `environ` is the server's own: what a started desktop inherits, and whose HOME must not be wiped.

    `approved` runs what is approved here; without it there is no queue in this server. The caller owns the result and calls its `aclose`.
    """
    book = PolicySource(policy)
    gate = Gate(book, trail, home=environ.get("HOME"), lifetime_ms=settings.get_int("exec.lifetime_ms"))
    registry = IdentityRegistry(
        retention_s=settings.get_int("session.retention_s"), max_active=settings.get_int("contract.max_active")
    )
    pool = AdapterPool(
        PoolOptions(
            info=places.desktop_info,
            base_environ=dict(environ),
            bundled_path=find_bundled(),
            listed_binaries=tuple(settings.get_list("bridge.binaries")),
            name=f"wsh {VERSION}",
            trail=name_trail(places.audit_log),
            max_frame_bytes=settings.get_int("bridge.max_frame_bytes"),
            on_policy=book.learn,
        )
    )
    headless = HeadlessRoute(
        gate, runner, registry, HeadlessOptions(max_output_bytes=settings.get_int("exec.max_output_bytes"))
    )
    interactive = InteractiveRoute(
        gate,
        pool,
        registry,
        headless,
        render,
        InteractiveOptions(max_approval_ms=settings.get_int("approvals.timeout_ms")),
    )
    if approved is not None:
        end = ServerApprover(approved, policy, trail, environ.get("HOME", "/"))
        most = settings.get_int("approvals.max_pending")
        interactive.server = ServerAdapter(end, make_id("srv"), most, approved.find_name)
        end.before_run = interactive.begin
        interactive.folder = RequestFolder(places.requests)
        interactive.server_enabled = settings.get_bool("approvals.server")
    return Contract(registry, headless, interactive)


def find_bundled() -> str | None:
    """The desktop program that was installed together with this server."""
    path = Path(sys.executable).parent / PROGRAM
    return str(path) if path.exists() else None
