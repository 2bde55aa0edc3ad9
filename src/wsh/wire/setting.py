"""Every limit and choice of wsh as a setting: one table, three sources.

A setting is a dotted key. Its value comes from the command line, else from the environment (`WSH_` and the key in
capitals with underscores), else from `config.toml`, else from the default here. `load` also says where each value
came from, which is what `wsh config` shows. Standard library only.
"""

from __future__ import annotations

import os

from wsh.wire.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing and pathlib are not imported: `wsh config` would pay for them
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | list[str]


class SettingError(ValueError):
    """A setting that is not known or has a value that cannot be used. The message says where and what to do."""


@frozen
class Setting:
    key: str
    default: Value
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def env(self) -> str:
        return "WSH_" + self.key.upper().replace(".", "_")


KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

SETTINGS: tuple[Setting, ...] = (
    # server
    Setting("server.bind", "127.0.0.1:8080", "HOST:PORT to listen on; a taken port moves on to the next free one."),
    Setting("server.base_prefix", "", "Path under which every route is also served, such as /wsh."),
    Setting("server.cors_origins", [], "Origins that browsers may call from, besides the server's own."),
    Setting("server.allowed_hosts", [], "Host header values accepted besides the bound ones."),
    Setting("server.tls_cert", "", "PEM certificate; with server.tls_key the server speaks TLS."),
    Setting("server.tls_key", "", "PEM private key."),
    Setting("server.max_sessions", 2000, "Sessions at once.", 1, 100_000),
    Setting("server.max_body_bytes", MIB, "Largest HTTP body.", KIB, GIB),
    Setting("server.max_frame_bytes", MIB, "Largest WebSocket message.", KIB, GIB),
    Setting("server.max_viewers", 256, "Viewers and WebSocket clients per session.", 1, 100_000),
    Setting("server.max_sockets", 1024, "WebSockets of one caller.", 1, 100_000),
    Setting("server.max_waits", 1024, "Waits of one caller that may be under way.", 1, 100_000),
    Setting("server.max_wait_ms", 300_000, "Longest wait that one request may ask for.", 10, 86_400_000),
    Setting("server.header_timeout_s", 10.0, "How long a request's headers may take to arrive.", 0.1, 3600),
    Setting("server.body_timeout_s", 60.0, "How long a request's body may take to arrive.", 0.1, 3600),
    Setting(
        "server.max_pending_tickets", 1024, "WebSocket tickets of one caller that may wait to be used.", 1, 1_000_000
    ),
    Setting(
        "server.failed_logins_per_minute",
        20,
        "Failed authentications per minute before they are slowed.",
        1,
        100_000,
    ),
    Setting(
        "server.ephemeral_linger_s",
        30,
        "How long sessions made only by MCP clients hold an ephemeral server.",
        0,
        86_400,
    ),
    Setting(
        "server.client_buffer_bytes",
        4 * MIB,
        "Output kept for one slow client before it is resynchronised.",
        64 * KIB,
        GIB,
    ),
    # sessions
    Setting("session.shell", "", "Program of a session that names none; empty means $SHELL."),
    Setting("session.rows", 24, "Rows of a new session.", 1, 1000),
    Setting("session.cols", 80, "Columns of a new session.", 1, 1000),
    Setting("session.scrollback_lines", 10_000, "Lines kept above the screen, per session.", 0, 10_000_000),
    Setting("session.scrollback_total_bytes", 2 * GIB, "Memory of all scrollbacks together.", 16 * MIB, 1024 * GIB),
    Setting(
        "session.ring_bytes",
        MIB,
        "Output that waits for the server, per session; then the child pauses.",
        64 * KIB,
        256 * MIB,
    ),
    Setting("session.input_bytes", 4 * MIB, "Input that waits for a child that does not read.", 4 * KIB, GIB),
    Setting("session.input_timeout_ms", 30_000, "How long input waits for a child that does not read.", 1, 3_600_000),
    Setting(
        "session.line_wait_ms",
        5000,
        "How long a run waits for a person who is typing a line, before it is refused.",
        0,
        3_600_000,
    ),
    Setting(
        "session.first_prompt_ms",
        30_000,
        "How long a run waits for the first prompt of a new shell whose startup files take long; then nothing is typed.",
        0,
        3_600_000,
    ),
    Setting(
        "session.login_path_wait_ms",
        1000,
        "How long the first session waits for the PATH of the login shell; then it starts with the PATH there is.",
        0,
        60_000,
    ),
    Setting("session.retention_s", 86_400, "How long an exited session stays readable.", 0, 31_536_000),
    Setting(
        "session.retention_bytes",
        GIB,
        "Journals of exited sessions, all together; oldest go first.",
        0,
        1024 * GIB,
    ),
    Setting("session.kill_grace_ms", 2000, "Between the polite signals and SIGKILL.", 0, 600_000),
    Setting(
        "session.engine_timeout_s",
        10.0,
        "Processor time after which a visit to the terminal engine counts as its death.",
        1.0,
        3600.0,
    ),
    Setting("session.max_elements", 256, "Overlays, and panels, per session that one caller may make.", 1, 100_000),
    Setting("session.max_all_elements", 1024, "Overlays, and panels, per session.", 1, 100_000),
    Setting("session.max_spans", 4096, "Spans in one element.", 1, 1_000_000),
    Setting("session.max_text_bytes", 64 * KIB, "Text of one span.", 1, 16 * MIB),
    Setting("session.shell_integration", True, "Mark prompts and commands in bash, zsh and fish."),
    Setting("session.command_history", 1000, "Commands remembered per session.", 1, 1_000_000),
    Setting(
        "session.max_output_bytes",
        64 * KIB,
        "Command output given in a result before its middle is left out.",
        KIB,
        GIB,
    ),
    Setting("session.agent_defaults", True, "PAGER=cat and the like in shells that agents open."),
    Setting(
        "session.size_policy",
        "typed",
        "Whose size a session takes: that of the person who typed last (an agent's session only by Fit), the smallest, "
        "that of the viewer used last, or none.",
        choices=("typed", "smallest", "latest", "fixed"),
    ),
    # journal
    Setting("journal.enabled", True, "Keep what sessions print on disk."),
    Setting(
        "journal.session_bytes",
        256 * MIB,
        "Journal of one session; its oldest segment goes first.",
        MIB,
        1024 * GIB,
    ),
    Setting("journal.segment_bytes", 8 * MIB, "Size of one journal file.", 64 * KIB, GIB),
    Setting("journal.snapshot_bytes", 16 * MIB, "Output between two snapshots of a screen.", 64 * KIB, GIB),
    Setting(
        "journal.snapshot_interval_s",
        5.0,
        "Quiet sessions are snapshotted this long after they changed.",
        0.1,
        3600,
    ),
    # viewers
    Setting("viewer.max_fps", 60, "Frames per second for viewers.", 1, 240),
    Setting("viewer.scrolled_lines", 1000, "Lines that scrolled off sent ahead of a frame.", 0, 100_000),
    # wsh attach
    Setting(
        "attach.prefix", "ctrl+\\", "The key that `wsh attach` keeps to itself: ctrl+ and a letter, or one of \\ ] ^ _."
    ),
    Setting("attach.keys", [], "Other keys behind it, such as detach=x; Ctrl+\\ ? shows the commands."),
    Setting(
        "attach.mouse",
        False,
        "In `wsh attach` the wheel shows earlier lines; Shift and the mouse then select as before.",
    ),
    Setting(
        "attach.copy_keys",
        "vi",
        "Whose keys count where those of vi and emacs differ, among the earlier lines of `wsh attach`.",
        choices=("vi", "emacs"),
    ),
    # MCP
    Setting(
        "client.restart_wait_s",
        10.0,
        "How long clients of a persistent server that has gone wait for it before they start one.",
        0,
        3600,
    ),
    Setting("mcp.toolsets", ["terminal", "contract", "exec", "workspace"], "Families of tools that are offered."),
    Setting("mcp.queue_size", 256, "Calls that may be under way at once.", 64, 100_000),
    Setting(
        "mcp.idle_sessions",
        32,
        "MCP sessions over HTTP without an open stream or request; the longest silent ends first.",
        1,
        10_000,
    ),
    Setting("mcp.session_idle_s", 1800, "How long such a session may be silent.", 1, 604_800),
    Setting("mcp.progress_per_second", 4.0, "Progress notifications per call and second.", 0.1, 4),
    # policy and execution
    Setting("exec.timeout_ms", 120_000, "Default deadline of execute_command.", 1, 86_400_000),
    Setting("exec.max_output_bytes", 10 * MIB, "Output kept of one headless command, per stream.", KIB, GIB),
    Setting(
        "exec.result_bytes",
        256 * KIB,
        "Most of its output that one answer of execute_command carries, as text.",
        KIB,
        64 * MIB,
    ),
    Setting(
        "exec.kept_bytes",
        64 * MIB,
        "Output beyond such answers that is kept to be read, all together; the oldest goes first.",
        0,
        1024 * GIB,
    ),
    Setting("exec.lifetime_ms", 0, "Longest life of a contract command; 0 means no limit.", 0, 604_800_000),
    Setting("audit.max_bytes", 64 * MIB, "Audit log size before it is rotated.", 64 * KIB, 1024 * GIB),
    Setting("audit.keep", 8, "Rotated audit logs kept.", 1, 1000),
    Setting("approvals.timeout_ms", 300_000, "How long a request waits for a person.", 1000, 86_400_000),
    Setting("approvals.max_pending", 256, "Requests that may wait for a person.", 1, 100_000),
    Setting(
        "approvals.server",
        False,
        "Answer approvals at the server: at the page and by `wsh approvals`. Without a window, requests wait and run here.",
    ),
    Setting(
        "approvals.hidden_input",
        "ask",
        "What becomes of an agent's typing while the program hides what is typed: a person is asked, or it is typed.",
        choices=("ask", "allow"),
    ),
    Setting(
        "approvals.reconnect_ms",
        30_000,
        "How long a request that outlived its server waits for its agent's connection, before it is withdrawn.",
        0,
        86_400_000,
    ),
    Setting(
        "approvals.hidden_wait_ms",
        20_000,
        "How long an agent's input waits for that answer before it is told to ask again.",
        0,
        86_400_000,
    ),
    Setting(
        "hook.wait_ms",
        240_000,
        "How long a card of `wsh hook` waits before the question goes back to the host's own prompt.",
        1000,
        86_400_000,
    ),
    Setting("inbox.min_command_s", 10.0, "Commands that ended well come to the inbox if they took so long.", 0, 86_400),
    Setting("inbox.keep_s", 86_400, "How long what has ended stays in the inbox.", 1, 31_536_000),
    Setting("inbox.per_session", 5, "Commands of one session in the inbox, the newest.", 0, 1000),
    Setting("inbox.max_wakes", 100, "Lines that may wait to be typed into sessions (`wsh wake`).", 1, 10_000),
    Setting("notify.webhook", "", "Address that gets each notice as JSON: https, or http on this machine."),
    Setting("notify.webhook_http", False, "Let the webhook be plain http on other machines, too."),
    Setting("notify.timeout_s", 10.0, "How long a webhook or a push service may take to answer.", 0.1, 300),
    Setting("notify.retry_s", 2.0, "Pause before the second try; each further pause is twice as long.", 0.01, 3600),
    Setting("notify.longest_retry_s", 300.0, "Longest pause between two tries.", 0.01, 86_400),
    Setting("notify.give_up_s", 3600.0, "How long an undelivered notice is tried again.", 0, 604_800),
    Setting("notify.keep", 500, "Notices that the outbox remembers.", 10, 100_000),
    Setting(
        "notify.per_minute",
        30,
        "Notices of one session within a minute; more go to the page and nowhere else.",
        1,
        10_000,
    ),
    Setting(
        "notify.present_s",
        20.0,
        "So long after typing a person is taken to look at a session: what happens there is told later, or not at all.",
        0,
        3600,
    ),
    Setting(
        "notify.push_contact", "mailto:wsh@localhost.localdomain", "How push services may reach you: mailto: or https:."
    ),
    Setting("notify.push_loopback", False, "Take push endpoints on this machine. For tests."),
    Setting("notify.max_subscriptions", 20, "Browsers that may take push.", 1, 1000),
    # other machines
    Setting("hosts.ssh", ["ssh"], "The words that ssh is called with, such as ssh, -F and a file of its own."),
    Setting("hosts.max_hosts", 64, "Other machines that may be added.", 0, 10_000),
    Setting("hosts.connect_timeout_s", 20.0, "How long one attempt to connect to a host may take.", 1, 3600),
    Setting("hosts.longest_pause_s", 60.0, "Longest pause between two attempts to reach a host.", 0.1, 86_400),
    Setting(
        "hosts.call_timeout_s", 30.0, "How long a host may take to answer what does not wait by itself.", 0.1, 3600
    ),
    Setting(
        "hosts.silent_s", 15.0, "A connection on which nothing came back for so long is half open: it is cut.", 1, 3600
    ),
    Setting("hosts.list_timeout_ms", 2000, "How long a list waits for the part of a host.", 10, 600_000),
    Setting(
        "hosts.resume_s",
        120.0,
        "How long a call goes on after its connection was cut, its answer is kept, and its caller waits for the next connection.",
        1,
        86_400,
    ),
    Setting("hosts.max_calls", 4096, "Calls of other servers that may be under way or kept.", 1, 1_000_000),
    # the fleet
    Setting("fleet.url", "", "Of the NATS server of a fleet to join, such as nats://10.0.0.1:4222; empty for none."),
    Setting("fleet.credentials", "", "File that `wsh fleet invite` made; empty means fleet.json beside config.toml."),
    Setting("fleet.name", "", "Name of this node; empty means that of the credentials, and another is refused."),
    Setting("fleet.tags", [], "Tags of this node beside those of its credentials, such as gpu."),
    Setting("fleet.lease_s", 2.0, "A node that has not beaten for so long is out of reach.", 0.5, 600),
    Setting("fleet.beat_s", 0.7, "Between two beats of this node; less than a third of the lease is best.", 0.1, 60),
    Setting("fleet.linger_s", 60.0, "How long the list of the fleet is followed after somebody looked.", 0, 86_400),
    Setting("fleet.max_skew_s", 30.0, "Messages of other nodes that are older, or newer, are refused.", 1, 3600),
    Setting("fleet.max_call_bytes", 16 * MIB, "Largest call or answer between nodes.", 64 * KIB, GIB),
    Setting("fleet.max_streams", 256, "Viewers of other nodes that this node serves at once.", 1, 100_000),
    Setting("fleet.stream_bytes", 256 * KIB, "Output on its way to one viewer of another node.", 16 * KIB, 16 * MIB),
    Setting("fleet.gone_s", 10.0, "How long a call under way waits for its node, or for NATS, to come back.", 0, 3600),
    Setting(
        "fleet.events_keep_s", 604_800.0, "How long the fleet's stream keeps events; read by `wsh fleet up`.", 60, 1e9
    ),
    Setting(
        "fleet.audit_bytes",
        GIB,
        "Most that the fleet's stream of audit entries holds; read by `wsh fleet up`.",
        MIB,
        1024 * GIB,
    ),
    Setting(
        "fleet.max_events", 10_000, "Events kept while NATS is away; audit entries on their way at once.", 1, 10_000_000
    ),
    Setting("contract.max_active", 256, "Commands and terminals of the contract at once.", 1, 100_000),
    Setting("bridge.port", 45_459, "TCP port of the desktop bridge.", 0, 65_535),
    Setting("bridge.max_frame_bytes", 4 * MIB, "Largest bridge frame.", KIB, GIB),
    Setting("bridge.binaries", [], "Absolute paths of desktop programs that a request may choose."),
    Setting("bridge.heartbeat_s", 10.0, "Between heartbeats on the bridge.", 0.05, 3600),
    # the window
    Setting("desktop.theme", "system", "Looks of the window.", choices=("system", "dark", "light")),
    Setting("desktop.notify", True, "Notify when something is asked while the window is not looked at."),
    Setting("desktop.come_forward", False, "Raise the window when something is asked."),
    Setting("desktop.keep_in_tray", True, "Closing the window hides it, where the desktop has a tray."),
    Setting("desktop.renderer", "software", "What draws the window.", choices=("software", "gpu")),
    # workspace
    Setting("index.max_file_bytes", 2 * MIB, "Files larger than this are not indexed.", KIB, GIB),
    Setting("index.timeout_ms", 600_000, "Default deadline of index_build.", 1000, 86_400_000),
    Setting("index.search_timeout_ms", 10_000, "Default deadline of search.", 10, 3_600_000),
    Setting("index.max_archive_bytes", 4 * GIB, "Largest index that an import may unpack.", MIB, 1024 * GIB),
    Setting("index.watch", True, "Keep indexes fresh in the background."),
    Setting(
        "index.close_ms",
        5000,
        "How long the end of the server, or of a session that is killed, waits for transcripts of what was printed last.",
        0,
        3_600_000,
    ),
    Setting("index.retention_days", 30, "How long transcripts stay searchable.", 1, 36_500),
)

