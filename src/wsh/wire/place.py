"""Where things live: runtime, state and configuration folders.

Nothing is created on import; `ensure_private` makes a folder that only its owner can enter and refuses one that
belongs to somebody else.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.runtime_path import runtime_folder, server_name


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
    def sessions(self) -> Path:
        """One folder per session: journal segments, sidecar, snapshots."""
        return self.state / "sessions" / self.server

    @property
    def tokens(self) -> Path:
        return self.config / "tokens.json"

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

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
    home = Path(env.get("HOME") or Path.home())
    name = server or server_name(env)
    return Places(
        runtime=Path(runtime_folder(env, name)),
        state=Path(env.get("XDG_STATE_HOME") or home / ".local" / "state") / "wsh",
        config=Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "wsh",
        server=name,
    )


def read_boot_id() -> str:
    """Which start of the machine this is; empty where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class FolderUnusable(PermissionError):
    """A folder of ours cannot be had; the text says which and why."""


def ensure_private(folder: Path) -> Path:
    """Make `folder` with mode 0700, or check that it is ours and make it so. Raises FolderUnusable otherwise."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(0o700, exist_ok=True)
        info = folder.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise FileExistsError
        if stat.S_IMODE(info.st_mode) != 0o700:
            folder.chmod(0o700)
    except FileExistsError as problem:
        what = problem.filename or folder
        raise FolderUnusable(f"{what} is not a folder of this user; remove it and try again") from None
    except OSError as problem:
        refused = FolderUnusable(f"the folder {folder} cannot be used: {problem.strerror}")
        refused.errno = problem.errno
        raise refused from None
    return folder


def write_private(path: Path, data: bytes) -> None:
    """Replace `path` atomically with a file of mode 0600."""
    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        raise
