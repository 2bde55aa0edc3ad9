"""Headless commands: the policy's launch on the keeper's runner. A piece of the composition root.

Serves the contract and `execute_command`: both speak to it as their `Runner`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from wsh import process
from wsh.contract.runner import OnOutput
from wsh.git.guard import index_query, query
from wsh.policy.launch import is_git, minimal_environment, prepare
from wsh.policy.own_file import refuse_own_files
from wsh.process import Keeper, Run
from wsh.wire.error import Refused
from wsh.wire.setting import MIB

_QUERY_MS = 10_000
_QUERY_BYTES = 64 * MIB


class HeadlessRunner:
    """Starts argv without a shell: the very file and folder that were decided on, a small environment, stdin closed."""

    def __init__(self, keeper: Keeper, environ: Mapping[str, str], *, own_folders: Sequence[Path] = ()) -> None:
        """`own_folders` are wsh's: no command is started that names a file in them."""
        self.keeper = keeper
        self.environ = dict(environ)
        self.own_folders = tuple(own_folders)

    async def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_output: OnOutput) -> Run:
        await asyncio.to_thread(refuse_own_files, argv, cwd, self.own_folders)
        whole = minimal_environment(self.environ, env)
        settings, index = await self._ask_git(argv, cwd, whole) if is_git(argv) else (b"", None)
        with prepare(argv, cwd, whole, git_settings=settings, git_index=index) as launch:
            return await process.start(
                self.keeper,
                launch.argv,
                cwd=launch.cwd,
                env=launch.env,
                path=launch.path,
                cwd_fd=launch.cwd_fd,
                identity=launch.identity,
                max_output_bytes=0,  # whoever asked keeps it
                on_output=on_output,
            )

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