BY_KEY: dict[str, Setting] = {s.key: s for s in SETTINGS}
RENAMED = {"approvals.web": "approvals.server"}
"""Keys of earlier versions, and what they are called now; a file that has both means the new one."""


class Settings:
    """Effective values with their origins. Read with `settings["session.rows"]` or the typed getters."""

    def __init__(self, values: Mapping[str, Value] | None = None, origins: Mapping[str, str] | None = None) -> None:
        self.values = values if values is not None else {s.key: s.default for s in SETTINGS}
        self.origins = origins if origins is not None else {s.key: "default" for s in SETTINGS}

    def __getitem__(self, key: str) -> Value:
        return self.values[key]

    def get_int(self, key: str) -> int:
        value = self.values[key]
        assert isinstance(value, int)
        return value

    def get_float(self, key: str) -> float:
        value = self.values[key]
        assert isinstance(value, int | float)
        return value

    def get_str(self, key: str) -> str:
        value = self.values[key]
        assert isinstance(value, str)
        return value

    def get_bool(self, key: str) -> bool:
        value = self.values[key]
        assert isinstance(value, bool)
        return value

    def get_list(self, key: str) -> list[str]:
        value = self.values[key]
        assert isinstance(value, list)
        return value


def parse(setting: Setting, raw: object, origin: str) -> Value:
    """`raw` (typed from TOML, or text from elsewhere) as a value of `setting`; SettingError says what is wrong."""
    value: Any = raw
    kind = type(setting.default)
    try:
        if isinstance(raw, str) and kind is not str:
            value = _from_text(kind, raw)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        ok = type(value) is kind and (not isinstance(value, list) or all(isinstance(v, str) for v in value))
    except ValueError:
        ok = False
    if not ok:
        raise SettingError(f"{origin}: {setting.key} must be {_kind_name(kind)}, not {raw!r}")
    if (
        setting.minimum is not None
        and value < setting.minimum
        or setting.maximum is not None
        and value > setting.maximum
    ):
        raise SettingError(
            f"{origin}: {setting.key} must lie between {setting.minimum} and {setting.maximum}, not {raw!r}"
        )
    if setting.choices and value not in setting.choices:
        raise SettingError(f"{origin}: {setting.key} must be one of {', '.join(setting.choices)}, not {raw!r}")
    result: Value = value
    return result


