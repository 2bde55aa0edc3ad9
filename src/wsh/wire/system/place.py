"""Where things live: runtime, state and configuration folders.

Nothing is created on import; `ensure_private` (see `private_file`) makes a folder that only its owner can enter and refuses one that
belongs to somebody else. Short commands ask `runtime_path` instead, which knows the same folders as texts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.system.private_file import FolderUnusable, ensure_private, write_private
from wsh.wire.system.runtime_path import config_folder, runtime_folder, server_name, state_folder

__all__ = ["FolderUnusable", "Places", "ensure_private", "find_places", "read_boot_id", "write_private"]


@dataclass(frozen=True)
class Places:
    """The three folders of wsh, for one named server."""

    runtime: Path
    state: Path
    config: Path
    server: str = "default"

    @property
    def socket(self) -> Path:
        """The server's unix socket for people and `wsh mcp`."""
        return self.runtime / f"{self.server}.sock"

    @property
    def keeper_socket(self) -> Path:
        return self.runtime / f"{self.server}.keeper.sock"

    @property
    def keeper_secret(self) -> Path:
        return self.runtime / f"{self.server}.keeper.secret"

    @property
    def lock(self) -> Path:
        return self.runtime / f"{self.server}.lock"

    @property
    def runtime_info(self) -> Path:
        """JSON: url, pid, port, version. Written by the server, removed at its end."""
        return self.runtime / f"{self.server}.json"

    @property
    def engine_note(self) -> Path:
        """What the terminal engine is at with sessions that have ended, for who finds it after a death."""
        return self.runtime / f"{self.server}.engine"

    @property
    def crash(self) -> Path:
        """Where a server that is killed by native code leaves its trace."""
        return self.state / f"{self.server}.crash"

    @property
    def deaths(self) -> Path:
        """One line of JSON for each time that native code killed a server."""
        return self.state / f"{self.server}.deaths"

    @property
    def server_log(self) -> Path:
        return self.state / f"{self.server}.log"

    @property
    def last_attached(self) -> Path:
        """The names of the sessions that `wsh attach` showed, the last first."""
        return self.state / f"{self.server}.attached"

    @property
    def sessions(self) -> Path:
        """One folder per session: journal segments, sidecar, snapshots."""
        return self.state / "sessions" / self.server

    @property
    def inbox(self) -> Path:
        """What the person has marked in the inbox."""
        return self.state / f"{self.server}.inbox"

    @property
    def wakes(self) -> Path:
        """Lines that wait to be typed into a session."""
        return self.state / f"{self.server}.wakes"

    @property
    def outbox(self) -> Path:
        """Notices, and what became of each at every channel."""
        return self.state / f"{self.server}.outbox"

    @property
    def requests(self) -> Path:
        """Requests that wait for a person in the server, and what became of the last ones."""
        return self.state / f"{self.server}.requests"

    @property
    def push(self) -> Path:
        """The key by which push services know this server, and the browsers that take push."""
        return self.state / f"{self.server}.push"

    @property
    def notify_file(self) -> Path:
        return self.config / "notify.toml"

    @property
    def tokens(self) -> Path:
        return self.config / "tokens.json"

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def fleet_credentials(self) -> Path:
        """Who this node is in its fleet."""
        return self.config / "fleet.json"

    @property
    def fleet_audit(self) -> Path:
        """How much of the audit has reached the fleet."""
        return self.state / f"{self.server}.fleet-audit"

    @property
    def fleet(self) -> Path:
        """A NATS server that `wsh fleet up` made here: its keys, configuration and streams."""
        return self.state / "fleet"

    @property
    def policy_file(self) -> Path:
        return self.config / "policy.toml"

    @property
    def audit_log(self) -> Path:
        return self.state / "audit.jsonl"

    @property
    def index(self) -> Path:
        return self.state / "index"

    @property
    def desktop_info(self) -> Path:
        """Port and token of the desktop window's bridge."""
        return self.runtime / "interactive-terminal.json"


def find_places(environ: Mapping[str, str] | None = None, server: str | None = None) -> Places:
    """The folders that the XDG variables (or their defaults) give. `WSH_SERVER` names the server."""
    env = os.environ if environ is None else environ
    name = server or server_name(env)
    return Places(
        runtime=Path(runtime_folder(env, name)),
        state=Path(state_folder(env)),
        config=Path(config_folder(env)),
        server=name,
    )


def read_boot_id() -> str:
    """Which start of the machine this is; empty where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
