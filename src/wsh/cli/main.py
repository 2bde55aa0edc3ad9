"""`wsh`: the group of all commands, each loaded only when it is used.

Imports click and nothing else of weight: `wsh --help` must answer at once. A command is a line in `COMMANDS` and a file of its own.
"""

from __future__ import annotations

import sys

import click

import wsh

# name: (module, attribute, short help). The help stands here too, so that the list needs no imports.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "server": ("wsh.cli.server", "server", "Run the server in the foreground."),
    "new": ("wsh.cli.new", "new", "Create a session."),
    "attach": ("wsh.cli.attach", "attach", "Show a session in this terminal and type into it."),
    "list": ("wsh.cli.list", "list_", "List sessions."),
    "run": ("wsh.cli.run", "run", "Run a command in a session and wait for its end."),
    "send": ("wsh.cli.send", "send", "Type text into a session."),
    "keys": ("wsh.cli.keys", "keys", "Press keys by name."),
    "screen": ("wsh.cli.screen", "screen", "Show a session's screen."),
    "scrollback": ("wsh.cli.scrollback", "scrollback", "Show a session's last lines."),
    "wait": ("wsh.cli.wait", "wait", "Wait until a session is quiet, prints a text, or ends."),
    "resize": ("wsh.cli.resize", "resize", "Change a session's size."),
    "rename": ("wsh.cli.rename", "rename", "Give a session another name."),
    "tag": ("wsh.cli.tag", "tag", "Add and remove tags."),
    "kill": ("wsh.cli.kill", "kill", "End a session with all its processes."),
    "detach": ("wsh.cli.detach", "detach", "Send every viewer of a session away."),
    "token": ("wsh.cli.token", "token", "Print the owner's token, or make one for an agent."),
    "link": ("wsh.cli.link", "link", "Print a link that signs a browser in, once."),
    "status": ("wsh.cli.status", "status", "Say whether a server runs, and how it is."),
    "stop": ("wsh.cli.stop", "stop", "Stop the server and its sessions."),
    "config": ("wsh.cli.config", "config", "Show the effective settings and where they come from."),
    "doctor": ("wsh.cli.doctor", "doctor", "Look for what is wrong with this installation."),
    "completion": ("wsh.cli.completion", "completion", "Print the completion script for a shell."),
    "desktop": ("wsh.cli.desktop", "desktop", "Open the window where requests are approved."),
    "mcp": ("wsh.cli.mcp", "mcp", "Speak MCP on stdin and stdout; install into MCP clients."),
    "record": ("wsh.cli.record", "record", "Run a program here and write a recording of it."),
    "play": ("wsh.cli.play", "play", "Play a recording in this terminal."),
    "export": ("wsh.cli.export", "export", "Write what a session printed to a file."),
    "policy": ("wsh.cli.policy", "policy", "Show, explain and change what may run."),
    "search": ("wsh.cli.search", "search", "Search code, prose and transcripts."),
    "index": ("wsh.cli.index", "index", "Build and look after a workspace's index."),
}


class Commands(click.Group):
    """A group that imports a command's file when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        import importlib

        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, _, short) in COMMANDS.items()])


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wsh.__version__, prog_name="wsh")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """One terminal server that AI agents and people share.

    Without a command: a new session in this directory, shown in this terminal. Ctrl+\\ twice detaches.
    """
    if ctx.invoked_subcommand is None:
        from wsh.cli.start import start

        sys.exit(start())


def main() -> None:
    """Run the command line; errors of ours become one line on stderr and a status scripts can use."""
    from wsh.wire.error import InvalidRequest, WshError
    from wsh.wire.place import FolderUnusable
    from wsh.wire.setting import SettingError

    try:
        if "--json" in sys.argv:
            from wsh.cli.output import run_for_program

            sys.exit(run_for_program(cli))
        cli(prog_name="wsh", standalone_mode=True)
    except WshError as error:
        from wsh.cli.output import report_error

        sys.exit(report_error(error))
    except (SettingError, FolderUnusable) as error:
        from wsh.cli.output import report_error

        sys.exit(report_error(InvalidRequest(str(error))))
    except OSError as error:
        # A full disk, a file where a folder should be, a missing right: the user's to mend, and a trace would not say how.
        from wsh.cli.output import report_system_error

        sys.exit(report_system_error(error))


if __name__ == "__main__":
    main()
