"""Nine guides for agents that use terminals, served as MCP prompts. Standard library only.

The core guide is about MCP, and docs/core-http.md is its sibling for HTTP. The others speak of the loop, whatever the protocol: their
examples have the operations' own names, and each ends with a table of how the doors spell those that it uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Guide:
    name: str
    title: str
    description: str
    file: str


GUIDES: tuple[Guide, ...] = (
    Guide(
        "wsh:core",
        "The loop: send, wait, read, decide",
        "Start here. Sessions, the send/wait/read/decide loop, which wait to use when, and what to do when stuck.",
        "core-mcp.md",
    ),
    Guide(
        "wsh:drive-process",
        "Run commands and answer prompts",
        "Running command-line programs: exit status, long builds, confirmation prompts, passwords, interrupting.",
        "drive-process.md",
    ),
    Guide(
        "wsh:tui",
        "Operate full-screen programs",
        "Operating vim, less, htop, menus and other full-screen programs by keys and screen.",
        "tui.md",
    ),
    Guide(
        "wsh:multi-session",
        "Several sessions at once",
        "Running work in parallel sessions: naming, tagging, waiting for any of them, collecting, cleaning up.",
        "multi-session.md",
    ),
    Guide(
        "wsh:agent-orchestration",
        "Drive other agents",
        "Starting other AI agents in sessions, giving them work, reading their state, answering or escalating.",
        "agent-orchestration.md",
    ),
    Guide(
        "wsh:monitor",
        "Watch without touching",
        "Watching sessions that a person or another agent drives, and speaking up only when it helps.",
        "monitor.md",
    ),
    Guide(
        "wsh:visual-feedback",
        "Overlays and panels",
        "Showing people status beside or over a terminal with overlays and panels, without disturbing the program.",
        "visual-feedback.md",
    ),
    Guide(
        "wsh:input-capture",
        "Ask with the keyboard",
        "Capturing a person's keys for a moment to ask a question or offer a choice, and giving them back.",
        "input-capture.md",
    ),
    Guide(
        "wsh:generative-ui",
        "Build small interfaces",
        "Combining panels, overlays, focus and captured keys into menus, forms, pickers and dashboards.",
        "generative-ui.md",
    ),
)


@dataclass(frozen=True)
class Spelling:
    """How each door says one operation. HTTP paths are below `/sessions/NAME` where they begin with an ellipsis."""

    name: str
    websocket: str
    http: str
    command: str

    @property
    def mcp(self) -> str:
        return f"wsh_{self.name}"


SPELLINGS: tuple[Spelling, ...] = (
    Spelling("create_session", "`create_session`", "`POST /sessions`", "`wsh new`"),
    Spelling("list_sessions", "`list_sessions`", "`GET /sessions`", "`wsh list`"),
    Spelling(
        "manage_session",
        "`kill_session`, `rename_session`, `detach_session`",
        "`DELETE …`, `PATCH …`, `POST …/detach`",
        "`wsh kill`, `wsh rename`, `wsh detach`",
    ),
    Spelling("run_command", "`run_command`", "`POST …/run`", "`wsh run`"),
    Spelling("send_input", "`send_input` (`data`)", "`POST …/input` (raw bytes), `POST …/keys`", "`wsh send`"),
    Spelling("await_quiesce", "`await_quiesce`", "`GET …/idle`", "`wsh wait`"),
    Spelling("get_screen", "`get_screen`", "`GET …/screen`", "`wsh screen`"),
    Spelling("get_scrollback", "`get_scrollback`", "`GET …/scrollback`", "`wsh scrollback`"),
    Spelling("overlay", "`create_overlay`, `patch_overlay`, `list_overlays`", "`POST`, `PATCH`, `GET …/overlay`", ""),
    Spelling("remove_overlay", "`delete_overlay`, `clear_overlays`", "`DELETE …/overlay`", ""),
    Spelling("panel", "`create_panel`, `patch_panel`, `list_panels`", "`POST`, `PATCH`, `GET …/panel`", ""),
    Spelling("remove_panel", "`delete_panel`, `clear_panels`", "`DELETE …/panel`", ""),
    Spelling(
        "input_mode",
        "`capture_input`, `release_input`, `focus`; keys come as `input` events",
        "`POST …/input/capture`, `…/release`, `…/focus`",
        "",
    ),
    Spelling(
        "screen_mode", "`enter_alt_screen`, `exit_alt_screen`", "`POST …/screen_mode/enter_alt`, `…/exit_alt`", ""
    ),
)
CORE = GUIDES[0]


def read_guide(guide: Guide) -> str:
    text = resources.files(__package__).joinpath(guide.file).read_text(encoding="utf-8")
    return text if guide == CORE else f"{text.rstrip()}\n\n{make_table(text)}\n"


def make_table(text: str) -> str:
    """The operations that a guide names, as each door spells them."""
    named = set(re.findall(r"(?<![\w-])([a-z]+(?:_[a-z]+)?)(?= \{)|`([a-z]+_[a-z]+)`", text))
    words = {word for pair in named for word in pair if word}
    lines = [
        "## How to say it",
        "",
        "| here | MCP tool | WebSocket method | HTTP | command line |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{entry.name}` | `{entry.mcp}` | {entry.websocket} | {entry.http} | {entry.command} |"
        for entry in SPELLINGS
        if entry.name in words
    ]
    return "\n".join(lines)
