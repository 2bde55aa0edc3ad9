"""The PATH that the user's login shell would have.

A server that a desktop or a service manager started has a poor one; agents then miss programs that the user has. The login shell is
asked once per server, with a deadline; while it has not answered, sessions start with the PATH there is. One that did not answer, such as
in the first moments of a busy machine, is asked again a while later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Mapping

log = logging.getLogger(__name__)

_ANSWER = re.compile(r"<wsh-path:([^<>\n]*)>")
_DEADLINE_S = 10.0
_AGAIN_S = 60.0


class LoginPath:
    """Asks at the first need and remembers."""

    def __init__(self, patience_s: float) -> None:
        """`patience_s` is how long `extend` waits for the answer."""
        self._patience_s = patience_s
        self._asked: dict[tuple[str, str], asyncio.Task[str | None]] = {}

    async def extend(self, shell: str, env: Mapping[str, str]) -> str | None:
        """The PATH for `env` with the login shell's in it, or None if there is nothing to change."""
        key = (shell, env.get("HOME", ""))
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._find(key, dict(env)), name="login path")
        asked = self._asked[key]
        done, _ = await asyncio.wait({asked}, timeout=self._patience_s)
        return merge(env.get("PATH", ""), asked.result() or "") if done else None

    async def _find(self, key: tuple[str, str], env: dict[str, str]) -> str | None:
        found = await _ask(key[0], env)
        if found is None:
            asyncio.get_running_loop().call_later(_AGAIN_S, self._asked.pop, key, None)
        return found

    async def aclose(self) -> None:
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)


def merge(ours: str, login: str) -> str | None:
    """The login shell's order where it has all we have; else ours first, then what only it has."""
    have, theirs = [p for p in ours.split(":") if p], [p for p in login.split(":") if p]
    if not theirs or have == theirs:
        return None
    if set(have) <= set(theirs):
        return ":".join(theirs)
    added = [path for path in dict.fromkeys(theirs) if path not in have]
    return ":".join([*have, *added]) if added else None


async def _ask(shell: str, env: dict[str, str]) -> str | None:
    """What it prints; None if it cannot be started or takes too long. Nobody of its process group is left behind."""
    joined = "(string join : $PATH)" if os.path.basename(shell) == "fish" else '"$PATH"'
    try:
        process = await asyncio.create_subprocess_exec(
            shell,
            "-l",
            "-c",
            f"printf '\\n<wsh-path:%s>\\n' {joined}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=env,
            cwd="/",
            start_new_session=True,
        )
    except OSError as problem:
        log.warning("the login shell %s cannot be asked for its PATH: %s", shell, problem)
        return None
    try:
        async with asyncio.timeout(_DEADLINE_S):
            out, _ = await process.communicate()
    except TimeoutError:
        log.warning("the login shell %s did not tell its PATH within %g s", shell, _DEADLINE_S)
        return None
    finally:
        if process.returncode is None:
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            await asyncio.shield(process.wait())
    found = _ANSWER.search(out.decode("utf-8", "surrogateescape"))
    return found[1] if found else ""