def _from_text(kind: type, text: str) -> Value:
    if kind is bool:
        lowered = text.strip().lower()
        if lowered in {"1", "true", "yes", "on"}:
            return True
        if lowered in {"0", "false", "no", "off"}:
            return False
        raise ValueError(text)
    if kind is int:
        return int(text)
    if kind is float:
        return float(text)
    return [part.strip() for part in text.split(",") if part.strip()]


def _kind_name(kind: type) -> str:
    return {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list of texts",
    }[kind]


def read_file(path: str | Path) -> dict[str, Value]:
    """The settings in a TOML file, by dotted key. A missing file has none; an unknown key is an error."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as problem:
        raise SettingError(f"{path}: {problem}") from None
    except OSError as problem:
        raise SettingError(f"{path} cannot be read: {problem.strerror}") from None
    import tomllib  # only where there is a file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SettingError(f"{path}: {problem}") from None
    found: dict[str, Value] = {}
    for group, entries in document.items():
        if not isinstance(entries, dict):
            raise SettingError(f"{path}: {group} must be a table such as [server]")
        for name, raw in entries.items():
            key = f"{group}.{name}"
            if key in RENAMED:
                key = RENAMED[key]
                if key.partition(".")[2] in entries:
                    continue
            if key not in BY_KEY:
                raise SettingError(f"{path}: there is no setting {key}; `wsh config` lists them all")
            found[key] = parse(BY_KEY[key], raw, str(path))
    return found


def load(
    config_file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Effective settings from all sources. Raises SettingError for anything that cannot be used."""
    env = os.environ if environ is None else environ
    values: dict[str, Value] = {s.key: s.default for s in SETTINGS}
    origins = {s.key: "default" for s in SETTINGS}
    if config_file is not None:
        for key, value in read_file(config_file).items():
            values[key], origins[key] = value, str(config_file)
    for old, new in RENAMED.items():
        former = Setting(old, BY_KEY[new].default, "").env
        if former in env and BY_KEY[new].env not in env:
            values[new] = parse(BY_KEY[new], env[former], f"environment variable {former}")
            origins[new] = f"environment ({former})"
    for setting in SETTINGS:
        if setting.env in env:
            values[setting.key] = parse(setting, env[setting.env], f"environment variable {setting.env}")
            origins[setting.key] = f"environment ({setting.env})"
    for key, raw in (flags or {}).items():
        if raw is None:
            continue
        values[key] = parse(BY_KEY[key], raw, "command line")
        origins[key] = "command line"
    return Settings(values, origins)
