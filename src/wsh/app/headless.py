"""Headless commands: the policy's launch on the keeper's runner. A piece of the composition root.

Serves the contract and `execute_command`: both speak to it as their `Runner`.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from wsh import process
from wsh.contract.runner import OnOutput
from wsh.git.guard import index_query, query
from wsh.policy.execute.launch import Launch, is_git, minimal_environment, prepare
from wsh.policy.execute.own_file import refuse_own_files, refuse_own_settings
from wsh.process import HeadlessRun, KeeperClient
from wsh.sandbox.hold import Sandboxes, SandboxPlan
from wsh.sandbox.section import SandboxPolicy
from wsh.session.confine import confine, hold
from wsh.wire.error import Refused
from wsh.wire.setting import MIB

_QUERY_MS = 10_000
_QUERY_BYTES = 64 * MIB


class HeadlessRunner:
    """Starts argv without a shell: the very file and folder that were decided on, a small environment, stdin closed."""

    def __init__(
        self,
        keeper: KeeperClient,
        environ: Mapping[str, str],
        *,
        own_folders: Sequence[Path] = (),
        sandboxes: Sandboxes | None = None,
        sandbox: Callable[[], Awaitable[SandboxPolicy]] | None = None,
    ) -> None:
        """`own_folders` are wsh's: no command is started that names a file in them. Commands run in the sandbox that agents get."""
        self.sandboxes = sandboxes
        self.sandbox = sandbox
        self.keeper = keeper
        self.environ = dict(environ)
        self.own_folders = tuple(own_folders)

    async def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_output: OnOutput) -> HeadlessRun:
        await asyncio.to_thread(refuse_own_files, argv, cwd, self.own_folders)
        whole = minimal_environment(self.environ, env)
        settings, index = await self._ask_git(argv, cwd, whole) if is_git(argv) else (b"", None)
        if settings:
            await asyncio.to_thread(refuse_own_settings, settings, cwd, self.own_folders)
        with prepare(argv, cwd, whole, git_settings=settings, git_index=index) as launch:
            added = {key for key, value in launch.env.items() if whole.get(key) != value}
            async with self._hold(launch, added.union(env)) as plan:
                started = await process.start(
                    self.keeper,
                    launch.argv,
                    cwd=launch.cwd,
                    env=launch.env,
                    path=launch.path,
                    cwd_fd=launch.cwd_fd,
                    identity=launch.identity,
                    max_output_bytes=0,  # the caller keeps it
                    on_output=on_output,
                    confine=None if plan is None else functools.partial(confine, plan=plan),
                )
                if plan is not None:
                    self._release_after(started, plan.id)
                return started

    @asynccontextmanager
    async def _hold(self, launch: Launch, given: Collection[str]) -> AsyncIterator[SandboxPlan | None]:
        """The plan of the sandbox that agents get; None where they get none. Raises WshError where it cannot be held.

        `given` are variables that stay: the caller's, and those by which the launch keeps git and toolchains harmless.
        """
        policy = SandboxPolicy() if self.sandbox is None else await self.sandbox()
        if policy.agents is None:
            yield None
            return
        assert self.sandboxes is not None, "a policy with sandboxes, and nothing to make them"
        id = f"run-{secrets.token_hex(8)}"
        make_plan = functools.partial(
            self.sandboxes.plan,
            policy.agents,
            policy,
            id=id,
            path=launch.path,
            argv=launch.argv,
            env=launch.env,
            given=given,
            cwd=launch.cwd,
            cwd_fd=launch.cwd_fd,
            identity=launch.identity,
        )
        plan = await hold(self.sandboxes, make_plan)
        try:
            yield plan
        except BaseException:
            await asyncio.to_thread(self.sandboxes.release, id)
            raise
        finally:
            plan.close()

    def _release_after(self, started: HeadlessRun, id: str) -> None:
        def ended(_: object) -> None:
            assert self.sandboxes is not None
            asyncio.get_running_loop().run_in_executor(None, self.sandboxes.release, id)

        started.child.exited.add_done_callback(ended)

    async def _ask_git(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> tuple[bytes, bytes | None]:
        """What is configured there, and what is tracked if that matters. Asking runs nothing of the repository's."""
        settings = await self._answer(query(argv), cwd, env, b"")
        tracked = index_query(argv)
        return settings, None if tracked is None else await self._answer(tracked, cwd, env, settings)

    async def _answer(self, question: Sequence[str], cwd: str, env: Mapping[str, str], settings: bytes) -> bytes:
        with prepare(question, cwd, env, git_settings=settings) as launch:
            done = await process.run(
                self.keeper,
                launch.argv,
                cwd=launch.cwd,
                env=launch.env,
                path=launch.path,
                cwd_fd=launch.cwd_fd,
                identity=launch.identity,
                timeout_ms=_QUERY_MS,
                max_output_bytes=_QUERY_BYTES,
            )
        if done.exit_code == 0 and not done.timed_out and not done.stdout_dropped:
            return done.stdout
        told = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0][:300]
        raise Refused(
            "What git would run there cannot be found out, so git is not run" + (f": {told}" if told else "."), cwd=cwd
        )
