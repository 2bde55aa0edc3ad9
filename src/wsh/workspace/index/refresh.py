"""Keeping indexes fresh: when files of an indexed workspace change, a builder runs in the background at low priority.

Only folders that hold indexed files are watched, each by itself, so a huge ignored folder costs nothing. At most
`MAX_ROOTS` workspaces are followed, those used last. A watch that cannot be had (the system's limit) is said in
`index_status`, and nothing else is lost: the next build by hand sees every change.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from wsh.workspace.error import IndexBroken, ToolError
from wsh.workspace.file.listing import LEFT_OUT_FOLDERS
from wsh.workspace.index import store
from wsh.workspace.index.folder import IndexFolder

log = logging.getLogger(__name__)

MAX_ROOTS = 8
MAX_FOLDERS = 20_000
_DEBOUNCE_MS = 400
_LEAST_PAUSE_S = 1.0
_CATCH_UP_S = 0.5

Build = Callable[[str], Awaitable[object]]


class Watcher:
    """Follows workspaces and calls `build(root)` when they change. Its owner calls `aclose`."""

    def __init__(self, build: Build, home_of: Callable[[str], IndexFolder]) -> None:
        self._build = build
        self._home_of = home_of
        self._tasks: OrderedDict[str, asyncio.Task[None]] = OrderedDict()
        self.problems: dict[str, str] = {}

    def follow(self, root: str) -> None:
        """Watch `root` from now on; the least recently used root is let go when there are too many."""
        if root in self._tasks and not self._tasks[root].done():
            self._tasks.move_to_end(root)
            return
        self._tasks[root] = asyncio.ensure_future(self._watch(root))
        self._tasks.move_to_end(root)
        while len(self._tasks) > MAX_ROOTS:
            _, oldest = self._tasks.popitem(last=False)
            oldest.cancel()

    def is_following(self, root: str) -> bool:
        return root in self._tasks and not self._tasks[root].done()

    async def aclose(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, root: str) -> None:
        try:
            while True:
                folders = await asyncio.to_thread(self._folders, root)
                if not folders:
                    return
                await self._until_folders_change(root, folders)
        except (OSError, RuntimeError) as problem:
            self.problems[root] = str(problem)
            log.warning("%s is not watched: %s", root, problem)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("watching %s failed", root)

    async def _until_folders_change(self, root: str, folders: list[str]) -> None:
        """Build after each change, until the set of folders changes."""
        from watchfiles import awatch

        known = set(folders)
        self.problems.pop(root, None)
        changes = awatch(
            *folders,
            watch_filter=lambda change, path: _is_interesting(root, path),
            debounce=_DEBOUNCE_MS,
            recursive=False,
            rust_timeout=2_000,
            yield_on_timeout=False,
            ignore_permission_denied=True,
        )
        # What changed before the watches stood is not told; one build a moment later catches it.
        catch_up = asyncio.ensure_future(self._refresh_after(root, _CATCH_UP_S))
        try:
            async for _ in changes:
                await asyncio.wait([catch_up])
                began = time.monotonic()
                await self._refresh_after(root, 0.0)
                if set(await asyncio.to_thread(self._folders, root)) != known:
                    return
                await asyncio.sleep(max(_LEAST_PAUSE_S, 4 * (time.monotonic() - began)))
        finally:
            catch_up.cancel()
            await asyncio.gather(catch_up, return_exceptions=True)

    async def _refresh_after(self, root: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        try:
            await self._build(root)
        except ToolError as problem:
            log.info("the index of %s was not refreshed: %s", root, problem.message)
        except Exception:  # the next change is another chance; nobody else would begin to watch again
            log.exception("the index of %s was not refreshed", root)

    def _folders(self, root: str) -> list[str]:
        """The folders of the indexed files, and all those above them."""
        current = self._home_of(root).find_current()
        if current is None or not os.path.isdir(root):
            return []
        try:
            connection = store.open_index(current)
        except IndexBroken:
            return []
        try:
            paths = [row[0] for row in connection.execute("SELECT path FROM file")]
        except sqlite3.DatabaseError:
            return []
        finally:
            connection.close()
        found = {root}
        for path in paths:
            folder = os.path.dirname(path)
            while folder and (full := os.path.join(root, folder)) not in found:
                found.add(full)
                folder = os.path.dirname(folder)
        return sorted(folder for folder in found if os.path.isdir(folder))[:MAX_FOLDERS]


def _is_interesting(root: str, path: str) -> bool:
    """Only what lies below the root counts: the root itself may be anywhere, in a `.venv` or a cache."""
    return LEFT_OUT_FOLDERS.isdisjoint(path.removeprefix(root).split("/"))
