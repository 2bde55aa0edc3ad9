"""What outlives the server of one session: its description at the keeper and on disk, and the facts of a snapshot.

The keeper is told soon after a change, and only the newest of several. Knows nothing of when snapshots are made or where they go.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING

from wsh.process import KeeperClient
from wsh.session.record.store import TakenSnapshot
from wsh.wire.json.object import JsonObject
from wsh.wire.system.moment import Moment

if TYPE_CHECKING:
    from wsh.session.session import Session

_TYPING_S = 0.05


class SessionMemory:
    def __init__(self, session: Session, keeper: KeeperClient) -> None:
        self._session = session
        self._keeper = keeper
        self._telling: asyncio.Task[None] | None = None
        self._tell_again = False
        self._soon: asyncio.TimerHandle | None = None
        self._told = b""
        """Digest of what the keeper was told last, which is small where the words themselves are not."""

    def describe(self) -> JsonObject:
        """What the keeper and the folder remember of it, enough to restore it."""
        session, shells = self._session, self._session.shells
        return {
            "sid": session.sid,
            "name": session.name,
            # The keeper remembers 64 KiB of a child. What is longer was for the program, not for a list of sessions.
            "command": session.command[:2000],
            "argv": [word[:200] for word in session.argv[:16]],
            "cwd": session.start_cwd,
            "rows": session.rows,
            "cols": session.cols,
            "borrowed_rows": session.borrowed_rows,
            "tags": list(session.tags),
            "pid": session.pid,
            "created": session.created,
            "created_by": [session.created_by.kind, session.created_by.id],
            "home_of": session.home_of,
            "keep": session.keep,
            "running": session.running,
            "exit_code": session.exit_code,
            "exit_signal": session.exit_signal,
            "ended": session.ended,
            "ended_boot": None if session.end is None else [session.end.boot, session.end.up],
            "first_size": list(session.first_size),
            "agent_defaults": session.agent_defaults,
            "left_out": [list(part) for part in session.output.gaps],
            "marks": None if shells is None else [shells.root.shell, shells.root.nonce],
            "authors": [] if shells is None else [list(change) for change in shells.root.author_changes],
            "inner_nonces": [] if shells is None else list(shells.inner_nonces),
            "sandbox": None if session.holding is None else session.holding.to_facts(),
        }

    def make_snapshot(self) -> TakenSnapshot:
        session = self._session
        facts: JsonObject = {"lost_bytes": session.output.lost_bytes}
        if session.shells is not None:
            facts["commands"] = session.shells.root.facts()
        return TakenSnapshot(session.generation, facts, session.terminal.take_state())

    def recall(self, facts: JsonObject, meta: JsonObject) -> None:
        """Restores state from a snapshot and a description."""
        session, shells = self._session, self._session.shells
        session.output.lost_bytes = int(facts.get("lost_bytes", 0))
        if shells is not None:
            shells.recall(str(nonce) for nonce in meta.get("inner_nonces") or ())
            shells.root.recall(facts.get("commands") or {})
            printed = 1 << 62 if session.child is None else session.child.ring.head
            shells.root.recall_authors(meta.get("authors") or (), printed)
        rows, cols = meta.get("first_size") or (session.rows, session.cols)
        session.first_size = (int(rows), int(cols))
        session.home_of = str(meta.get("home_of") or "")
        if meta.get("running"):
            session.input.recall(meta)
        else:
            session.running = False
            session.exit_code, session.exit_signal = meta.get("exit_code"), meta.get("exit_signal")
            boot, up = meta.get("ended_boot") or ("", 0.0)
            session.end = Moment(float(meta.get("ended") or session.created), str(boot), float(up))

    def remember_typing(self) -> None:
        """As `remember`, after a moment: the keeper first reads the echo of what was typed, and we show it."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_TYPING_S, self.remember)

    def hurry(self) -> None:
        """Put nothing off any longer."""
        if self._soon is not None:
            self.remember()

    def remember(self) -> None:
        """Tell the keeper what we would want to know after a restart; soon, and only the newest of several."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._telling is not None and not self._telling.done():
            self._tell_again = True
        elif self._session.child is not None:
            self._telling = self._session.pending.start(self._tell_keeper())

    async def _tell_keeper(self) -> None:
        self._tell_again = True
        try:
            while self._tell_again and self._session.child is not None:
                self._tell_again = False
                known = {**self.describe(), **self._session.input.facts()}
                digest = hashlib.blake2b(json.dumps(known).encode(), digest_size=16).digest()
                if digest != self._told:  # a line typed and completed at once leaves nothing new
                    await self._keeper.update_meta(self._session.child, known)
                    self._told = digest
        finally:
            self._telling = None
