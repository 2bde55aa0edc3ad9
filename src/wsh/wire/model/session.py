"""Sessions and the server on the wire: what is asked and what is answered (pydantic)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wsh.wire.model.base import Model, Shown

Size: TypeAlias = Annotated[int, Field(ge=1, le=1000)]
Name: TypeAlias = str
StateWord: TypeAlias = Literal["running", "idle", "asks", "hidden", "open", "exited"]
Tags: TypeAlias = Annotated[list[str], Field(max_length=64)]


class SandboxInfo(Shown):
    """What holds a session in."""

    profile: str
    backend: Literal["bubblewrap", "landlock"]
    weaker: list[str] = Field(default_factory=list)
    """What the profile promises and the backend does not hold, because the user accepted that."""


class SessionInfo(Shown):
    name: str
    """Its address: `host/name` for one on another machine."""
    server: str
    """The name that the machine which it runs on has for itself."""
    pid: int | None
    command: str
    rows: int
    cols: int
    clients: int
    """Connections that watch it."""
    tags: list[str]
    last_activity_ms: int
    """Milliseconds since it last printed something."""
    running: bool
    state: StateWord
    """What it does, in one word."""
    exit_code: int | None
    title: str
    cwd: str
    journal: Literal["ok", "full", "off"]
    """Whether what it prints is kept on disk: `full` while the disk refuses it, `off` where the setting says so."""
    notice: str | None = None
    """What its screen lacks, and why; null if it lacks nothing."""
    sandbox: SandboxInfo | None = None
    """Null for an open session."""
    host: str | None = None
    """The host that it is on; null for this server."""
    unreachable_since: float | None = None
    """Since when its host cannot be reached, in seconds since the epoch: the rest is as it was then. Null if it can."""


class SessionCreate(Model):
    name: Name | None = None
    command: Annotated[str, Field(max_length=131_072)] | None = None
    rows: Size | None = None
    cols: Size | None = None
    cwd: Annotated[str, Field(max_length=4096)] | None = None
    env: Annotated[dict[str, str], Field(max_length=4096)] | None = None
    tags: Tags | None = None
    sandbox: Annotated[str, Field(max_length=64)] | None = None
    """A sandbox profile by name; `off` for none. Agents may ask for a narrower one than they get, never for a wider one."""


class SessionPatch(Model):
    """Changes that happen all together or not at all."""

    name: Name | None = None
    add_tags: Tags | None = None
    remove_tags: Tags | None = None


class Resize(Model):
    rows: Size
    cols: Size


class Keys(Model):
    """Keys by name: "enter", "ctrl+c", "shift+tab", "f5", or a single character."""

    keys: Annotated[list[Annotated[str, Field(max_length=64)]], Field(min_length=1, max_length=1000)]


class Health(Shown):
    status: str = "ok"


class ServerInfo(Shown):
    hostname: str
    version: str
    server_id: str
    warnings: list[str] = Field(default_factory=list)
    """What a person should look at, such as a policy file that cannot be used."""


class Persist(Model):
    persistent: bool


class Ticket(Shown):
    ticket: str


class PageSecret(Shown):
    secret: str
    """The page keeps it in its own storage and sends it as `Wsh-Page` with every call."""


class Link(Shown):
    url: str
    """Works once, for ten minutes; opens the page and leaves a cookie."""
