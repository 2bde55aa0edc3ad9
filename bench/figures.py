"""The figures in README.md, taken from the table of docs/benchmarks.md, so that none of them is typed by hand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- figures: made by python -m bench --record from docs/benchmarks.md -->\n", "<!-- end of figures -->"

CLAIMS = (
    ("command truth", 'run_command("true"), p50', "tmux", "Run `true` and know that it has ended"),
    ("command truth", "10000 random commands", "", "Of 10,000 random commands, exit status or output wrong"),
    ("tokens", "a day, lean tools", "published", "Tokens that an agent reads in a recorded day, lean tools"),
    ("tokens", "the calls of a day", "tmux", "Tokens of the calls of that day"),
    ("tokens", "the calls of a day", "a plain bash tool", "The same against a tool that keeps no terminal"),
    ("throughput", "coloured text", "tmux", "Read coloured output"),
    ("start", "spawn to first prompt", "tmux", "From the command line to a prompt"),
    ("viewer", "echo of a key, p50", "tmux", "Echo of a key in an attached terminal"),
)
"""Group, how the title and the peer begin, and what README says of it."""


def render_figures(benchmarks: str) -> str:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in benchmarks.splitlines() if line[:2] == "| "
    ]
    lines = ["| | wsh | beside it |", "|---|---|---|"]
    for group, title, peer, says in CLAIMS:
        row = next(row for row in rows if row[0] == group and row[1].startswith(title) and row[3].startswith(peer))
        lines.append(f"| {says} | {_plain(row[2])} | {_plain(row[3])} |")
    return "\n".join(lines)


def _plain(cell: str) -> str:
    """A cell with its numbers written out: 2.72e+03 is 2720."""
    return " ".join(f"{float(word):,.0f}" if "e+" in word else word for word in cell.split()).removesuffix(" of them")


def fill_readme(readme: str, benchmarks: str) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, "README.md has no place for the figures"
    return f"{before}{begin}{render_figures(benchmarks)}\n{end}{after}"
