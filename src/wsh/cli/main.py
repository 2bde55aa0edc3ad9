"""`wsh`: finds the command that is meant, reads its words and runs it.

Imports nothing of weight: every command pays for what stands here. A command is a line in `COMMANDS` and a file of its own, loaded when
it is used.
"""

from __future__ import annotations

import os
import sys

from wsh.wire.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wsh.cli.declare import CliCommand

# The summaries stand here too, so that the list of commands needs no imports.
COMMANDS: dict[str, dict[str, str]] = {
    "Sessions": {
        "new": "Create a session.",
        "attach": "Show a session in this terminal and type into it.",
        "list": "List sessions.",
        "rename": "Give a session another name.",
        "tag": "Add and remove tags.",
        "resize": "Change a session's size.",
        "detach": "Send every viewer of a session away.",
        "kill": "End a session with all its processes.",
    },
    "Working in a session": {
        "run": "Run a command in a session and wait for its end.",
        "send": "Type text into a session.",
        "keys": "Press keys by name.",
        "screen": "Show a session's screen.",
        "scrollback": "Show a session's last lines.",
        "wait": "Wait until a session is quiet, prints a text, or ends.",
        "shell-integration": "Print what to source in a shell inside of a session's shell.",
    },
    "Recording and searching": {
        "record": "Run a program here and write a recording of it.",
        "play": "Play a recording in this terminal.",
        "export": "Write what a session printed to a file.",
        "search": "Search code, prose and transcripts.",
        "index": "Build and look after a workspace's index.",
    },
    "Agents and what they may do": {
        "mcp": "Speak MCP on stdin and stdout; install into MCP clients.",
        "inbox": "Show what waits for you and what has ended.",
        "wake": "Type a line into a session when a command of another ends.",
        "notify": "Show, test and edit what you are told of, and how.",
        "approvals": "Answer agents' requests without a window.",
        "hook": "Answer permission hooks of Claude Code and Codex.",
        "policy": "Show, explain and change what may run.",
        "token": "Make a token for yourself or for an agent.",
        "desktop": "Open the window where requests are approved.",
    },
    "The server": {
        "server": "Run the server in the foreground.",
        "service": "Run the server as a systemd user unit.",
        "host": "Reach sessions on other machines by ssh.",
        "fleet": "Join many machines on one NATS server.",
        "relay": "Connect stdin and stdout with the server, for `wsh host` on another machine.",
        "status": "Say whether a server runs, and how it is.",
        "open": "Open the page in your browser.",
        "link": "Print a link that signs a browser in, once.",
        "stop": "Stop the server and its sessions.",
        "config": "Show the effective settings and where they come from.",
        "doctor": "Look for what is wrong with this installation.",
        "uninstall": "List and remove what wsh wrote for this user.",
        "completion": "Print the completion script for a shell.",
    },
}
NAMES = [name for group in COMMANDS.values() for name in group]


def load_command(name: str) -> CliCommand:
    """The declaration in the file of that name: its function is called as the file, or with a `_` behind it."""
    name = name.replace("-", "_")
    module = __import__(f"wsh.cli.{name}", fromlist=[name])
    command: CliCommand = getattr(module, f"{name}_", None) or getattr(module, name)
    return command


def main() -> None:
    """Run the command line; failures become one line on stderr and a status scripts can use."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_closed_streams()
    if "_WSH_COMPLETE" in os.environ:
        from wsh.cli.manual import complete

        sys.exit(complete())
    try:
        status = _run(sys.argv[1:])
    except Exception as problem:
        if isinstance(problem, BrokenPipeError) and _is_reader_gone():
            _leave(1)
        from wsh.cli.output import report

        status = report(problem)
        if sys.argv[1:2] == ["hook"] and status == 2:
            status = 1  # a host takes 2 for a refusal
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        status = end.code
    except KeyboardInterrupt:  # at a question, or while standard input is read
        status = 130
    _leave(status)


def _open_closed_streams() -> None:
    """Let a stream that the caller closed, as with `2>&-`, be the null device, so that no socket takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
            stream = open(number, "r" if number == 0 else "w", closefd=False)  # noqa: SIM115 - it stays for the whole run
            setattr(sys, name, stream)


def _is_reader_gone() -> bool:
    """Whether nobody reads what we print any more, such as `head`. Then a program ends without a word."""
    import select

    poll = select.poll()
    poll.register(1, 0)
    if not poll.poll(0):
        return False
    # What is still in the buffer would fail again when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return True


def _leave(status: int) -> None:
    """End this process: at once where nothing is loaded that has something to do at an end, which saves a short command a tenth."""
    if "threading" in sys.modules or "atexit" in sys.modules:
        sys.exit(status)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError) as problem:
        if isinstance(problem, BrokenPipeError) and _is_reader_gone():
            os._exit(status or 1)
        sys.exit(status)
    os._exit(status)


def _run(words: list[str]) -> int:
    if not words:
        from wsh.cli.start import start

        return start()
    name = words[0]
    if name == "--version":
        print(f"wsh, version {VERSION}")
        return 0
    if name in ("-h", "--help", "help") and len(words) == 1:
        _print_overview()
        return 0
    from wsh.cli.declare import HelpWanted, WrongUse, near

    if name not in NAMES:
        kind = "option" if name.startswith("-") else "command"
        raise WrongUse(f"There is no {kind} {name!r}.{near(name, NAMES)} `wsh --help` lists what there is.")
    try:
        command, values = load_command(name).parse(words[1:])
    except HelpWanted as wanted:
        from wsh.cli.manual import show_help

        show_help(wanted.command)
        return 0
    done = command.run(**values)
    return done if isinstance(done, int) else 0


def _print_overview() -> None:
    from wsh.cli.output import style

    print("Usage: wsh [COMMAND] [ARGS]...\n\n  One terminal server that AI agents and people share.\n")
    print("  Without a command: a new session in this directory, shown in this terminal. Ctrl+\\ twice detaches.")
    for title, commands in COMMANDS.items():
        print("\n" + style(f"{title}:", "1"))
        for name, summary in commands.items():
            print(f"  {style(f'{name:<17}', '36')} {summary}")
    print(
        "\nOptions:\n  --version   Print the version.\n  -h, --help  Print this, or the help of a command: wsh run --help"
    )


if __name__ == "__main__":
    main()
