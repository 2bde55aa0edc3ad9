"""git: what loses work, rewrites history, or runs a command from an argument."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wsh.policy.danger.model import Check, RiskModel, Scene, always, danger, program
from wsh.policy.parse.option import Arguments
from wsh.policy.verdict import Kind, RiskReason

_KIND = Kind.REPOSITORY
_MAX_KEY = 500
_RUNS = re.compile(
    r"^(core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy)|sequence\.editor|pager\.\w+|diff\.external|"
    r"diff\..*\.(command|textconv)|filter\..*\.(clean|smudge|process)|merge\..*\.driver|gpg(\..*)?\.program|"
    r"credential(\..*)?\.helper|.*tool\..*\.cmd|uploadpack\.packobjectshook|remote\..*\.(uploadpack|receivepack))$"
)


def _global(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """`git -c key=value`: some keys hold commands."""
    for name, value in arguments.options:
        if name != "-c" or value is None:
            continue
        key, _, command = value.partition("=")
        if key.lower().startswith("alias."):
            yield from scene.look_text(command[1:] if command.startswith("!") else f"git {command}")
        elif _RUNS.match(key[:_MAX_KEY].lower()):
            yield from scene.look_text(command.lstrip("!"))


def _rebase(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for command in arguments.values("-x", "--exec"):
        yield from scene.look_text(command)


def _runs_option(options: str) -> Check:
    """Options whose value is a command."""
    names = tuple(options.split())

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        for command in arguments.values(*names):
            yield from scene.look_text(command)

    return check


_PACK = "--upload-pack --receive-pack --exec -u"


def _checkout(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-f", "--force", "-B"):
        yield scene.found(_KIND, "throws local changes or a branch away")
    elif arguments.has("-b", "--orphan", "-t", "--track"):
        return
    elif (
        "--" in scene.words
        or arguments.has("--ours", "--theirs", "--pathspec-from-file")
        or any(_looks_like_path(operand) for operand in arguments.operands)
        or len(arguments.operands) > 1
    ):
        yield scene.found(_KIND, "throws local changes to files away")


def _looks_like_path(operand: str) -> bool:
    return (
        operand in (".", "..", "*", ":/") or operand.startswith(("./", "../", ":/", "/", ":(")) or "\ue001" in operand
    )


def _restore(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if not arguments.has("-S", "--staged") or arguments.has("-W", "--worktree"):
        yield scene.found(_KIND, "throws local changes to files away")


def _clean(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if not arguments.has("-n", "--dry-run", "-h"):
        yield scene.found(_KIND, "removes files that git does not track")


def _submodule(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] == ["foreach"]:
        words = arguments.operands[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
        yield from scene.look_text(" ".join(words))
    elif arguments.operands[:1] == ["deinit"]:
        yield scene.found(_KIND, "removes the files of a submodule")


def _bisect(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] == ["run"]:
        yield from scene.look(arguments.operands[1:])


def _stash(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] in (["drop"], ["clear"]):
        yield scene.found(_KIND, "throws stashed work away")


def _config(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    operands = arguments.operands
    if operands[:1] == ["set"]:
        operands = operands[1:]
    if len(operands) == 2:
        key, value = operands
        if key.lower().startswith("alias.") and value.startswith("!"):
            yield from scene.look_text(value[1:])
        elif _RUNS.match(key[:_MAX_KEY].lower()):
            yield from scene.look_text(value.lstrip("!"))


def _verb(verbs: str, what: str) -> RiskModel:
    return program(danger(_KIND, what, operand=rf"^(?:{verbs})$"))


GIT = program(
    values="-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source --list-cmds",
    check=_global,
    permute=False,
    subcommands={
        "push": program(
            danger(
                _KIND,
                "overwrites or removes history on the remote",
                "-f --force --force-with-lease --force-if-includes -d --delete --mirror --prune",
                unless="-n --dry-run --help",
            ),
            danger(_KIND, "overwrites or removes history on the remote", operand=r"^[+:]", unless="-n --dry-run"),
            values="-o --push-option --repo --receive-pack --exec --recurse-submodules",
            check=_runs_option("--receive-pack --exec"),
        ),
        "reset": program(danger(_KIND, "throws local changes away", "--hard --merge --keep")),
        "clean": program(check=_clean, values="-e --exclude"),
        "checkout co": program(check=_checkout, values="-b -B --orphan --conflict --pathspec-from-file"),
        "switch": program(
            danger(_KIND, "throws local changes or a branch away", "-f --force --discard-changes -C --force-create"),
            values="-c -C --create --force-create --orphan --conflict",
        ),
        "restore": program(check=_restore, values="-s --source --conflict --pathspec-from-file"),
        "branch": program(
            danger(_KIND, "removes or overwrites a branch", "-d -D --delete -f --force -M -C"),
            values="-u --set-upstream-to --sort --format --points-at --contains --no-contains --merged --no-merged",
        ),
        "tag": program(
            danger(_KIND, "removes or overwrites a tag", "-d --delete -f --force"),
            values="-m -F -u -n --message --file --local-user --sort --format --contains --points-at --cleanup",
        ),
        "stash": program(check=_stash, values="-m --message"),
        "rm": program(danger(_KIND, "removes files", at_least=1, unless="--cached -n --dry-run --help")),
        "gc": program(danger(_KIND, "removes unreachable objects", "--prune --aggressive")),
        "prune": program(danger(_KIND, "removes unreachable objects", unless="-n --dry-run --help"), values="--expire"),
        "reflog": _verb("expire|delete|drop", "removes the record of where branches were"),
        "filter-branch filter-repo": always(_KIND, "rewrites history"),
        "update-ref": program(danger(_KIND, "removes or overwrites refs", "-d --stdin"), values="-m"),
        "symbolic-ref": program(danger(_KIND, "removes a ref", "-d --delete"), values="-m"),
        "replace notes": program(danger(_KIND, "removes notes or replacements", "-d --delete", operand=None)),
        "worktree": _verb("remove|prune", "removes a working tree"),
        "remote": _verb("remove|rm|prune", "removes a remote and its branches here"),
        "read-tree": program(danger(_KIND, "overwrites local changes", "--reset -u")),
        "checkout-index": program(danger(_KIND, "overwrites files", "-f --force")),
        "rebase": program(check=_rebase, values="-x -s -X --exec --strategy --onto --strategy-option -C"),
        "clone ls-remote fetch pull fetch-pack archive": program(
            check=_runs_option(_PACK),
            values=f"{_PACK} -o -b -c --origin --branch --config --depth --reference --remote",
        ),
        "difftool mergetool": program(check=_runs_option("-x --extcmd"), values="-x -t --extcmd --tool"),
        "grep": program(check=_runs_option("-O --open-files-in-pager"), values="-O -e -f -A -B -C -m"),
        "submodule": program(check=_submodule, permute=False),
        "bisect": program(check=_bisect, permute=False),
        "config": program(check=_config, values="-f --file --blob --type --default --comment", permute=False),
        "lfs": _verb("prune", "removes local copies of large files"),
        "mv": program(danger(_KIND, "overwrites files", "-f --force")),
        "commit": program(
            values="-m -F -C -c -t --message --file --author --date --template --reuse-message --reedit-message "
            "--fixup "
            "--squash --cleanup --trailer -S --gpg-sign"
        ),
    },
)
