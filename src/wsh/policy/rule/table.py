"""The decision table: one list of examples that the documentation shows and the tests decide.

Each row was chosen for the rule it stands for. `docs/policy.md` holds the rendered table; a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from wsh.policy.engine import decide
from wsh.policy.policy import Policy, allow_rules
from wsh.policy.request import Mode, PolicyRequest

ALLOW = ("ls", "git status", "find", "make test", "npm *")
POLICY = Policy(
    rules=allow_rules(ALLOW, Mode.HEADLESS) + allow_rules(("ls",), Mode.INTERACTIVE), cwd_roots=("/srv/work",)
)


@dataclass(frozen=True)
class DecisionRow:
    command: str
    why: str
    cwd: str = "/srv/work"
    env: tuple[tuple[str, str], ...] = ()


ROWS: tuple[DecisionRow, ...] = (
    DecisionRow("ls -la", "an allowed program with arguments its model knows"),
    DecisionRow("ls 'a b; rm x'", "quotes make a literal word"),
    DecisionRow("/bin/ls", "a path is another name"),
    DecisionRow("find . -name '*.py'", "tests only"),
    DecisionRow("find . -exec id ';'", "not in the model of find"),
    DecisionRow("find . -delete", "removes"),
    DecisionRow("git status -s", "a subcommand with known options"),
    DecisionRow("git -c core.fsmonitor=id status", "options before the subcommand"),
    DecisionRow("make test", "no model: exactly these words"),
    DecisionRow("make test -j2", "no model: no further arguments"),
    DecisionRow("npm run build", "any arguments by ' *'"),
    DecisionRow("npm publish", "destructive whatever the rule permits"),
    DecisionRow("rm -rf build", "destructive"),
    DecisionRow("rm -rf /", "irrecoverable"),
    DecisionRow("sudo env A=1 sh -c 'rm -rf ~'", "wrappers are looked through"),
    DecisionRow("echo 'rm -rf /'", "a mention is no danger; no rule allows echo here"),
    DecisionRow("ls && ls", "several segments"),
    DecisionRow("ls; git status", "several segments, one without an interactive rule"),
    DecisionRow("ls > out.txt", "overwrites"),
    DecisionRow("ls >> out.txt", "a redirection"),
    DecisionRow("ls $(pwd)", "a substitution"),
    DecisionRow("ls *.py", "a glob"),
    DecisionRow("A=1 ls", "an assignment"),
    DecisionRow("ls '", "not a command"),
    DecisionRow("ls \u202e", "a character that does not show"),
    DecisionRow("ls", "outside the roots", cwd="/etc"),
    DecisionRow("ls", "a variable that callers may not set", env=(("LD_PRELOAD", "x"),)),
    DecisionRow(":(){ :|:& };:", "a fork bomb"),
)


def render() -> str:
    """The table as Markdown."""
    lines = ["| command | headless | interactive | risk | why |", "|---|---|---|---|---|"]
    for row in ROWS:
        shown = []
        for mode in (Mode.HEADLESS, Mode.INTERACTIVE):
            verdict = decide(PolicyRequest(command=row.command, cwd=row.cwd, env=dict(row.env), mode=mode), POLICY)
            shown.append(f"{verdict.effect.value} ({verdict.reason.value})")
        text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in row.command)
        text = text.replace("|", "\\|")
        place = f" in {row.cwd}" if row.cwd != "/srv/work" else ""
        extra = "".join(f" with {name}" for name, _ in row.env)
        lines.append(f"| `{text}`{place}{extra} | {shown[0]} | {shown[1]} | {verdict.risk.value} | {row.why} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
