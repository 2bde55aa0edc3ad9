"""Headless commands: the policy's launch on the keeper's runner. A piece of the composition root.

Serves the contract and `execute_command`: both speak to it as their `Runner`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from wsh import process
from wsh.contract.runner import OnOutput
from wsh.policy.git_guard import QUERY
from wsh.policy.launch import is_git, minimal_environment, prepare
from wsh.process import Keeper, Run
from wsh.wire.error import Refused

log = logging.getLogger("wsh.headless")

_QUERY_MS = 5000


class HeadlessRunner:
    """Starts argv without a shell: the very file and folder that were decided on, a small environment, stdin closed."""

    def __init__(self, keeper: Keeper, environ: Mapping[str, str], *, max_output_bytes: int) -> None:
        self.keeper = keeper
        self.environ = dict(environ)
        self.max_output_bytes = max_output_bytes

    async def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_output: OnOutput) -> Run:
        whole = minimal_environment(self.environ, env)
        settings = await self._ask_git(cwd, whole) if is_git(argv) else None
        with prepare(argv, cwd, whole, git_settings=settings) as launch:
            return await process.start(
                self.keeper,
                launch.argv,
                cwd=launch.cwd,
                env=launch.env,
                path=launch.path,
                cwd_fd=launch.cwd_fd,
                identity=launch.identity,
                max_output_bytes=self.max_output_bytes,
                on_output=on_output,
            )

    async def _ask_git(self, cwd: str, env: Mapping[str, str]) -> bytes | None:
        """What is configured there. Asking runs nothing of the repository's."""
        with prepare(QUERY, cwd, env) as launch:
            done = await process.run(
                self.keeper,
                QUERY,
                cwd=launch.cwd,
                env=launch.env,
                path=launch.path,
                cwd_fd=launch.cwd_fd,
                identity=launch.identity,
                timeout_ms=_QUERY_MS,
            )
        if done.timed_out or done.stdout_dropped:
            raise Refused("What git is configured to run there cannot be found out, so git is not run.", cwd=cwd)
        if done.exit_code != 0:
            log.debug("git told no settings in %s: %r", cwd, done.stderr[:200])
            return None
        return done.stdout
