"""What a new session is made of, checked before anything exists."""

from __future__ import annotations

import os
import pwd
import secrets
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsh.sandbox.profile import Profile
from wsh.sandbox.section import SandboxPolicy
from wsh.session.event import SERVER, Actor
from wsh.session.shell.literal_word import split_literal
from wsh.session.shell.login_path import LoginPath
from wsh.wire.error import CwdNotFound, InvalidEnvironment, InvalidRequest, ProgramNotFound
from wsh.wire.name import check_session_name, check_size, check_tag
from wsh.wire.setting import Settings

# Words that a shell knows and PATH does not: a command that starts with one needs a shell to run at all.
_SHELL_WORDS = frozenset(
    ". : alias bg break case cd command continue eval exec exit export fc fg for getopts hash if jobs local read "
    "readonly return set shift source times trap type ulimit umask unalias unset until wait while { (".split()
)

_AGENT_DEFAULTS = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
}


@dataclass(frozen=True)
class SessionSpec:
    """A request for a session. Everything is optional; `None` means the default of the settings."""

    name: str | None = None
    sid: str | None = None
    """By `make_sid`, where somebody has to know it before the session exists."""
    command: str | None = None
    argv: Sequence[str] | None = None
    executable: str | None = None
    """The file to run where that was decided already; otherwise it is looked up."""
    rows: int | None = None
    cols: int | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    base_env: Mapping[str, str] | None = None
    """The environment to start from; None means the server's own."""
    tags: Sequence[str] = ()
    actor: Actor = SERVER
    keep: bool = False
    """A person opened it or asked to keep it: it holds an ephemeral server."""
    integration: bool | None = None
    agent_defaults: bool = False
    sandbox: Profile | None = None
    """What it is held by; None for an open session."""
    sandbox_policy: SandboxPolicy = field(default_factory=SandboxPolicy)


@dataclass(frozen=True)
class SessionLaunch:
    """A checked spec: what will really be started."""

    command: str
    argv: tuple[str, ...]
    executable: str
    cwd: str
    env: dict[str, str]
    rows: int
    cols: int
    tags: tuple[str, ...]
    agent_defaults: dict[str, str] = field(default_factory=dict)
    """What was added to the environment for an agent's sake."""


async def add_login_path(spec: SessionSpec, settings: Settings, login_path: LoginPath) -> SessionSpec:
    """For an agent's session, unless it names a PATH itself: the spec with the user's login PATH."""
    if not spec.agent_defaults or "PATH" in spec.env:
        return spec
    base = make_environment(replace(spec, env={}))
    path = await login_path.extend(default_shell(settings, base), base)
    return spec if path is None else replace(spec, base_env={**base, "PATH": path})


def make_sid() -> str:
    """Ids sort by the time of their making."""
    return f"{time.time_ns() // 1_000_000:013x}-{secrets.token_hex(4)}"


def prepare(spec: SessionSpec, settings: Settings) -> SessionLaunch:
    """Check `spec` whole and resolve program, folder and environment. Raises an InvalidRequest; creates nothing."""
    if spec.name is not None:
        check_session_name(spec.name)
    rows, cols = check_size(
        settings.get_int("session.rows") if spec.rows is None else spec.rows,
        settings.get_int("session.cols") if spec.cols is None else spec.cols,
    )
    tags = tuple(sorted({check_tag(tag) for tag in spec.tags}))
    env = make_environment(spec)
    cwd = check_cwd(spec.cwd)
    argv, command = _argv(spec, settings, env)
    defaults = {key: value for key, value in _AGENT_DEFAULTS.items() if env.get(key) == value}
    return SessionLaunch(
        command,
        argv,
        spec.executable or find_program(argv[0], env, cwd),
        cwd,
        env,
        rows,
        cols,
        tags,
        defaults if spec.agent_defaults else {},
    )


def make_environment(spec: SessionSpec) -> dict[str, str]:
    base = os.environ if spec.base_env is None else spec.base_env
    env = {key: value for key, value in base.items() if not _is_ours(key)}
    env["TERM"] = "xterm-256color"
    env["COLORTERM"] = "truecolor"
    for key in ("LINES", "COLUMNS", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "STY"):
        env.pop(key, None)
    if not any(env.get(k, "").lower().replace("-", "").endswith("utf8") for k in ("LC_ALL", "LC_CTYPE", "LANG")):
        env.pop("LC_ALL", None)
        env["LC_CTYPE"] = "C.UTF-8"
    if spec.agent_defaults:
        env.update(_AGENT_DEFAULTS)
    for key, value in spec.env.items():
        usable = isinstance(key, str) and key and "=" not in key and "\0" not in key
        if not usable or not isinstance(value, str) or "\0" in value:
            raise InvalidEnvironment(key)
        env[key] = value
    return env


def _is_ours(key: str) -> bool:
    """Variables that steer wsh itself stay out of children: a token there would hand them the server."""
    return key.startswith("WSH_") or key == "PM_INTERACTIVE_TERMINAL_TOKEN"


def check_cwd(cwd: str | None) -> str:
    if cwd is None:
        cwd = os.getcwd()
    if not isinstance(cwd, str) or not cwd or "\0" in cwd:
        raise CwdNotFound(str(cwd))
    path = os.path.abspath(os.path.expanduser(cwd))
    if not os.path.isdir(path) or not os.access(path, os.X_OK):
        raise CwdNotFound(cwd)
    return path


def default_shell(settings: Settings, env: Mapping[str, str]) -> str:
    shell = settings.get_str("session.shell") or env.get("SHELL", "")
    if not shell:
        try:
            shell = pwd.getpwuid(os.getuid()).pw_shell
        except KeyError:
            shell = ""
    return shell if shell and (shutil.which(shell) or os.access(shell, os.X_OK)) else "/bin/sh"


def _argv(spec: SessionSpec, settings: Settings, env: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    if spec.argv is not None:
        if not spec.argv or not all(isinstance(a, str) and "\0" not in a for a in spec.argv) or not spec.argv[0]:
            raise InvalidRequest(
                "argv must be a list of texts with a program first.", hint="Give at least the program."
            )
        return tuple(spec.argv), spec.command or shlex.join(spec.argv)
    if spec.command is None:
        shell = default_shell(settings, env)
        return (shell,), shell
    command = spec.command
    if not isinstance(command, str) or "\0" in command or not command.strip():
        raise InvalidRequest("The command is empty or not text.", hint="Leave `command` out to get a shell.")
    words = split_literal(command)
    if words is None or words[0] in _SHELL_WORDS:
        return ("/bin/sh", "-c", command), command
    return tuple(words), command


def find_program(program: str, env: Mapping[str, str], cwd: str) -> str:
    """The absolute path that exec would find, or ProgramNotFound."""
    if "/" in program:
        path = os.path.join(cwd, os.path.expanduser(program))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
        raise ProgramNotFound(program)
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise ProgramNotFound(program)
    return os.path.join(cwd, found)
