"""Nine guides for agents that use terminals, served as MCP prompts. Standard library only."""

from __future__ import annotations

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


def read_guide(guide: Guide) -> str:
    return resources.files(__package__).joinpath(guide.file).read_text(encoding="utf-8")
